/*
 * http.c - requests over plain TCP (http.h). The answer is read as far as its length, its chunks or
 * the end of the connection say, and at most ANSWER_MAX of it.
 */
#include "net/http.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MAX (1 << 20)
#define SLICE_MS   50 // of a wait, after which the deadline is looked at again

// ---- addresses -------------------------------------------------------------------------------

static tt_status bad_url(tt_ctx *ctx, const char *key, const char *text, const char *what)
{
    return TT_FAIL(ctx, TT_EINVAL,
                   "%s '%.200s' %s; write http://HOST:PORT/PATH, https://..., or $NAME for a "
                   "variable of the environment that holds it",
                   key, text, what);
}

// The host and the port, "host", "host:5000", "[::1]:5000".
static bool read_host(const char *s, size_t n, tti_url *out)
{
    char text[sizeof(out->host) + sizeof(out->port)];
    if (n == 0 || n >= sizeof(text))
        return false;
    memcpy(text, s, n);
    text[n] = '\0';
    char *host = text, *end = text + n, *colon;
    if (text[0] == '[') {
        char *close = strchr(text, ']');
        if (close == NULL)
            return false;
        host = text + 1;
        *close = '\0';
        colon = close + 1 < end ? close + 1 : NULL;
        if (colon != NULL && *colon != ':')
            return false;
    } else {
        colon = strchr(text, ':');
    }
    snprintf(out->port, sizeof(out->port), "%s", out->is_https ? "443" : "80");
    if (colon != NULL) {
        size_t digits = strspn(colon + 1, "0123456789");
        long port = strtol(colon + 1, NULL, 10);
        if (digits == 0 || colon[1 + digits] != '\0' || port < 1 || port > 65535)
            return false;
        snprintf(out->port, sizeof(out->port), "%ld", port);
        *colon = '\0';
    }
    return snprintf(out->host, sizeof(out->host), "%s", host) < (int)sizeof(out->host) &&
           host[0] != '\0';
}

tt_status tti_url_read(tt_ctx *ctx, const char *key, const char *text, tti_url *out)
{
    const char *given = text;
    *out = (tti_url){.path = "/"};
    if (text[0] == '$') {
        text = tti_env(text + 1);
        if (text == NULL || text[0] == '\0')
            return TT_FAIL(ctx, TT_EINVAL,
                           "%s is '%.200s', but the environment has no such variable; set it to an "
                           "address, http://HOST:PORT/PATH",
                           key, given);
    }
    // What a variable holds is not shown: it may be secret.
    const char *shown = given[0] == '$' ? given : text;
    for (const char *c = text; *c != '\0'; c++)
        if (!isgraph((unsigned char)*c))
            return bad_url(ctx, key, shown, "has a character that no address has");
    out->is_https = strncasecmp(text, "https://", 8) == 0;
    if (!out->is_https && strncasecmp(text, "http://", 7) != 0)
        return bad_url(ctx, key, shown, "is not an address");
    const char *s = text + (out->is_https ? 8 : 7);
    size_t n = strcspn(s, "/?#");
    const char *at = memrchr(s, '@', n);
    if (at != NULL && (size_t)(at - s) >= sizeof(out->user))
        return bad_url(ctx, key, shown, "has a user name that is too long");
    if (at != NULL) {
        memcpy(out->user, s, (size_t)(at - s));
        n -= (size_t)(at + 1 - s);
        s = at + 1;
    }
    if (!read_host(s, n, out))
        return bad_url(ctx, key, shown, "has no host, or a port that is not from 1 to 65535");
    if (strlen(s + n) >= sizeof(out->path) - 8)
        return bad_url(ctx, key, shown, "is too long");
    if (s[n] != '\0' && s[n] != '#')
        snprintf(out->path, sizeof(out->path), "%s%.*s", s[n] == '/' ? "" : "/",
                 (int)strcspn(s + n, "#"), s + n);
    if (given[0] == '$')
        snprintf(out->shown, sizeof(out->shown), "%.200s", given);
    else
        snprintf(out->shown, sizeof(out->shown), "http%s://%.*s", out->is_https ? "s" : "",
                 (int)sizeof(out->shown) - 16, s);
    return TT_OK;
}

// ---- waiting ---------------------------------------------------------------------------------

int64_t tti_http_left_ms(const tti_http *request, int64_t begin_ns)
{
    int64_t now = tti_now_ns(), end = begin_ns + TTI_HTTP_MS * INT64_C(1000000);
    if (request->until_ns != NULL)
        end = TTI_MIN(end, atomic_load(request->until_ns));
    return (end - now) / 1000000;
}

typedef struct connection {
    const tti_http *request;
    int64_t begin_ns;
    int fd;
    char *why;
} connection;

static bool fails(connection *c, const char *what, int error)
{
    const tti_url *u = c->request->url;
    snprintf(c->why, TTI_HTTP_WHY, "%s%s%s (%.100s)", what, error != 0 ? ": " : "",
             error != 0 ? strerror(error) : "", u->shown);
    return false;
}

static bool ready(connection *c, short events)
{
    for (;;) {
        int64_t left = tti_http_left_ms(c->request, c->begin_ns);
        struct pollfd p = {.fd = c->fd, .events = events};
        if (left <= 0)
            return fails(c, "no answer in time", 0);
        int n = poll(&p, 1, (int)TTI_MIN(left, SLICE_MS));
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return fails(c, "cannot wait for an answer", errno);
    }
}

// ---- a connection ----------------------------------------------------------------------------

static bool connect_to(connection *c, const struct addrinfo *a)
{
    int error = 0;
    socklen_t size = sizeof(error);
    c->fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    if (c->fd < 0)
        return fails(c, "cannot open a socket", errno);
    if (connect(c->fd, a->ai_addr, a->ai_addrlen) == 0)
        return true;
    if (errno != EINPROGRESS)
        return fails(c, "cannot connect", errno);
    if (!ready(c, POLLOUT))
        return fails(c, "cannot connect in time", 0);
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    return error == 0 || fails(c, "cannot connect", error);
}

static bool open_connection(connection *c)
{
    const tti_url *u = c->request->url;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int rc = getaddrinfo(u->host, u->port, &hints, &list);
    if (rc != 0) {
        snprintf(c->why, TTI_HTTP_WHY, "cannot find host '%.100s': %s", u->host, gai_strerror(rc));
        return false;
    }
    bool is_open = fails(c, "the host has no address", 0);
    for (const struct addrinfo *a = list; a != NULL && !is_open; a = a->ai_next) {
        if (c->fd >= 0)
            close(c->fd);
        is_open = connect_to(c, a);
    }
    freeaddrinfo(list);
    return is_open;
}

static bool send_all(connection *c, const char *s, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(c->fd, s, n, MSG_NOSIGNAL);
        if (sent > 0) {
            s += sent;
            n -= (size_t)sent;
        } else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (!ready(c, POLLOUT))
                return false;
        } else if (errno != EINTR) {
            return fails(c, "the connection broke", errno);
        }
    }
    return true;
}

// ---- requests --------------------------------------------------------------------------------

static void put_base64(tti_text *t, const char *s)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)(uint8_t)s[i] << 16;
        v |= i + 1 < n ? (uint32_t)(uint8_t)s[i + 1] << 8 : 0;
        v |= i + 2 < n ? (uint8_t)s[i + 2] : 0;
        char four[4] = {digits[v >> 18], digits[v >> 12 & 63],
                        i + 1 < n ? digits[v >> 6 & 63] : '=', i + 2 < n ? digits[v & 63] : '='};
        tti_text_put(t, four, 4);
    }
}

static char *request_text(const tti_http *q)
{
    const tti_url *u = q->url;
    tti_text t = {0};
    bool is_v6 = strchr(u->host, ':') != NULL;
    // Paths are put together with one '/' in between.
    size_t n = strlen(u->path);
    if (q->path != NULL && n > 0 && u->path[n - 1] == '/')
        n--;
    tti_text_add(&t,
                 "%s %.*s%s HTTP/1.1\r\nHost: %s%s%s:%s\r\nUser-Agent: tutti/" TT_VERSION "\r\n",
                 q->body != NULL ? "POST" : "GET", (int)n, u->path, q->path != NULL ? q->path : "",
                 is_v6 ? "[" : "", u->host, is_v6 ? "]" : "", u->port);
    tti_text_add(&t, "Accept: application/json\r\nConnection: close\r\n");
    if (q->token != NULL) {
        tti_text_add(&t, "Authorization: Bearer %s\r\n", q->token);
    } else if (u->user[0] != '\0') {
        tti_text_add(&t, "Authorization: Basic ");
        put_base64(&t, u->user);
        tti_text_add(&t, "\r\n");
    }
    if (q->body != NULL)
        tti_text_add(&t, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                     strlen(q->body));
    tti_text_add(&t, "\r\n");
    return tti_text_take(&t);
}

// ---- answers ---------------------------------------------------------------------------------

// The value of a header; NULL: it has none. The text up to *end is the head.
static const char *header(const char *head, const char *end, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = head; line < end;) {
        const char *next = memmem(line, (size_t)(end - line), "\r\n", 2);
        if (strncasecmp(line, name, n) == 0 && line[n] == ':')
            return line + n + 1 + strspn(line + n + 1, " \t");
        line = next != NULL ? next + 2 : end;
    }
    return NULL;
}

// Appends the chunks of body to out as far as they are there; true once the last one is.
static bool take_chunks(const char *body, size_t n, tti_text *out)
{
    for (size_t at = 0; at < n;) {
        char *end = NULL;
        const char *line = memmem(body + at, n - at, "\r\n", 2);
        if (line == NULL)
            return false;
        unsigned long long size = strtoull(body + at, &end, 16);
        if (end == body + at || size > ANSWER_MAX)
            return true; // no chunk: what came so far is all
        at = (size_t)(line + 2 - body);
        if (size == 0)
            return true;
        if (n - at < size + 2)
            return false;
        tti_text_put(out, body + at, (size_t)size);
        at += (size_t)size + 2;
    }
    return false;
}

// Is the answer complete? Then *out has its body.
static bool is_complete(const tti_text *got, bool is_over, tti_text *out)
{
    const char *end = got->n > 0 ? memmem(got->s, (size_t)got->n, "\r\n\r\n", 4) : NULL;
    if (end == NULL)
        return is_over;
    const char *body = end + 4;
    size_t n = (size_t)(got->s + got->n - body);
    const char *length = header(got->s, end, "Content-Length");
    const char *coding = header(got->s, end, "Transfer-Encoding");
    if (coding != NULL && strncasecmp(coding, "chunked", 7) == 0) {
        tti_text_free(out);
        *out = (tti_text){0};
        return take_chunks(body, n, out) || is_over;
    }
    size_t want = length != NULL ? (size_t)strtoull(length, NULL, 10) : SIZE_MAX;
    if (n < want && !is_over)
        return false;
    tti_text_put(out, body, TTI_MIN(n, want));
    return true;
}

static int read_answer(connection *c, tti_text *body)
{
    char part[4096];
    tti_text got = {0};
    bool is_over = false;
    int status = 0;
    while (!is_complete(&got, is_over, body) && !is_over) {
        ssize_t n = recv(c->fd, part, sizeof(part), 0);
        if (n > 0) {
            tti_text_put(&got, part, (size_t)n);
            is_over = got.n > ANSWER_MAX || got.failed;
        } else if (n == 0) {
            is_over = true;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!ready(c, POLLIN)) {
                tti_text_free(&got);
                return 0;
            }
        } else if (errno != EINTR) {
            fails(c, "the connection broke", errno);
            tti_text_free(&got);
            return 0;
        }
    }
    if (got.s == NULL || sscanf(got.s, "HTTP/1.%*1d %3d", &status) != 1) {
        fails(c, "the answer is not that of a web server", 0);
        status = 0;
    }
    tti_text_free(&got);
    return status;
}

static int send_plain(const tti_http *request, tti_text *body, char *why)
{
    connection c = {.request = request, .begin_ns = tti_now_ns(), .fd = -1, .why = why};
    char *head = request_text(request);
    int status = 0;
    if (head == NULL)
        fails(&c, "out of memory", 0);
    else if (open_connection(&c) && send_all(&c, head, strlen(head)) &&
             (request->body == NULL || send_all(&c, request->body, strlen(request->body))))
        status = read_answer(&c, body);
    if (c.fd >= 0)
        close(c.fd);
    tti_free(NULL, head);
    return status;
}

int tti_http_send(const tti_http *request, char **answer, char why[TTI_HTTP_WHY])
{
    tti_text body = {0};
    why[0] = '\0';
    tti_text_put(&body, "", 0);
    int status = request->url->is_https ? tti_http_curl(request, &body, why)
                                        : send_plain(request, &body, why);
    char *text = tti_text_take(&body);
    if (status >= 300) {
        char said[120];
        snprintf(said, sizeof(said), "%s", text != NULL ? text : "");
        for (char *s = said; *s != '\0'; s++)
            *s = *s > 0 && iscntrl((unsigned char)*s) ? ' ' : *s;
        snprintf(why, TTI_HTTP_WHY, "it answered %d%s%.100s (%.100s%.80s)", status,
                 said[0] != '\0' ? ": " : "", said, request->url->shown,
                 request->path != NULL ? request->path : "");
    }
    if (answer != NULL)
        *answer = text;
    else
        tti_free(NULL, text);
    return status;
}
