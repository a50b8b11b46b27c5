/*
 * cli_serve.c - tutti serve-model: answers have the bits of predict, alone and together; bad
 * requests, slow and many clients, and the end by SIGTERM.
 */
#include "../command.h"
#include "../onnx_cases.h"
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define WIDTH 24

// ---- a service and its client ----------------------------------------------------------------

static int port;

static pid_t start(const char *flags)
{
    char line[400], text[4096];
    snprintf(line, sizeof(line), "serve-model m.tutti --listen 127.0.0.1:0 --threads 1 %s", flags);
    if (command_run("version") == 0 && strstr(command_out, "libmicrohttpd: yes") == NULL)
        test_skip("this build has no libmicrohttpd");
    pid_t pid = command_start(line);
    for (int i = 0; i < 1000; i++) {
        command_read("out", text, sizeof(text));
        const char *at = strstr(text, "http://127.0.0.1:");
        if (at != NULL && strchr(at, '\n') != NULL) {
            port = atoi(at + 17);
            return pid;
        }
        usleep(10000);
    }
    ck_abort_msg("the service does not start: %s", text);
    return -1;
}

static void end(pid_t pid)
{
    CHECK(kill(pid, SIGTERM) == 0);
    ck_assert_int_eq(command_wait(pid), 0);
}

static int dial(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_msg(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0, "connect");
    return fd;
}

static void say(int fd, const char *text)
{
    size_t n = strlen(text);
    while (n > 0) {
        ssize_t k = send(fd, text, n, MSG_NOSIGNAL);
        CHECK(k > 0);
        text += k;
        n -= (size_t)k;
    }
}

// All that comes until the answer is whole, the connection ends or 20 s are over.
static int hear(int fd, char *to, size_t room)
{
    size_t n = 0;
    to[0] = '\0';
    for (;;) {
        const char *body = strstr(to, "\r\n\r\n"), *length = strstr(to, "Content-Length: ");
        if (body != NULL && length != NULL &&
            n >= (size_t)(body + 4 - to) + (size_t)atol(length + 16))
            break;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ck_assert_msg(poll(&p, 1, 20000) == 1, "no answer, but '%s'", to);
        ssize_t k = recv(fd, to + n, room - n - 1, 0);
        if (k <= 0)
            break;
        to[n += (size_t)k] = '\0';
    }
    return n > 12 ? atoi(to + 9) : 0;
}

static char *post(const char *path, const char *headers, const char *body)
{
    char *text = test_zeros(1, strlen(body) + 1000);
    sprintf(text,
            "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%sContent-Length: "
            "%zu\r\n\r\n%s",
            path, headers, strlen(body), body);
    return text;
}

static int ask(const char *request, char *to, size_t room)
{
    int fd = dial();
    say(fd, request);
    int code = hear(fd, to, room);
    close(fd);
    return code;
}

// ---- the model -------------------------------------------------------------------------------

static float records[64 * WIDTH], answers[64 * 3];

// Also the answers to 64 records, by tt_predict().
static void make_model(void)
{
    char path[600];
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {WIDTH}, .name = "x");
    tt_layer_dense(m, .units = 33, .act = TT_TANH);
    tt_layer_dense(m, .units = 3, .name = "y");
    onnx_fill(m, 3);
    test_fill(records, 64 * WIDTH, 9, -1, 1);
    CHECK_OK(tt_predict(m, records, 64, answers));
    snprintf(path, sizeof(path), "%s/m.tutti", test_folder());
    CHECK_OK(tt_export(m, path));
    CHECK_OK(tt_close(ctx));
}

static char *infer(int first, int rows, const char *headers)
{
    char *body = test_zeros(1, 200 + (size_t)rows * WIDTH * 20);
    int n = sprintf(body,
                    "{\"id\": \"r%d\", \"inputs\": [{\"name\": \"x\", \"datatype\": \"FP32\", "
                    "\"shape\": [%d, %d], \"data\": [",
                    first, rows, WIDTH);
    for (int i = 0; i < rows * WIDTH; i++)
        n += sprintf(body + n, "%s%.9g", i > 0 ? "," : "", (double)records[first * WIDTH + i]);
    sprintf(body + n, "]}]}");
    return post("/v2/models/m/infer", headers, body);
}

static void same_bits(const char *text, int first, int rows)
{
    const char *at = strstr(text, "\"data\": [");
    ck_assert_msg(at != NULL, "%s", text);
    char id[32];
    snprintf(id, sizeof(id), "\"id\": \"r%d\"", first);
    CHECK_HAS(text, id);
    char *next = (char *)at + 9;
    for (int i = 0; i < 3 * rows; i++) {
        float v = strtof(next, &next), want = answers[3 * first + i];
        ck_assert_msg(memcmp(&v, &want, 4) == 0, "record %d: %.9g, not %.9g", first + i / 3,
                      (double)v, (double)want);
        next++;
    }
}

// ---- tests -----------------------------------------------------------------------------------

TEST(serve_answers_have_the_bits_of_predict)
{
    static char text[1 << 16];
    int fd[40];
    make_model();
    pid_t pid = start("--gather 16");
    ck_assert_int_eq(ask(infer(0, 64, ""), text, sizeof(text)), 200); // more than one run takes
    same_bits(text, 0, 64);
    for (int i = 0; i < 40; i++)
        fd[i] = dial();
    for (int i = 0; i < 40; i++) // 1, 2 or 3 records each, all at once
        say(fd[i], infer(i, 1 + i % 3, ""));
    for (int i = 0; i < 40; i++) {
        ck_assert_int_eq(hear(fd[i], text, sizeof(text)), 200);
        same_bits(text, i, 1 + i % 3);
        say(fd[i], infer(i + 1, 2, "")); // on the same connection
        ck_assert_int_eq(hear(fd[i], text, sizeof(text)), 200);
        same_bits(text, i + 1, 2);
        close(fd[i]);
    }
    ck_assert_int_eq(ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text)), 200);
    CHECK_HAS(text, "tutti_requests_total{result=\"ok\"} 81\n");
    CHECK_HAS(text, "tutti_records_total 223\n");
    end(pid);
}

TEST(serve_names_what_is_wrong)
{
    static const struct {
        const char *body, *words;
    } bad[] = {
        {"[1", "not valid JSON: line 1"},
        {"{}", "no list 'inputs'"},
        {"{\"inputs\": [{\"name\": \"z\"}]}", "input 'z' is not one of the model's"},
        {"{\"inputs\": [{\"name\": \"x\", \"datatype\": \"INT8\"}]}",
         "datatype is INT8; it must be "
         "FP32"},
        {"{\"inputs\": [{\"name\": \"x\", \"datatype\": \"FP32\", \"shape\": [1, 2]}]}",
         "shape is [1, 2]; it must be [b, 24]"},
        {"{\"inputs\": [{\"name\": \"x\", \"datatype\": \"FP32\", \"shape\": [1, 24], \"data\": "
         "[1, true]}]}",
         "element 1 is true, not FP32"},
        {"{\"inputs\": [{\"name\": \"x\", \"datatype\": \"FP32\", \"shape\": [9999999, 24], "
         "\"data\": [1]}]}",
         "fewer than the 239999976 elements"},
    };
    static char text[1 << 16];
    make_model();
    pid_t pid = start("--body 1");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_int_eq(ask(post("/v2/models/m/infer", "", bad[i].body), text, sizeof(text)), 400);
        CHECK_HAS(text, bad[i].words);
    }
    ck_assert_int_eq(ask(post("/v2/models/n/infer", "", "{}"), text, sizeof(text)), 404);
    ck_assert_int_eq(ask("GET /v2/models/m/infer HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text)),
                     405);
    int fd = dial();
    say(fd, "POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            "Content-Length: 1048577\r\n\r\n");
    ck_assert_int_eq(hear(fd, text, sizeof(text)), 413);
    close(fd);
    ck_assert_int_eq(ask(infer(3, 1, ""), text, sizeof(text)), 200); // and it goes on
    same_bits(text, 3, 1);
    end(pid);
}

TEST(serve_wants_its_token)
{
    static char text[1 << 16];
    make_model();
    command_write("token", "0123456789abcdef0123\n");
    CHECK(command_shell("chmod 644 token; $TUTTI serve-model m.tutti --token token 2>err2; "
                        "grep -q 'chmod 600' err2") == 0);
    CHECK(command_shell("chmod 600 token; $TUTTI serve-model m.tutti --listen 0.0.0.0:0 2>err3; "
                        "grep -q 'a token is needed: --token FILE' err3") == 0);
    pid_t pid = start("--token token");
    ck_assert_int_eq(ask(infer(0, 1, ""), text, sizeof(text)), 401);
    ck_assert_int_eq(
        ask(infer(0, 1, "Authorization: Bearer 0123456789abcdef0124\r\n"), text, sizeof(text)),
        401);
    ck_assert_int_eq(
        ask(infer(0, 1, "Authorization: Bearer 0123456789abcdef0123\r\n"), text, sizeof(text)),
        200);
    ck_assert_int_eq(ask("GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text)),
                     200);
    end(pid);
}

// SIGTERM while requests are half sent: those are answered, and then the service is gone.
TEST(serve_answers_what_has_come_before_it_ends)
{
    static char text[1 << 16];
    int fd[8];
    make_model();
    pid_t pid = start("--timeout 5");
    for (int i = 0; i < 8; i++) {
        const char *all = infer(i, 2, "");
        size_t half = strlen(all) / 2;
        char *first = test_zeros(1, half + 1);
        memcpy(first, all, half);
        fd[i] = dial();
        say(fd[i], first);
    }
    for (int i = 0; i < 500; i++) { // until all headers have come
        ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text));
        if (strstr(text, "tutti_requests_in_flight 9\n") != NULL)
            break;
        usleep(2000);
    }
    CHECK_HAS(text, "tutti_requests_in_flight 9\n");
    CHECK(kill(pid, SIGTERM) == 0);
    usleep(50000);
    for (int i = 0; i < 8; i++) {
        const char *all = infer(i, 2, "");
        say(fd[i], all + strlen(all) / 2);
        ck_assert_int_eq(hear(fd[i], text, sizeof(text)), 200);
        same_bits(text, i, 2);
        close(fd[i]);
    }
    ck_assert_int_eq(command_wait(pid), 0);
}

// A client that stops in the middle of its body is disconnected; idle ones hold nobody up.
TEST(serve_survives_slow_and_idle_clients)
{
    enum {
        IDLE = 300
    };
    static char text[1 << 16];
    int idle[IDLE];
    make_model();
    pid_t pid = start("--timeout 1");
    for (int i = 0; i < IDLE; i++)
        idle[i] = dial();
    int slow = dial();
    say(slow, "POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
              "Content-Length: 100\r\n\r\n{");
    ck_assert_int_eq(ask(infer(5, 1, ""), text, sizeof(text)), 200);
    same_bits(text, 5, 1);
    ck_assert_int_eq(hear(slow, text, sizeof(text)), 0);
    close(slow);
    for (int i = 0; i < IDLE; i++)
        close(idle[i]);
    end(pid);
}

// Requests that are run together: one with an id that the model does not have fails alone.
TEST(serve_fails_a_bad_record_alone)
{
    static char text[1 << 16];
    char path[600], body[200];
    int fd[12];
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {4}, .dtype = TT_I32, .name = "ids");
    tt_layer_embedding(m, .vocab = 11, .width = 3);
    tt_layer_flatten(m);
    tt_layer_dense(m, .units = 2);
    snprintf(path, sizeof(path), "%s/m.tutti", test_folder());
    CHECK_OK(tt_export(m, path));
    CHECK_OK(tt_close(ctx));
    pid_t pid = start("");
    for (int i = 0; i < 12; i++) {
        snprintf(body, sizeof(body),
                 "{\"inputs\": [{\"name\": \"ids\", \"datatype\": \"INT32\", \"shape\": [1, 4], "
                 "\"data\": [1, 2, 3, %d]}]}",
                 i == 5 ? 11 : 10);
        fd[i] = dial();
        say(fd[i], post("/v2/models/m/infer", "", body));
    }
    for (int i = 0; i < 12; i++) {
        int code = hear(fd[i], text, sizeof(text));
        ck_assert_msg(code == (i == 5 ? 400 : 200), "request %d: %s", i, text);
        if (i == 5)
            CHECK_HAS(text, "11");
        close(fd[i]);
    }
    end(pid);
}
