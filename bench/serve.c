/*
 * serve.c - tutti serve-model under load on loopback: what HTTP, JSON and the queue add to the time
 * of one record, and how many records a second 16 clients get, against tt_predict() in batches.
 *
 * Clients keep their connection and send the next request when they have an answer. A round is
 * bounded in requests and in time.
 */
#include "bench.h"
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tutti/tutti.h>
#include <unistd.h>

#define CLIENTS  16
#define REQUESTS 2000 // of a client, at most
#define SECONDS  3.0  // of a round, at most

typedef struct work {
    const char *name;
    int64_t inputs, hidden, layers, rows; // rows: of a request
} work;

typedef struct client {
    pthread_t thread;
    int port, n;
    const char *request;
    double *times, begin;
} client;

static int dial(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 ? fd : -1;
}

// One answer; false: it is not 200.
static bool hear(int fd)
{
    static _Thread_local char text[1 << 20];
    size_t n = 0, want = sizeof(text);
    while (n < want) {
        ssize_t k = recv(fd, text + n, sizeof(text) - n - 1, 0);
        if (k <= 0)
            return false;
        text[n += (size_t)k] = '\0';
        const char *body = strstr(text, "\r\n\r\n"), *length = strstr(text, "Content-Length: ");
        if (want == sizeof(text) && body != NULL && length != NULL)
            want = (size_t)(body + 4 - text) + (size_t)atol(length + 16);
    }
    return strncmp(text + 9, "200", 3) == 0;
}

static void *run_client(void *arg)
{
    client *c = arg;
    int fd = dial(c->port);
    size_t bytes = strlen(c->request);
    for (c->n = 0; fd >= 0 && c->n < REQUESTS && bench_now() - c->begin < SECONDS; c->n++) {
        double start = bench_now();
        if (send(fd, c->request, bytes, MSG_NOSIGNAL) != (ssize_t)bytes || !hear(fd))
            break;
        c->times[c->n] = bench_now() - start;
    }
    if (fd >= 0)
        close(fd);
    return NULL;
}

static char *request_of(const work *w)
{
    char *body = malloc((size_t)(w->inputs * w->rows) * 12 + 1000),
         *all = malloc((size_t)(w->inputs * w->rows) * 12 + 2000);
    int n = sprintf(body,
                    "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[%lld,%lld],"
                    "\"data\":[",
                    (long long)w->rows, (long long)w->inputs);
    for (int64_t i = 0; i < w->inputs * w->rows; i++)
        n += sprintf(body + n, "%s%.4f", i > 0 ? "," : "", (double)(i % 97) / 97);
    n += sprintf(body + n, "]}]}");
    sprintf(all,
            "POST /v2/models/bench/infer HTTP/1.1\r\nHost: x\r\nContent-Type: "
            "application/json\r\nContent-Length: %d\r\n\r\n%s",
            n, body);
    free(body);
    return all;
}

// Seconds of tt_predict() for n records.
static double predict(tt_model *m, const float *x, float *y, int64_t n)
{
    double times[BENCH_MAX];
    for (int i = 0; i < BENCH_MAX; i++) {
        double start = bench_now();
        tt_predict(m, x, n, y, .raw = true, .batch = n);
        times[i] = bench_now() - start;
    }
    return bench_stat_of(times, BENCH_MAX).median;
}

static pid_t serve(const char *tutti, const char *folder, int *port)
{
    int out[2];
    char line[600] = "", path[300];
    size_t n = 0;
    snprintf(path, sizeof(path), "%s/bench.safetensors", folder);
    if (pipe(out) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], 1);
        close(out[0]);
        execl(tutti, tutti, "serve-model", path, "--listen", "127.0.0.1:0", "--quiet", NULL);
        _exit(127);
    }
    close(out[1]);
    for (ssize_t k; n < sizeof(line) - 1 && strchr(line, '\n') == NULL;) {
        k = read(out[0], line + n, sizeof(line) - 1 - n);
        if (k <= 0)
            break;
        line[n += (size_t)k] = '\0';
    }
    const char *at = strstr(line, "http://127.0.0.1:");
    *port = at != NULL ? atoi(at + 17) : 0;
    return pid;
}

// Requests a second of some clients; *median: seconds of a request.
static double load(int port, const char *request, int clients, double *median)
{
    static client all[CLIENTS];
    static double times[CLIENTS * REQUESTS];
    double begin = bench_now();
    int n = 0;
    for (int i = 0; i < clients; i++) {
        all[i] = (client){.port = port, .request = request, .begin = begin};
        all[i].times = calloc(REQUESTS, sizeof(double));
        pthread_create(&all[i].thread, NULL, run_client, &all[i]);
    }
    for (int i = 0; i < clients; i++) {
        pthread_join(all[i].thread, NULL);
        memcpy(times + n, all[i].times, sizeof(double) * (size_t)all[i].n);
        n += all[i].n;
        free(all[i].times);
    }
    double seconds = bench_now() - begin;
    qsort(times, (size_t)n, sizeof(times[0]), bench_by_value);
    *median = n > 0 ? times[n / 2] : 0;
    return n / seconds;
}

static void run(const work *w, const char *tutti, const char *folder)
{
    char path[300];
    tt_ctx *ctx = tt_open(.devices = "cpu:0");
    tt_model *m = tt_sequential(ctx, .input = {w->inputs}, .name = "x");
    for (int64_t i = 0; i < w->layers; i++)
        tt_layer_dense(m, .units = (int)w->hidden, .act = TT_RELU);
    tt_layer_dense(m, .units = 10);
    snprintf(path, sizeof(path), "%s/bench.safetensors", folder);
    tt_export(m, path);
    float *x = calloc((size_t)(64 * w->inputs), sizeof(*x)), *y = calloc(64 * 10, sizeof(*y));
    double one = predict(m, x, y, w->rows), batch = predict(m, x, y, 64);
    int port = 0;
    char *request = request_of(w);
    pid_t pid = tt_status_of(ctx) == TT_OK ? serve(tutti, folder, &port) : -1;
    if (port > 0) {
        double median = 0, crowd = 0;
        (void)load(port, request, 1, &median);
        double rate = load(port, request, CLIENTS, &crowd) * (double)w->rows;
        printf("  %-26s %9.3f %9.3f %9.3f %11.0f %11.0f %7.2f %9.3f\n", w->name, 1e3 * one,
               1e3 * median, 1e3 * (median - one), 64 / batch, rate, rate * batch / 64,
               1e3 * crowd);
    } else {
        printf("  %-26s the service does not start\n", w->name);
    }
    fflush(stdout);
    if (pid > 0) {
        kill(pid, SIGTERM);
        waitpid(pid, NULL, 0);
    }
    free(request);
    free(x);
    free(y);
    tt_close(ctx);
    unlink(path);
}

int main(int argc, char **argv)
{
    static const work works[] = {
        {"MLP 16-64-10", 16, 64, 1, 1},
        {"MLP 784-1024-1024-10", 784, 1024, 2, 1},
        {"the same, 8 records each", 784, 1024, 2, 8},
        {"MLP 64-4096-4096-10", 64, 4096, 2, 1},
    };
    char tutti[4096], folder[] = "/tmp/tutti-serve-XXXXXX";
    const char *slash = strrchr(argv[0], '/');
    snprintf(tutti, sizeof(tutti), "%.*s/../tutti", (int)(slash - argv[0]), argv[0]);
    if (argc > 1 || slash == NULL || access(tutti, X_OK) != 0 || mkdtemp(folder) == NULL) {
        fprintf(stderr, "serve: there is no %s\n", tutti);
        return 1;
    }
    printf("tutti serve-model on loopback; %d clients\n", CLIENTS);
    printf("  %-26s %9s %9s %9s %11s %11s %7s %9s\n", "model", "predict", "1 client", "added",
           "predict 64", "served", "of it", "latency");
    printf("  %-26s %9s %9s %9s %11s %11s %7s %9s\n", "", "ms", "ms", "ms", "records/s",
           "records/s", "", "ms");
    for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
        run(&works[i], tutti, folder);
    rmdir(folder);
    return 0;
}
