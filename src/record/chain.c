/*
 * chain.c - writes the chain of a run (chain.h), one line for each event that belongs to it.
 */
#include "record/chain.h"
#include "net/keys.h"
#include "record/link.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tti_chain {
    tt_ctx *ctx;
    int fd;     // -1: nothing is written
    bool tells; // false once a failure was told
    bool has_key;
    uint8_t key[TTI_CHAIN_KEY];
    char *about;
    char link[TTI_LINK]; // of the last line
    char path[TTI_PATH_MAX];
};

void tti_hex(const void *data, size_t bytes, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *b = data;
    for (size_t i = 0; i < bytes; i++) {
        out[2 * i] = digits[b[i] >> 4];
        out[2 * i + 1] = digits[b[i] & 15];
    }
    out[2 * bytes] = '\0';
}

bool tti_link_make(tt_ctx *ctx, const char *before, const char *body, size_t n, char out[TTI_LINK])
{
    size_t head = TTI_LINK - 1;
    char *text = tti_alloc(ctx, head + n + 1);
    if (text == NULL)
        return false;
    memcpy(text, before, head);
    memcpy(text + head, body, n);
    tti_digest d = tti_sha256(text, head + n);
    tti_free(ctx, text);
    tti_hex(d.byte, sizeof(d.byte), out);
    return true;
}

void tti_link_sign(const uint8_t key[TTI_CHAIN_KEY], const char *link, char out[TTI_LINK])
{
    tti_digest d = tti_hmac(key, TTI_CHAIN_KEY, link, TTI_LINK - 1);
    tti_hex(d.byte, sizeof(d.byte), out);
}

static void told(tti_chain *c, const char *what)
{
    int error = errno;
    if (!c->tells)
        return;
    c->tells = false;
    TT_LOG(c->ctx, TT_WARN, "cannot %s '%s': %s; the run will have no complete chain of hashes",
           what, c->path, strerror(error));
}

// Goes on behind the last whole line; what a killed run left of another is cut off.
static void find_end(tti_chain *c)
{
    struct stat st;
    char *text = NULL;
    memset(c->link, '0', TTI_LINK - 1);
    if (c->fd < 0 || fstat(c->fd, &st) != 0 || st.st_size == 0)
        return;
    size_t n = (size_t)st.st_size;
    text = tti_alloc(NULL, n + 1);
    if (text == NULL || pread(c->fd, text, n, 0) != (ssize_t)n) {
        tti_free(NULL, text);
        return;
    }
    while (n > 0 && text[n - 1] != '\n')
        n--;
    if ((off_t)n < st.st_size && ftruncate(c->fd, (off_t)n) != 0)
        told(c, "cut");
    text[n] = '\0';
    // "link": "..." of the last line that has one
    static const char word[] = TTI_LINK_WORD;
    for (char *at = text, *next; (next = strstr(at, word)) != NULL; at = next) {
        next += sizeof(word) - 1;
        if (strspn(next, "0123456789abcdef") == TTI_LINK - 1)
            memcpy(c->link, next, TTI_LINK - 1);
    }
    tti_free(NULL, text);
}

tt_status tti_chain_open(tt_ctx *ctx, const char *folder, const tti_chain_opts *o, tti_chain **out)
{
    tti_chain *c = tti_calloc(ctx, 1, sizeof(*c));
    if (c == NULL)
        return TT_ENOMEM;
    c->ctx = ctx;
    c->tells = true;
    c->about = o->about != NULL ? tti_strdup(ctx, o->about) : NULL;
    tt_status st = tti_file_join(ctx, c->path, folder, TTI_CHAIN);
    if (st == TT_OK && o->about != NULL && c->about == NULL)
        st = TT_ENOMEM;
    if (st != TT_OK) {
        tti_free(ctx, c->about);
        tti_free(ctx, c);
        return st;
    }
    if (o->key != NULL) {
        memcpy(c->key, o->key, sizeof(c->key));
        c->has_key = true;
    }
    c->fd = open(c->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
    struct stat file;
    if (c->fd >= 0 && (fstat(c->fd, &file) != 0 || !S_ISREG(file.st_mode))) {
        close(c->fd);
        c->fd = -1;
        errno = ESPIPE;
    }
    if (c->fd < 0)
        told(c, "open");
    find_end(c);
    *out = c;
    return TT_OK;
}

void tti_chain_close(tti_chain *c)
{
    if (c == NULL)
        return;
    if (c->fd >= 0)
        close(c->fd);
    explicit_bzero(c->key, sizeof(c->key));
    tti_free(c->ctx, c->about);
    tti_free(c->ctx, c);
}

static const tt_pair *find(const tt_event *ev, const char *name)
{
    for (int i = 0; i < ev->n_pairs; i++)
        if (strcmp(ev->pairs[i].name, name) == 0)
            return &ev->pairs[i];
    return NULL;
}

static bool add_text(tti_text *t, const tt_event *ev, const char *from, const char *to)
{
    const tt_pair *p = find(ev, from);
    if (p == NULL || p->text == NULL)
        return false;
    tti_text_add(t, ", \"%s\": \"%s\"", to, p->text);
    return true;
}

// The line as far as the event says it; false: it does not belong to the chain.
static bool begin_line(tti_chain *c, const tt_event *ev, tti_text *t)
{
    const tt_pair *step = find(ev, "step");
    long long at = step != NULL ? (long long)step->number : 0;
    if (strcmp(ev->kind, "begin") == 0) {
        tti_text_add(t, "{\"start\": %lld", at);
        if (c->about != NULL)
            tti_text_add(t, ", %s", c->about);
        return true;
    }
    if (strcmp(ev->kind, "hash") == 0) {
        tti_text_add(t, "{\"step\": %lld", at);
        return add_text(t, ev, "weights", "weights");
    }
    if (strcmp(ev->kind, "end") == 0) {
        tti_text_add(t, "{\"end\": %lld", at);
        return add_text(t, ev, "weights_hash", "weights");
    }
    if (strcmp(ev->kind, "checkpoint") != 0)
        return false;
    tti_text_add(t, "{\"checkpoint\": %lld", at);
    return add_text(t, ev, "weights", "weights") && add_text(t, ev, "optimizer", "optimizer") &&
           add_text(t, ev, "state", "state");
}

static void write_line(tti_chain *c, char *body, size_t n)
{
    char link[TTI_LINK], sign[TTI_LINK] = "";
    tti_text t = {0};
    if (!tti_link_make(NULL, c->link, body, n, link))
        return;
    if (c->has_key)
        tti_link_sign(c->key, link, sign);
    tti_text_put(&t, body, n);
    tti_text_add(&t, TTI_LINK_WORD "%s\"%s%s%s}\n", link, c->has_key ? ", \"sign\": \"" : "", sign,
                 c->has_key ? "\"" : "");
    char *line = tti_text_take(&t);
    size_t bytes = line != NULL ? strlen(line) : 0;
    off_t end = lseek(c->fd, 0, SEEK_END);
    if (line != NULL && write(c->fd, line, bytes) == (ssize_t)bytes) {
        memcpy(c->link, link, sizeof(c->link));
    } else {
        told(c, "write");
        if (end >= 0 && ftruncate(c->fd, end) != 0) // a part of a line would break the chain
            told(c, "cut");
    }
    tti_free(NULL, line);
}

void tti_chain_event(tti_chain *c, const tt_event *ev, int64_t log_bytes, tt_hash log_hash)
{
    tti_text t = {0}; // of no context: a lost line is told, but no error
    bool is_ours = c->fd >= 0 && begin_line(c, ev, &t);
    tti_text_add(&t, ", \"log\": %lld, \"log_hash\": \"%016llx%016llx\"", (long long)log_bytes,
                 (unsigned long long)log_hash.high, (unsigned long long)log_hash.low);
    char *body = tti_text_take(&t);
    if (is_ours && body != NULL)
        write_line(c, body, strlen(body));
    tti_free(NULL, body);
}
