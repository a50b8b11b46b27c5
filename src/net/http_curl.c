/*
 * http_curl.c - requests over TLS through libcurl (http.h), which is loaded when the first is made.
 * The numbers of its options are part of its binary interface and never change.
 */
#include "net/http.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum {
    WRITEDATA = 10001,
    URL = 10002,
    POSTFIELDS = 10015,
    HTTPHEADER = 10023,
    USERPWD = 10005,
    CAINFO = 10065,
    USERAGENT = 10018,
    WRITEFUNCTION = 20011,
    NOSIGNAL = 99,
    TIMEOUT_MS = 155,
    RESPONSE_CODE = 0x200002,
};

typedef struct curl {
    void *library;
    void *(*easy_init)(void);
    int (*easy_setopt)(void *, int, ...);
    int (*easy_perform)(void *);
    int (*easy_getinfo)(void *, int, ...);
    void (*easy_cleanup)(void *);
    const char *(*easy_strerror)(int);
    void *(*slist_append)(void *, const char *);
    void (*slist_free_all)(void *);
} curl;

static bool load(curl *c)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"};
    const struct {
        const char *name;
        void *to;
    } functions[] = {
        {"curl_easy_init", &c->easy_init},       {"curl_easy_setopt", &c->easy_setopt},
        {"curl_easy_perform", &c->easy_perform}, {"curl_easy_getinfo", &c->easy_getinfo},
        {"curl_easy_cleanup", &c->easy_cleanup}, {"curl_easy_strerror", &c->easy_strerror},
        {"curl_slist_append", &c->slist_append}, {"curl_slist_free_all", &c->slist_free_all},
    };
    for (int i = 0; i < TTI_COUNT(names) && c->library == NULL; i++)
        c->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (c->library == NULL)
        return false;
    for (int i = 0; i < TTI_COUNT(functions); i++) {
        void *f = dlsym(c->library, functions[i].name);
        if (f == NULL)
            return false;
        memcpy(functions[i].to, &f, sizeof(f)); // no cast turns data into a function
    }
    return true;
}

static size_t on_data(const char *data, size_t size, size_t n, void *user)
{
    tti_text_put(user, data, size * n);
    return size * n;
}

int tti_http_curl(const tti_http *q, tti_text *answer, char why[TTI_HTTP_WHY])
{
    curl c = {0};
    const tti_url *u = q->url;
    char url[2 * TTI_URL_MAX], line[600];
    long status = 0, left = (long)tti_http_left_ms(q, tti_now_ns());
    bool is_v6 = strchr(u->host, ':') != NULL;
    if (!load(&c)) {
        snprintf(why, TTI_HTTP_WHY,
                 "https needs libcurl, which is not installed (Debian: libcurl4); or use http://");
        return 0;
    }
    if (left <= 0) {
        snprintf(why, TTI_HTTP_WHY, "no answer in time (%.100s)", u->shown);
        return 0;
    }
    size_t n = strlen(u->path) - (q->path != NULL && u->path[strlen(u->path) - 1] == '/');
    snprintf(url, sizeof(url), "https://%s%s%s:%s%.*s%s", is_v6 ? "[" : "", u->host,
             is_v6 ? "]" : "", u->port, (int)n, u->path, q->path != NULL ? q->path : "");
    void *h = c.easy_init();
    void *headers = c.slist_append(NULL, "Content-Type: application/json");
    if (headers !=
        NULL) // libcurl would ask first, and wait a second for servers that do not answer
        headers = c.slist_append(headers, "Expect:");
    if (q->token != NULL && headers != NULL) {
        snprintf(line, sizeof(line), "Authorization: Bearer %s", q->token);
        headers = c.slist_append(headers, line);
    }
    if (h == NULL || headers == NULL) {
        snprintf(why, TTI_HTTP_WHY, "out of memory");
    } else {
        const char *roots = tti_env("SSL_CERT_FILE");
        c.easy_setopt(h, URL, url);
        c.easy_setopt(h, USERAGENT, "tutti/" TT_VERSION);
        c.easy_setopt(h, HTTPHEADER, headers);
        c.easy_setopt(h, NOSIGNAL, 1L);
        c.easy_setopt(h, TIMEOUT_MS, left);
        c.easy_setopt(h, WRITEFUNCTION, on_data);
        c.easy_setopt(h, WRITEDATA, answer);
        if (q->body != NULL)
            c.easy_setopt(h, POSTFIELDS, q->body);
        if (u->user[0] != '\0' && q->token == NULL)
            c.easy_setopt(h, USERPWD, u->user);
        if (roots != NULL)
            c.easy_setopt(h, CAINFO, roots);
        int rc = c.easy_perform(h);
        if (rc != 0)
            snprintf(why, TTI_HTTP_WHY, "%s (%.100s)", c.easy_strerror(rc), u->shown);
        else
            c.easy_getinfo(h, RESPONSE_CODE, &status);
    }
    c.slist_free_all(headers);
    if (h != NULL)
        c.easy_cleanup(h);
    return (int)status; // the library stays loaded: it may have threads and state of its own
}
