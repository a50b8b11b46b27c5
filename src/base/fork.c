/*
 * fork.c - is this process the one that opened the context? A child of fork() has its memory, but
 * not its threads: whoever waits for them waits for ever. A page that a fork wipes tells, at the
 * price of one load; where the system has none the process's number is compared.
 */
#include "base/ctx.h"
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

void tti_fork_watch(tt_ctx *ctx)
{
    ctx->pid = getpid();
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
#ifdef MADV_WIPEONFORK
    if (madvise(page, PAGE, MADV_WIPEONFORK) == 0) {
        ctx->is_here = page;
        *ctx->is_here = 1;
        return;
    }
#endif
    munmap(page, PAGE);
}

void tti_fork_unwatch(tt_ctx *ctx)
{
    if (ctx->is_here != NULL)
        munmap((void *)ctx->is_here, PAGE);
    ctx->is_here = NULL;
    ctx->pid = 0;
}

bool tti_is_forked(const tt_ctx *ctx)
{
    if (ctx == NULL || ctx->pid == 0) // not watched
        return false;
    return ctx->is_here != NULL ? *ctx->is_here == 0 : ctx->pid != getpid();
}

void tti_fork_fail(tt_ctx *ctx)
{
    if (tt_status_of(ctx) != TT_OK)
        return;
    tti_ctx_init(ctx); // the lock: who may have held it is not here
    (void)TT_FAIL(ctx, TT_EINVAL,
                  "this process (%d) is a fork of the one that opened the context (%d): the "
                  "context's threads are not here; open a context in the child, after fork()",
                  (int)getpid(), (int)ctx->pid);
}
