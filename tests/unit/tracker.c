/*
 * tracker.c - what is sent to servers: requests by the client of net/http.h against a server of
 * this test, the events of a run as JSON and by MLflow's REST interface, messages of a webhook;
 * and that a server that is down, slow or refuses costs a warning and nothing else.
 */
#include "record/tracker.h"
#include "../command.h"
#include "net/http.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <tutti/record.h>
#include <unistd.h>

// ---- a server --------------------------------------------------------------------------------

#define MOST 200

typedef struct server {
    int fd, port;
    pthread_t thread;
    const char *answer; // to every request; NULL: as MLflow does
    bool is_mute;       // reads, and never answers
    _Atomic bool is_over;
    pthread_mutex_t mu;
    int n;
    char *got[MOST]; // requests, head and body
} server;

// The answers of MLflow's tracking server, as far as they are looked at.
static const char *mlflow_answer(const server *s, const char *request)
{
    if (strstr(request, "experiments/get-by-name") != NULL) {
        for (int i = 0; i < s->n; i++)
            if (strstr(s->got[i], "experiments/create") != NULL)
                return "HTTP/1.1 200 OK\r\nContent-Length: 38\r\n\r\n"
                       "{\"experiment\": {\"experiment_id\": \"7\"}} ";
        return "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}";
    }
    if (strstr(request, "experiments/create") != NULL)
        return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
               "8\r\n{\"experi\r\ne\r\nment_id\": \"7\"}\r\n0\r\n\r\n";
    if (strstr(request, "runs/create") != NULL)
        return "HTTP/1.1 200 OK\r\n\r\n{\"run\": {\"info\": {\"run_id\": \"abc123\"}}}";
    return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
}

static void serve_one(server *s, int fd)
{
    size_t n = 0, want = SIZE_MAX;
    char *text = calloc(1, 1 << 20);
    CHECK(text != NULL);
    while (n < want && n < (1 << 20) - 1) {
        ssize_t r = recv(fd, text + n, (1 << 20) - 1 - n, 0);
        if (r <= 0)
            break;
        n += (size_t)r;
        char *end = strstr(text, "\r\n\r\n"), *length = strstr(text, "Content-Length: ");
        if (end != NULL)
            want = (size_t)(end + 4 - text) +
                   (length != NULL && length < end ? strtoull(length + 16, NULL, 10) : 0);
    }
    pthread_mutex_lock(&s->mu);
    const char *answer = s->answer != NULL ? s->answer : mlflow_answer(s, text);
    if (s->n < MOST)
        s->got[s->n++] = text;
    else
        free(text);
    pthread_mutex_unlock(&s->mu);
    if (!s->is_mute)
        (void)!send(fd, answer, strlen(answer), MSG_NOSIGNAL);
    while (s->is_mute && !atomic_load(&s->is_over))
        usleep(10000);
    close(fd);
}

static void *serve(void *arg)
{
    server *s = arg;
    while (!atomic_load(&s->is_over)) {
        struct pollfd p = {.fd = s->fd, .events = POLLIN};
        if (poll(&p, 1, 20) > 0) {
            int fd = accept(s->fd, NULL, NULL);
            if (fd >= 0)
                serve_one(s, fd);
        }
    }
    return NULL;
}

static server *server_new(const char *answer)
{
    server *s = calloc(1, sizeof(*s));
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(a);
    CHECK(s != NULL);
    s->answer = answer;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(s->fd >= 0 && bind(s->fd, (struct sockaddr *)&a, sizeof(a)) == 0);
    CHECK(listen(s->fd, 16) == 0 && getsockname(s->fd, (struct sockaddr *)&a, &size) == 0);
    s->port = ntohs(a.sin_port);
    pthread_mutex_init(&s->mu, NULL);
    CHECK_INT(pthread_create(&s->thread, NULL, serve, s), 0);
    return s;
}

static void server_free(server *s)
{
    atomic_store(&s->is_over, true);
    pthread_join(s->thread, NULL);
    close(s->fd);
    for (int i = 0; i < s->n; i++)
        free(s->got[i]);
    pthread_mutex_destroy(&s->mu);
    free(s);
}

// The number of requests that hold these words; the last one in *found, if asked for.
static int requests(const server *s, const char *words, const char **found)
{
    int n = 0;
    for (int i = 0; i < s->n; i++)
        if (strstr(s->got[i], words) != NULL) {
            n++;
            if (found != NULL)
                *found = s->got[i];
        }
    return n;
}

static const char *line(const char *format, int port)
{
    static char text[2][1024];
    static int turn;
    turn = !turn;
    snprintf(text[turn], sizeof(text[turn]), format, port);
    return text[turn];
}

static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

// ---- the client ------------------------------------------------------------------------------

TEST(addresses_are_read)
{
    tt_ctx *ctx = test_ctx();
    tti_url u;
    CHECK_OK(tti_url_read(ctx, "output.http", "http://me:pw@host:81/a/b?c=d#e", &u));
    CHECK(!u.is_https);
    CHECK_STR(u.host, "host");
    CHECK_STR(u.port, "81");
    CHECK_STR(u.path, "/a/b?c=d");
    CHECK_STR(u.user, "me:pw");
    CHECK(strstr(u.shown, "pw") == NULL);
    CHECK_OK(tti_url_read(ctx, "output.http", "https://[::1]", &u));
    CHECK(u.is_https);
    CHECK_STR(u.host, "::1");
    CHECK_STR(u.port, "443");
    CHECK_STR(u.path, "/");
    setenv("TUTTI_TEST_ADDRESS", "http://there/secret", 1);
    CHECK_OK(tti_url_read(ctx, "output.http", "$TUTTI_TEST_ADDRESS", &u));
    CHECK_STR(u.host, "there");
    CHECK_STR(u.shown, "$TUTTI_TEST_ADDRESS");
    static const char *const bad[] = {"host:80",
                                      "http://",
                                      "http://h:0",
                                      "http://h:1x",
                                      "http://h:70000",
                                      "http://[::1",
                                      "ftp://h",
                                      "http://a b",
                                      "$TUTTI_NONE",
                                      "http://[::1]x",
                                      ""};
    for (int i = 0; i < TTI_COUNT(bad); i++) {
        CHECK(tti_url_read(ctx, "output.http", bad[i], &u) == TT_EINVAL);
        CHECK(strstr(tt_last_error(ctx).message, "output.http") != NULL);
        tt_clear_error(ctx);
    }
    CHECK_OK(tt_close(ctx));
}

static int ask(int port, const char *body, char **answer, char *why)
{
    static tti_url u;
    CHECK_OK(tti_url_read(NULL, "url", line("http://127.0.0.1:%d/top/", port), &u));
    return tti_http_send(&(tti_http){.url = &u, .path = "/x", .body = body, .token = "tok"}, answer,
                         why);
}

TEST(answers_are_read_whole)
{
    static const char *const answers[] = {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
                                          "HTTP/1.0 200 OK\r\n\r\nhello",
                                          "HTTP/1.1 200 OK\r\ntransfer-encoding: "
                                          "chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n"};
    char why[TTI_HTTP_WHY], *answer;
    for (int i = 0; i < TTI_COUNT(answers); i++) {
        server *s = server_new(answers[i]);
        CHECK_INT(ask(s->port, i == 0 ? NULL : "{}", &answer, why), 200);
        CHECK_STR(answer, "hello");
        CHECK_HAS(s->got[0], i == 0 ? "GET /top/x HTTP/1.1\r\n" : "POST /top/x HTTP/1.1\r\n");
        CHECK_HAS(s->got[0], "Authorization: Bearer tok\r\n");
        tti_free(NULL, answer);
        server_free(s);
    }
}

TEST(servers_that_fail_say_why)
{
    char why[TTI_HTTP_WHY], *answer;
    server *s = server_new("HTTP/1.1 503 Busy\r\n\r\ncome\nagain");
    CHECK_INT(ask(s->port, "{}", &answer, why), 503);
    CHECK_HAS(why, "it answered 503: come again (http://127.0.0.1:");
    tti_free(NULL, answer);
    int port = s->port;
    server_free(s);
    CHECK_INT(ask(port, "{}", NULL, why), 0);
    CHECK_HAS(why, "cannot connect: Connection refused");
    s = server_new("SSH-2.0-x\r\n");
    CHECK_INT(ask(s->port, "{}", NULL, why), 0);
    CHECK_HAS(why, "not that of a web server");
    server_free(s);
}

// ---- runs ------------------------------------------------------------------------------------

TEST(a_run_is_sent_as_json)
{
    server *s = server_new(ok);
    const char *hook = NULL, *events = NULL;
    command_write("small.yaml", command_small_job);
    setenv("MY_HOOK", line("http://127.0.0.1:%d/hook/secret", s->port), 1);
    CHECK_INT(command_shell(line("$TUTTI train small.yaml --quiet --run a "
                                 "--set output.http=http://127.0.0.1:%d/in "
                                 "--set output.webhook='$MY_HOOK'",
                                 s->port)),
              0);
    CHECK_STR(command_err, "");
    CHECK_INT(requests(s, "POST /hook/secret ", &hook), 1);
    CHECK_HAS(hook, "\"event\": \"ended\", \"step\": 30, \"run\": \"a\", \"message\": \"\"");
    CHECK_HAS(hook, "\"text\": \"a ended at step 30\"");
    CHECK(requests(s, "POST /in ", &events) >= 1);
    CHECK_HAS(events, "\"run\":\"a\"");
    CHECK_INT(requests(s, "\"event\":\"keys\"", NULL), 1);
    CHECK_INT(requests(s, "\"event\":\"record\"", NULL), 1);
    CHECK_INT(requests(s, "\"event\":\"end\"", NULL), 1);
    // What is recorded has the variable's name and not its value.
    CHECK_INT(command_shell("grep -rq secret a"), 1);
    CHECK_INT(command_shell("grep -q 'MY_HOOK' a/job.yaml"), 0);
    CHECK_INT(command_shell(line("$TUTTI train small.yaml --quiet --run b --lr 1e30 "
                                 "--set output.webhook='$MY_HOOK?%d'",
                                 0)),
              3); // no such variable
    CHECK_INT(command_shell("$TUTTI train small.yaml --quiet --run b --lr 1e30 "
                            "--set output.webhook='$MY_HOOK'"),
              4);
    CHECK_INT(requests(s, "\"event\": \"diverged\"", NULL), 1);
    server_free(s);
}

TEST(a_run_is_sent_to_mlflow)
{
    server *s = server_new(NULL);
    const char *found = NULL;
    command_write("small.yaml", command_small_job);
    const char *train = line("$TUTTI train small.yaml --quiet --run a "
                             "--set output.mlflow=http://127.0.0.1:%d --until 20",
                             s->port);
    CHECK_INT(command_shell(train), 0);
    CHECK_STR(command_err, "");
    CHECK_INT(requests(s, "experiments/create", &found), 1);
    CHECK_HAS(found, "{\"name\":\"small\"}");
    CHECK_INT(requests(s, "runs/create", &found), 1);
    CHECK_HAS(found, "\"experiment_id\":\"7\"");
    CHECK_HAS(found, "\"run_name\":\"a\"");
    CHECK_INT(requests(s, "{\"key\":\"train.batch\",\"value\":", NULL), 1);
    CHECK(requests(s, "\"key\":\"validation_loss\",\"value\":", NULL) >= 1);
    CHECK(requests(s, "\"step\":20}", NULL) >= 1);
    CHECK_INT(requests(s, "tutti.weights_hash", NULL), 1);
    CHECK_INT(requests(s, "\"status\":\"FINISHED\"", NULL), 1);
    // Goes on in the same run there.
    CHECK_INT(command_shell(line("$TUTTI train a --resume --quiet --set output.mlflow="
                                 "http://127.0.0.1:%d",
                                 s->port)),
              0);
    CHECK_STR(command_err, "");
    CHECK_INT(requests(s, "runs/create", NULL), 1);
    CHECK_INT(requests(s, "\"status\":\"RUNNING\"", NULL), 1);
    CHECK(requests(s, "\"step\":30}", NULL) >= 1);
    CHECK_INT(requests(s, "\"status\":\"FINISHED\"", NULL), 2);
    // One that fails is told as failed.
    CHECK_INT(command_shell(line("$TUTTI train small.yaml --quiet --run b --lr 1e30 "
                                 "--set output.mlflow=http://127.0.0.1:%d",
                                 s->port)),
              4);
    CHECK_INT(requests(s, "\"status\":\"FAILED\"", NULL), 1);
    server_free(s);
}

// The weights are those of a run that tells nobody, and there is one warning.
TEST(servers_that_are_down_cost_a_warning)
{
    server *s = server_new("HTTP/1.1 500 No\r\n\r\n"),
           *refuses = server_new("HTTP/1.1 400 No\r\n\r\n");
    char alone[64], told[64];
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --json --run a");
    command_hash(command_out, alone);
    CHECK_INT(command_shell(line("$TUTTI train small.yaml --json --run b "
                                 "--set output.mlflow=http://127.0.0.1:%d "
                                 "--set output.http=http://127.0.0.1:1",
                                 s->port)),
              0);
    command_hash(command_out, told);
    CHECK_STR(told, alone);
    CHECK_INT(command_count(command_err, "output.mlflow: it answered 500"), 1);
    CHECK_INT(command_count(command_err, "output.http: cannot connect: Connection refused"), 1);
    CHECK_INT(command_count(command_err, "warn: "), 2);
    CHECK_INT(command_shell(line("$TUTTI train small.yaml --quiet --run c "
                                 "--set output.http=http://127.0.0.1:%d",
                                 refuses->port)),
              0);
    CHECK_INT(command_count(command_err, "output.http: it answered 400"), 1);
    server_free(s);
    server_free(refuses);
}

// Closing waits for a server that does not answer no longer than its time; events beyond the buffer
// are dropped.
TEST(a_server_that_is_mute_does_not_hold_a_run_up)
{
    tt_ctx *ctx = test_ctx();
    tti_tracker *t = NULL;
    server *s = server_new(ok);
    char *big = malloc(60001);
    CHECK(big != NULL);
    s->is_mute = true;
    CHECK_OK(tti_tracker_open(ctx, TTI_TRACKER_JSON, line("http://127.0.0.1:%d", s->port), "f", "n",
                              &t));
    memset(big, ' ', 60000);
    big[59999] = '}';
    big[60000] = '\0';
    int64_t begin = tti_now_ns();
    for (int i = 0; i < 50; i++)
        tti_tracker_add(t, 1, big);
    CHECK(tti_now_ns() - begin < 1000000000); // nobody waits
    CHECK(t->dropped >= 40);
    atomic_store(&t->until_ns, tti_deadline(0)); // as if its time were over
    pthread_mutex_lock(&t->mu);
    t->is_over = true;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->mu);
    tti_thread_join(&t->thread);
    CHECK(tti_now_ns() - begin < 3000000000);
    free(big);
    server_free(s);
    tti_tracker_close(t);
    CHECK_OK(tt_close(ctx));
}
