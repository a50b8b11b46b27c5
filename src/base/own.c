/*
 * own.c - what a context owns, as a list threaded through the owners; tt_close() walks it, so what
 * was made last goes first.
 */
#include "base/ctx.h"

void tti_ctx_init(tt_ctx *ctx)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&ctx->mu, &attr);
    pthread_mutexattr_destroy(&attr);
    ctx->file = "";
}

void tti_ctx_deinit(tt_ctx *ctx)
{
    pthread_mutex_destroy(&ctx->mu);
}

void tti_own(tt_ctx *ctx, struct tti_hooks *link, void *owner, void (*free_fn)(void *))
{
    link->owner = owner;
    link->free_fn = free_fn;
    link->next = ctx->owned;
    ctx->owned = link;
}

void tti_disown(tt_ctx *ctx, struct tti_hooks *link)
{
    for (struct tti_hooks **at = &ctx->owned; *at != NULL; at = &(*at)->next) {
        if (*at == link) {
            *at = link->next;
            link->next = NULL;
            return;
        }
    }
}
