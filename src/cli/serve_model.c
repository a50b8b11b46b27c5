/*
 * serve_model.c - tutti serve-model: the verb (serve_model.h says how a service works).
 */
#include "cli/serve_model.h"
#include "base/ctx.h"
#include "base/file.h"
#include "cli/report.h"
#include <ctype.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LISTEN "127.0.0.1:8000"

// The name in paths: that of the file or run, what no path has replaced.
static void set_name(cli_service *s, const char *word)
{
    char text[sizeof(s->name)];
    size_t n = strlen(word);
    while (n > 1 && word[n - 1] == '/')
        n--;
    size_t at = n;
    while (at > 0 && word[at - 1] != '/')
        at--;
    snprintf(text, sizeof(text), "%.*s", (int)(n - at), word + at);
    char *dot = strrchr(text, '.');
    if (dot != NULL && dot != text)
        *dot = '\0';
    for (char *c = text; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("._-", *c) == NULL)
            *c = '_';
    snprintf(s->name, sizeof(s->name), "%s", text[0] != '\0' ? text : "model");
}

static bool read_token(tt_ctx *ctx, cli_service *s, const char *path)
{
    struct stat info;
    char *text = NULL;
    size_t n = 0;
    if (stat(path, &info) == 0 && (info.st_mode & 077) != 0) {
        (void)cli_error("--token: others can read '%s'; run chmod 600 on it", path);
        return false;
    }
    if (tti_file_read(ctx, path, 4096, &text, &n) != TT_OK)
        return false; // told when the context is closed
    size_t used = strcspn(text, "\r\n");
    bool ok = used >= 16 && used < sizeof(s->token);
    for (size_t i = 0; ok && i < used; i++)
        ok = text[i] > ' ' && text[i] < 127;
    if (ok)
        snprintf(s->token, sizeof(s->token), "%.*s", (int)used, text);
    else
        (void)cli_error("--token: the first line of '%s' must have 16 to 256 characters without "
                        "spaces; for example from: openssl rand -hex 32",
                        path);
    memset(text, 0, n);
    tti_free(ctx, text);
    return ok;
}

static tt_status read_ports(cli_service *s)
{
    tt_model *m = s->m->model;
    s->n_inputs = tt_model_input_count(m);
    s->n_outputs = tt_model_output_count(m);
    for (int i = 0; i < s->n_inputs; i++) {
        TT_TRY(tt_model_input(m, i, &s->inputs[i]));
        s->in_bytes[i] = (size_t)tt_shape_count(&s->inputs[i].raw_shape) *
                         tt_dtype_bytes(s->inputs[i].raw_dtype);
    }
    for (int i = 0; i < s->n_outputs; i++) {
        TT_TRY(tt_model_output(m, i, &s->outputs[i]));
        s->out_bytes[i] =
            (size_t)tt_shape_count(&s->outputs[i].shape) * tt_dtype_bytes(s->outputs[i].dtype);
    }
    return TT_OK;
}

// Until SIGTERM or Ctrl-C; both are blocked, here and in all threads.
static void wait_for_end(const sigset_t *set)
{
    siginfo_t info;
    while (sigwaitinfo(set, &info) < 0)
        continue;
}

static int serve(cli_service *s, const cli_args *args)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    int rc = CLI_FAILED;
    if (read_ports(s) == TT_OK && cli_serve_start(s) == TT_OK &&
        cli_http_start(s, args->listen != NULL ? args->listen : LISTEN)) {
        cli_printf("%s: %s/v2/models/%s/infer\n", s->m->weights, s->url, s->name);
        fflush(stdout);
        wait_for_end(&set);
        if (!args->quiet)
            cli_tell("ending: answering %lld requests\n", (long long)atomic_load(&s->in_flight));
        pthread_sigmask(SIG_UNBLOCK, &set, NULL); // another one ends at once
        cli_http_drain(s);
        rc = CLI_OK;
    }
    cli_serve_stop(s);
    cli_http_stop(s);
    return rc;
}

static int run(const cli_args *args)
{
    cli_model m = {0};
    cli_service *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return cli_error("out of memory");
    int rc = cli_model_open(args, args->words[0], false, &m);
    if (rc == CLI_OK && m.model != NULL) {
        s->m = &m;
        s->gather = args->gather > 0 ? args->gather : 64;
        s->queue_size = args->queue > 0 ? args->queue : 256;
        s->body_max = (size_t)(args->body > 0 ? args->body : 8) << 20;
        s->timeout_s = args->timeout > 0 ? (int)args->timeout : 30;
        pthread_mutex_init(&s->mu, NULL);
        set_name(s, args->words[0]);
        rc = args->token == NULL || read_token(m.j.ctx, s, args->token) ? serve(s, args)
                                                                        : CLI_FAILED;
        pthread_mutex_destroy(&s->mu);
    }
    free(s);
    return cli_model_close(&m, rc);
}

const cli_verb cli_serve_model = {
    .name = "serve-model",
    .words = "MODEL",
    .summary = "answer prediction requests over HTTP",
    .help =
        "MODEL is a run, a checkpoint or a file, as for tutti predict. Requests follow the Open\n"
        "Inference Protocol (KServe v2): POST /v2/models/NAME/infer with JSON tensors; NAME is "
        "the\n"
        "name of the file or run. GET /v2/models/NAME describes inputs and outputs, "
        "/v2/health/live\n"
        "and /v2/health/ready are for probes, /metrics is for Prometheus. Requests that wait are\n"
        "run together; each answer has the bits of tutti predict. SIGTERM and Ctrl-C end it after\n"
        "every request that has come is answered.\n"
        "\n"
        "  tutti serve-model digits.tutti\n"
        "  tutti serve-model digits.tutti --listen 0.0.0.0:8000 --token token.txt\n",
    .flags = "runs checkpoint devices threads isa quiet listen token gather queue body timeout",
    .min_words = 1,
    .max_words = 1,
    .alone = true,
    .run = run,
};
