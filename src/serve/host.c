/*
 * host.c - what a task has for all its clients: containers with variables and queues.
 *
 * A container is found by name and made when it is first used. Who uses it keeps a reference, so
 * that one that is cleared meanwhile goes with its last user; it is marked, and its queues are
 * cancelled.
 */
#include "serve/serve.h"
#include <string.h>

tt_status tti_host_init(tt_ctx *ctx, tti_host *h)
{
    pthread_mutex_init(&h->mu, NULL);
    h->started_ns = tti_now_ns();
    tti_container *c = tti_container_get(h, "", true);
    if (c == NULL)
        return TT_FAIL(ctx, TT_ENOMEM, "server: out of memory");
    tti_container_release(c);
    return TT_OK;
}

void tti_host_deinit(tt_ctx *ctx, tti_host *h)
{
    (void)tti_containers_clear(h, NULL, true);
    pthread_mutex_destroy(&h->mu);
    tti_spec_free(ctx, &h->spec);
    tti_loopback_key_end(&h->key.file);
    explicit_bzero(h->key.secret, sizeof(h->key.secret));
}

tti_container *tti_container_new(const char *name)
{
    tti_container *c = tti_calloc(NULL, 1, sizeof(*c));
    tt_store *store = c == NULL ? NULL : tt_store_new();
    if (store == NULL) {
        tti_free(NULL, c);
        return NULL;
    }
    strncpy(c->name, name, sizeof(c->name) - 1);
    atomic_store(&c->refs, 1);
    c->store = store;
    pthread_mutex_init(&c->mu, NULL);
    return c;
}

tti_container *tti_container_get(tti_host *h, const char *name, bool make)
{
    pthread_mutex_lock(&h->mu);
    tti_container *c = h->containers;
    while (c != NULL && strcmp(c->name, name) != 0)
        c = c->next;
    if (c == NULL && make) {
        c = tti_container_new(name); // this reference is the list's
        if (c != NULL) {
            c->next = h->containers;
            h->containers = c;
        }
    }
    if (c != NULL)
        atomic_fetch_add(&c->refs, 1);
    pthread_mutex_unlock(&h->mu);
    return c;
}

void tti_container_release(tti_container *c)
{
    if (c == NULL || atomic_fetch_sub(&c->refs, 1) > 1)
        return;
    for (tti_queue_core *q = c->queues, *next; q != NULL; q = next) {
        next = q->next;
        tti_queue_core_release(q);
    }
    pthread_mutex_destroy(&c->mu);
    tt_store_release(c->store);
    tti_free(NULL, c);
}

void tti_container_end(tti_host *h, tti_container *c)
{
    pthread_mutex_lock(&h->mu);
    bool last = atomic_load(&c->refs) == 2; // the list's, and the caller's
    for (tti_container **at = &h->containers; last && *at != NULL; at = &(*at)->next) {
        if (*at != c)
            continue;
        *at = c->next;
        tti_container_release(c); // the list's
        break;
    }
    pthread_mutex_unlock(&h->mu);
    tti_container_release(c);
}

int tti_containers_clear(tti_host *h, const char *name, bool all)
{
    tti_container *gone = NULL;
    int n = 0;
    pthread_mutex_lock(&h->mu);
    for (tti_container **at = &h->containers; *at != NULL;) {
        tti_container *c = *at;
        if (!all && strcmp(c->name, name) != 0) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        c->next = gone;
        gone = c;
        n++;
    }
    pthread_mutex_unlock(&h->mu);
    for (tti_container *c = gone, *next; c != NULL; c = next) {
        next = c->next;
        atomic_store(&c->is_removed, 1);
        pthread_mutex_lock(&c->mu);
        for (tti_queue_core *q = c->queues; q != NULL; q = q->next)
            tti_queue_core_close(q, true);
        pthread_mutex_unlock(&c->mu);
        tti_container_release(c);
    }
    return n;
}
