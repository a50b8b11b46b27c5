/*
 * fuzz.h - what all fuzzers share: a context for all inputs, and abort() where a promise is broken.
 */
#ifndef TUTTI_FUZZ_FUZZ_H
#define TUTTI_FUZZ_FUZZ_H

#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define expect(ok) ((ok) ? (void)0 : abort())

static inline void fuzz_ignore_event(void *user, const tt_event *ev)
{
    (void)user, (void)ev;
}

static inline tt_ctx *fuzz_ctx(void)
{
    static tt_ctx *ctx;
    if (ctx == NULL)
        ctx = tt_open(.devices = "cpu:0", .threads = 1, .on_event = fuzz_ignore_event);
    return ctx;
}

#endif
