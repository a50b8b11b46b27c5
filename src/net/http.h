/*
 * http.h - requests to a web server, for those who are told about a run: HTTP/1.1 over TCP, one
 * connection a request. https:// goes through libcurl, which is looked for when it is needed.
 *
 * A request has a deadline, writes nothing to a log and records no error: who asks decides what a
 * server that cannot be reached means. Only the names of hosts are looked up without a deadline of
 * ours; the system's resolver has its own.
 */
#ifndef TUTTI_NET_HTTP_H
#define TUTTI_NET_HTTP_H

#include "base/base.h"

#define TTI_URL_MAX  1024
#define TTI_HTTP_WHY 320
#define TTI_HTTP_MS  5000 // of a request, unless a sooner moment is given

typedef struct tti_url {
    bool is_https;
    char host[256];          // without brackets
    char port[8];            // "80"
    char user[256];          // "name:password", or ""
    char path[TTI_URL_MAX];  // from the first '/', "/" at least
    char shown[TTI_URL_MAX]; // without user and password, for messages
} tti_url;

/*
 * Reads an address, "http://host:5000/path"; "$NAME" is the value of that variable of the
 * environment, so that no file needs to hold an address that is secret. key names the option in
 * messages. Fails with TT_EINVAL.
 */
tt_status tti_url_read(tt_ctx *ctx, const char *key, const char *text, tti_url *out) TTI_CHECKED;

typedef struct tti_http {
    const tti_url *url;
    const char *path;                // under that of url, "/api/x"; NULL: none
    const char *body;                // JSON; NULL: a GET
    const char *token;               // sent as "Authorization: Bearer"; NULL: none
    const _Atomic int64_t *until_ns; // a moment of tti_now_ns() that may come closer meanwhile; or
                                     // NULL
} tti_http;

/*
 * Sends a request and waits for the answer: its status, 200 and so on, and its body in *answer
 * (may be NULL), to be freed with tti_free(NULL, ...). 0: there is no answer, and why says the
 * cause. For a status of 300 and more, why has it in words.
 */
int tti_http_send(const tti_http *request, char **answer, char why[TTI_HTTP_WHY]);

// Of http_curl.c, for https.
int tti_http_curl(const tti_http *request, tti_text *answer, char why[TTI_HTTP_WHY]);
int64_t tti_http_left_ms(const tti_http *request, int64_t begin_ns); // at most 0: it is over

#endif
