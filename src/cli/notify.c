/*
 * notify.c - runs the command of output.notify and calls output.webhook (notify.h). What a command
 * needs to know is in its environment, so that nothing of a message is read by a shell.
 */
#include "cli/notify.h"
#include "cli/child.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COMMAND_MS 60000 // a command that takes longer is killed

static void run_command(const cli_notify *n, const char *event, int64_t step, const char *message)
{
    char what[64], at[64], *run = NULL, *text = NULL;
    snprintf(what, sizeof(what), "TUTTI_EVENT=%s", event);
    snprintf(at, sizeof(at), "TUTTI_STEP=%lld", (long long)step);
    if (asprintf(&run, "TUTTI_RUN=%s", n->run) > 0 &&
        asprintf(&text, "TUTTI_MESSAGE=%s", message) > 0) {
        const char *const words[] = {"env", what, at, run, text, "sh", "-c", n->command, NULL};
        int rc = cli_child_run(&(cli_child){.words = words, .timeout_ms = COMMAND_MS});
        if (rc != 0)
            cli_tell("warn: output.notify: the command %s for '%s'\n",
                     rc < 0 ? "took longer than 60 s or could not be run" : "failed", event);
    }
    free(run); // asprintf()'s
    free(text);
}

// "text" is what chat programs show of a message.
static void call_webhook(const cli_notify *n, const char *event, int64_t step, const char *message)
{
    char why[TTI_HTTP_WHY], shown[TTI_RUN_PATH + 700];
    tti_text t = {0};
    snprintf(shown, sizeof(shown), "%s %s at step %lld%s%.512s",
             n->run[0] != '\0' ? n->run : "a run", event, (long long)step,
             message[0] != '\0' ? ": " : "", message);
    tti_text_add(&t, "{\"event\": \"%s\", \"step\": %lld, \"run\": ", event, (long long)step);
    tti_text_json(&t, n->run);
    tti_text_add(&t, ", \"message\": ");
    tti_text_json(&t, message);
    tti_text_add(&t, ", \"text\": ");
    tti_text_json(&t, shown);
    tti_text_add(&t, "}");
    char *body = tti_text_take(&t);
    int status = 0;
    snprintf(why, sizeof(why), "out of memory");
    if (body != NULL)
        status = tti_http_send(&(tti_http){.url = &n->webhook, .body = body}, NULL, why);
    if (status < 200 || status >= 300)
        cli_tell("warn: output.webhook: '%s' was not delivered: %s\n", event, why);
    tti_free(NULL, body);
}

static void tell(const cli_notify *n, const char *event, int64_t step, const char *message)
{
    if (n->command != NULL)
        run_command(n, event, step, message);
    if (n->has_webhook)
        call_webhook(n, event, step, message);
}

// Waits for the end, or until no event has come for too long; that is told once a time.
static void *watch(void *user)
{
    cli_notify *n = user;
    pthread_mutex_lock(&n->mu);
    while (!n->is_over) {
        int64_t left = n->last_ns + n->stall_ns - tti_now_ns();
        if (left <= 0 && !n->has_stalled) {
            char message[96];
            int64_t step = n->step;
            n->has_stalled = true;
            snprintf(message, sizeof(message), "nothing has happened for %.3g s after step %lld",
                     1e-9 * (double)n->stall_ns, (long long)step);
            pthread_mutex_unlock(&n->mu);
            tell(n, "stalled", step, message);
            pthread_mutex_lock(&n->mu);
            continue;
        }
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        int64_t wait = n->has_stalled ? n->stall_ns : TTI_MAX(left, INT64_C(1000000));
        until.tv_sec += wait / 1000000000;
        until.tv_nsec += wait % 1000000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&n->changed, &n->mu, &until);
    }
    pthread_mutex_unlock(&n->mu);
    return NULL;
}

static void on_event(void *user, const tt_event *ev)
{
    cli_notify *n = user;
    pthread_mutex_lock(&n->mu);
    n->last_ns = tti_now_ns();
    n->has_stalled = false;
    for (int i = 0; i < ev->n_pairs; i++)
        if (strcmp(ev->pairs[i].name, "step") == 0)
            n->step = (int64_t)ev->pairs[i].number;
    pthread_mutex_unlock(&n->mu);
}

tt_status cli_notify_init(cli_notify *n, const cli_job *j)
{
    static const char *const keys[] = {"output.webhook", "output.mlflow", "output.http"};
    const char *command = tt_job_get(j->job, "output.notify");
    const char *stall = tt_job_get(j->job, "output.stall");
    *n = (cli_notify){.stall_ns = stall != NULL ? (int64_t)(1e9 * strtod(stall, NULL)) : 0};
    for (int i = 0; i < TTI_COUNT(keys); i++) {
        const char *url = tt_job_get(j->job, keys[i]);
        tti_url read;
        if (url == NULL || url[0] == '\0')
            continue;
        TT_TRY(tti_url_read(j->reader, keys[i], url, i == 0 ? &n->webhook : &read));
        n->has_webhook |= i == 0;
    }
    if (command != NULL && command[0] != '\0')
        n->command = strdup(command);
    return TT_OK;
}

void cli_notify_watch(cli_notify *n, tt_ctx *ctx, const char *run)
{
    pthread_condattr_t attr;
    snprintf(n->run, sizeof(n->run), "%s", run);
    if (n->command == NULL && !n->has_webhook)
        return;
    n->ctx = ctx;
    n->last_ns = tti_now_ns();
    pthread_mutex_init(&n->mu, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&n->changed, &attr);
    pthread_condattr_destroy(&attr);
    n->observer = (tti_observer){.fn = on_event, .user = n};
    tti_observe(ctx, &n->observer);
    n->has_thread = n->stall_ns > 0 && pthread_create(&n->thread, NULL, watch, n) == 0;
}

void cli_notify_unwatch(cli_notify *n)
{
    if (n->ctx == NULL)
        return;
    tti_unobserve(n->ctx, &n->observer);
    n->ctx = NULL;
    pthread_mutex_lock(&n->mu);
    n->is_over = true;
    pthread_cond_signal(&n->changed);
    pthread_mutex_unlock(&n->mu);
    if (n->has_thread)
        pthread_join(n->thread, NULL);
    n->has_thread = false;
    pthread_cond_destroy(&n->changed);
    pthread_mutex_destroy(&n->mu);
}

void cli_notify_end(cli_notify *n, int rc, const char *message)
{
    bool is_asked = rc == CLI_AGAIN || rc == CLI_BREAK;
    const char *event = rc == CLI_OK || is_asked ? "ended" : rc == CLI_NAN ? "diverged" : "failed";
    tell(n, event, n->step, is_asked ? "stopped on request" : message);
    free(n->command); // strdup()'s
    n->command = NULL;
    n->has_webhook = false;
}
