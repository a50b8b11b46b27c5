/*
 * serve_http.c - HTTP of a service, by libmicrohttpd: paths, the token, limits. A request that
 * waits for the model is suspended, so one thread serves all connections.
 */
#include "cli/serve_model.h"

#ifndef TUTTI_HAVE_MICROHTTPD

bool cli_http_start(cli_service *s, const char *listen)
{
    (void)s, (void)listen;
    (void)cli_error("this build cannot serve: install libmicrohttpd-dev and run make again");
    return false;
}

void cli_http_drain(cli_service *s)
{
    (void)s;
}

void cli_http_stop(cli_service *s)
{
    (void)s;
}

#else

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define CONNECTIONS 4096
#define JSON        "application/json"

typedef enum MHD_Result result;

// ---- answers ---------------------------------------------------------------------------------

static result answer(cli_service *s, struct MHD_Connection *c, int code, const char *type,
                     tti_text *t)
{
    char *text = tti_text_take(t);
    if (text == NULL)
        return MHD_NO; // out of memory: the connection is closed
    struct MHD_Response *r =
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_COPY);
    tti_free(NULL, text);
    if (r == NULL)
        return MHD_NO;
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (code == 401)
        MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (code == 503)
        MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (atomic_load(&s->is_draining))
        MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
    result done = MHD_queue_response(c, (unsigned)code, r);
    MHD_destroy_response(r);
    return done;
}

static result answer_error(cli_service *s, struct MHD_Connection *c, const cli_request *r)
{
    tti_text t = {0};
    tti_text_add(&t, "{\"error\": ");
    tti_text_json(&t, r->error);
    tti_text_add(&t, "}\n");
    return answer(s, c, r->code, JSON, &t);
}

static result answer_request(cli_service *s, struct MHD_Connection *c, const cli_request *r)
{
    tti_text t = {0};
    cli_serve_count(s, r);
    if (r->code != 200)
        return answer_error(s, c, r);
    cli_serve_print(s, r, &t);
    return answer(s, c, 200, JSON, &t);
}

// ---- paths -----------------------------------------------------------------------------------

static result say(cli_service *s, struct MHD_Connection *c, int code, const char *json)
{
    tti_text t = {0};
    tti_text_add(&t, "%s\n", json);
    return answer(s, c, code, JSON, &t);
}

// What follows /v2/models/NAME; NULL: it is another path.
static const char *of_model(const cli_service *s, const char *url)
{
    static const char head[] = "/v2/models/", version[] = "/versions/1";
    size_t n = strlen(s->name);
    if (strncmp(url, head, sizeof(head) - 1) != 0 ||
        strncmp(url + sizeof(head) - 1, s->name, n) != 0)
        return NULL;
    url += sizeof(head) - 1 + n;
    if (strncmp(url, version, sizeof(version) - 1) == 0)
        url += sizeof(version) - 1;
    return url[0] == '\0' || url[0] == '/' ? url : NULL;
}

static bool is_infer(const cli_service *s, const char *url)
{
    const char *rest = of_model(s, url);
    return rest != NULL && strcmp(rest, "/infer") == 0;
}

static bool is_serving(cli_service *s)
{
    return atomic_load(&s->is_ready) && !atomic_load(&s->is_draining) && !atomic_load(&s->is_lost);
}

static result get(cli_service *s, struct MHD_Connection *c, const char *url, cli_request *r)
{
    tti_text t = {0};
    const char *rest = of_model(s, url);
    if (strcmp(url, "/v2/health/live") == 0)
        return say(s, c, 200, "{\"live\": true}");
    if (strcmp(url, "/v2/health/ready") == 0 || (rest != NULL && strcmp(rest, "/ready") == 0))
        return is_serving(s) ? say(s, c, 200, "{\"ready\": true}")
                             : say(s, c, 503, "{\"ready\": false}");
    if (strcmp(url, "/v2") == 0 || strcmp(url, "/v2/") == 0)
        return say(s, c, 200,
                   "{\"name\": \"tutti\", \"version\": \"" TT_VERSION "\", \"extensions\": []}");
    if (strcmp(url, "/metrics") == 0) {
        cli_serve_metrics(s, &t);
        return answer(s, c, 200, "text/plain; version=0.0.4", &t);
    }
    if (rest != NULL && rest[0] == '\0') {
        cli_serve_describe(s, &t);
        return answer(s, c, 200, JSON, &t);
    }
    if (is_infer(s, url))
        (void)cli_request_fail(r, 405, "%.200s takes POST", url);
    else
        (void)cli_request_fail(r, 404, "there is no %.200s; the model is /v2/models/%s", url,
                               s->name);
    return answer_error(s, c, r);
}

// ---- who may, and how much -------------------------------------------------------------------

// Takes the same time wherever they differ.
static bool is_token(const cli_service *s, const char *given)
{
    size_t n = strlen(s->token), m = strlen(given);
    unsigned char differ = n != m;
    for (size_t i = 0; i < n; i++)
        differ |= (unsigned char)(s->token[i] ^ given[m > 0 ? i % m : 0]);
    return differ == 0;
}

static bool may(const cli_service *s, struct MHD_Connection *c, const char *url)
{
    static const char scheme[] = "Bearer ";
    const char *given = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
    if (s->token[0] == '\0' || strncmp(url, "/v2/health/", 11) == 0)
        return true;
    return given != NULL && strncmp(given, scheme, sizeof(scheme) - 1) == 0 &&
           is_token(s, given + sizeof(scheme) - 1);
}

// Headers alone: what can be refused before the body comes.
static bool check_head(cli_service *s, struct MHD_Connection *c, const char *url,
                       const char *method, cli_request *r)
{
    const char *type = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Type"),
               *length = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Length");
    if (!may(s, c, url))
        return cli_request_fail(r, 401,
                                "the header 'Authorization: Bearer TOKEN' is missing or "
                                "has another token");
    if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
        return true;
    if (strcmp(method, "POST") != 0)
        return cli_request_fail(r, 405, "the method %.20s is not supported", method);
    if (!is_infer(s, url))
        return cli_request_fail(r, 404, "there is no %.200s; POST goes to /v2/models/%s/infer", url,
                                s->name);
    if (type == NULL || strncasecmp(type, JSON, sizeof(JSON) - 1) != 0)
        return cli_request_fail(r, 415, "Content-Type is %.60s; it must be " JSON,
                                type != NULL ? type : "missing");
    if (length != NULL && strtoull(length, NULL, 10) > s->body_max)
        return cli_request_fail(r, 413, "the body has %.20s bytes; at most %zu are taken", length,
                                s->body_max);
    if (!is_serving(s))
        return cli_request_fail(r, 503, "the service is ending");
    return true;
}

static bool add_body(const cli_service *s, cli_request *r, const char *data, size_t n)
{
    if (r->code != 0)
        return true; // refused already; what comes is thrown away
    if (n > s->body_max - r->n)
        return cli_request_fail(r, 413, "the body has more than %zu bytes", s->body_max);
    if (r->n + n > r->cap) {
        size_t cap = TTI_MAX(TTI_MIN(2 * r->cap, s->body_max), r->n + n);
        char *more = realloc(r->body, cap);
        if (more == NULL)
            return cli_request_fail(r, 500, "out of memory");
        r->body = more;
        r->cap = cap;
    }
    memcpy(r->body + r->n, data, n);
    r->n += n;
    return true;
}

// ---- one call of the library -----------------------------------------------------------------

static void wake(cli_request *r)
{
    MHD_resume_connection(r->connection);
}

// The body is here: to the worker.
static result submit(cli_service *s, struct MHD_Connection *c, cli_request *r)
{
    if (r->code != 0 || !cli_serve_parse(s, r))
        return answer_request(s, c, r);
    r->connection = c;
    MHD_suspend_connection(c);
    if (tti_queue_push(&s->queue, r, 0) == TT_OK)
        return MHD_YES;
    (void)cli_request_fail(r, 503, "%lld requests wait already; try again",
                           (long long)s->queue_size);
    atomic_store(&r->is_done, true);
    MHD_resume_connection(c); // and this is called again
    return MHD_YES;
}

static result on_request(void *arg, struct MHD_Connection *c, const char *url, const char *method,
                         const char *version, const char *data, size_t *n, void **own)
{
    cli_service *s = arg;
    cli_request *r = *own;
    (void)version;
    if (r == NULL) {
        r = calloc(1, sizeof(*r));
        if (r == NULL)
            return MHD_NO;
        *own = r;
        r->begin_ns = tti_now_ns();
        atomic_fetch_add(&s->in_flight, 1);
        if (!check_head(s, c, url, method, r)) {
            cli_serve_count(s, r);
            return answer_error(s, c, r);
        }
        return MHD_YES;
    }
    if (atomic_load(&r->is_done))
        return answer_request(s, c, r);
    if (*n > 0) {
        if (tti_now_ns() - r->begin_ns > (int64_t)s->timeout_s * 1000000000)
            return MHD_NO; // a body that comes drop by drop
        (void)add_body(s, r, data, *n);
        *n = 0;
        return MHD_YES;
    }
    if (strcmp(method, "POST") != 0)
        return get(s, c, url, r);
    return submit(s, c, r);
}

static void on_end(void *arg, struct MHD_Connection *c, void **own,
                   enum MHD_RequestTerminationCode why)
{
    cli_service *s = arg;
    (void)c, (void)why;
    if (*own == NULL)
        return;
    cli_request_free(*own);
    *own = NULL;
    atomic_fetch_sub(&s->in_flight, 1);
}

// ---- life ------------------------------------------------------------------------------------

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

// "HOST:PORT", "[::1]:PORT", "PORT".
static struct addrinfo *find_address(const char *text)
{
    char host[256] = "127.0.0.1";
    const char *colon = strrchr(text, ':'), *port = colon != NULL ? colon + 1 : text;
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM},
                    *found = NULL;
    if (colon != NULL) {
        bool square = text[0] == '[' && colon > text + 1 && colon[-1] == ']';
        snprintf(host, sizeof(host), "%.*s", (int)(colon - text) - (square ? 2 : 0),
                 text + (square ? 1 : 0));
    }
    char *end;
    unsigned long number = strtoul(port, &end, 10);
    if (*port < '0' || *port > '9' || *end != '\0' || number > 65535) {
        (void)cli_error("--listen: '%s' has no port from 0 to 65535; use HOST:PORT, as "
                        "127.0.0.1:8000",
                        text);
        return NULL;
    }
    int rc = getaddrinfo(host, port, &hints, &found);
    if (rc == 0)
        return found;
    (void)cli_error("--listen: '%s': %s; use HOST:PORT, as 127.0.0.1:8000", text, gai_strerror(rc));
    return NULL;
}

// Connections are files: as many as the system lets this process have.
static void raise_limit(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur >= CONNECTIONS + 256)
        return;
    l.rlim_cur = l.rlim_max == RLIM_INFINITY ? CONNECTIONS + 256
                                             : TTI_MIN(l.rlim_max, (rlim_t)CONNECTIONS + 256);
    (void)setrlimit(RLIMIT_NOFILE, &l);
}

bool cli_http_start(cli_service *s, const char *listen)
{
    struct addrinfo *a = find_address(listen);
    char host[256];
    if (a == NULL)
        return false;
    if (!is_loopback(a->ai_addr) && s->token[0] == '\0') {
        freeaddrinfo(a);
        (void)cli_usage("--listen: '%s' can be reached from other machines, so a token is needed: "
                        "--token FILE",
                        listen);
        return false;
    }
    raise_limit();
    s->wake = wake;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    if (a->ai_family == AF_INET6)
        flags |= MHD_USE_IPv6;
    struct MHD_Daemon *d = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, s, MHD_OPTION_SOCK_ADDR, a->ai_addr,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)s->timeout_s, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS, MHD_OPTION_NOTIFY_COMPLETED, on_end, s, MHD_OPTION_END);
    getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof(host), NULL, 0, NI_NUMERICHOST);
    bool is_v6 = a->ai_family == AF_INET6;
    freeaddrinfo(a);
    if (d == NULL) {
        (void)cli_error("cannot listen on %s: %s", listen, strerror(errno));
        return false;
    }
    s->daemon = d;
    const union MHD_DaemonInfo *port = MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT);
    snprintf(s->url, sizeof(s->url), is_v6 ? "http://[%s]:%d" : "http://%s:%d", host,
             port != NULL ? port->port : 0);
    return true;
}

/*
 * Requests that have come are answered. One whose headers are just being read is not counted yet,
 * so the count must stay at zero for a moment.
 */
void cli_http_drain(cli_service *s)
{
    int64_t deadline = tti_now_ns() + ((int64_t)s->timeout_s + 5) * 1000000000, quiet = 0;
    atomic_store(&s->is_draining, true);
    int fd = MHD_quiesce_daemon(s->daemon);
    while (tti_now_ns() < deadline && quiet < 20) {
        quiet = atomic_load(&s->in_flight) == 0 ? quiet + 1 : 0;
        usleep(5000);
    }
    if (fd >= 0)
        close(fd);
}

void cli_http_stop(cli_service *s)
{
    if (s->daemon != NULL)
        MHD_stop_daemon(s->daemon);
}

#endif
