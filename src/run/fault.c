/*
 * fault.c - faults on request, to try what a failing device does to the others. The environment
 * says them, so any program can be tried: TUTTI_FAULT_HOW=fail TUTTI_FAULT_DEVICE=cpu:1
 * TUTTI_FAULT_OP=matmul TUTTI_FAULT_RUN=3 lets the first matmul of cpu:1 in the third run fail.
 * Without TUTTI_FAULT_HOW an entry costs one look at a NULL.
 */
#include "run/run.h"
#include <errno.h>
#include <string.h>
#include <time.h>

enum {
    FAULT_NONE,
    FAULT_FAIL,
    FAULT_HANG,
    FAULT_SLOW
};
static const char *const hows[] = {"none", "fail", "hang", "slow", NULL};

struct tti_fault {
    int how;
    char device[TT_OPT_STRING_MAX], op[TT_OPT_STRING_MAX], node[TT_OPT_STRING_MAX];
    int64_t run, ms;
    double times;
};

#define AT(field) offsetof(tti_fault, field)
static const tt_option rows[] = {
    {"how", TT_OPT_ENUM, "none",
     "fail: return an error, hang: wait for ms, slow: take factor times as long", AT(how), 0, 0,
     hows},
    {"device", TT_OPT_STRING, "", "device; default: any", AT(device), 0, 0, NULL},
    {"op", TT_OPT_STRING, "", "op, or receive, tree, fused; default: any", AT(op), 0, 0, NULL},
    {"node", TT_OPT_STRING, "", "name of the node; default: any", AT(node), 0, 0, NULL},
    {"run", TT_OPT_INT, "0", "run of the session, from 1; default: all", AT(run), 0, 1e15, NULL},
    {"ms", TT_OPT_INT, "1000", "duration of a hang in ms", AT(ms), 0, 1e9, NULL},
    {"times", TT_OPT_FLOAT, "2", "factor by which a slow kernel takes longer", AT(times), 1, 1e6,
     NULL},
    TT_OPTION_END,
};

tt_status tti_fault_open(tt_ctx *ctx)
{
    tti_fault f = {0};
    TT_TRY(tti_options_default(ctx, rows, &f));
    TT_TRY(tti_options_env(ctx, rows, &f, "FAULT"));
    if (f.how == FAULT_NONE)
        return TT_OK;
    ctx->fault = tti_alloc(ctx, sizeof(f));
    if (ctx->fault == NULL)
        return TT_ENOMEM;
    *ctx->fault = f;
    return TT_OK;
}

static bool matches(const char *want, const char *has)
{
    return want[0] == '\0' || strcmp(want, has) == 0;
}

static bool is_meant(const tt_session *s, const tti_plan *p, int device, const tti_entry *en)
{
    const tti_fault *f = s->ctx->fault;
    const tti_pnode *pn = &p->nodes[en->pnode];
    return (f->run == 0 || f->run == s->n_runs) &&
           matches(f->device, s->ctx->top.devices[device]->name) &&
           matches(f->op, tti_pnode_kind_name(pn)) && matches(f->node, pn->node->name);
}

static void sleep_ns(int64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        continue;
}

tt_status tti_fault_before(const tt_session *s, const tti_plan *p, int device, const tti_entry *en)
{
    const tti_fault *f = s->ctx->fault;
    if (f->how == FAULT_SLOW || !is_meant(s, p, device, en))
        return TT_OK;
    if (f->how == FAULT_FAIL)
        return TT_EDEVICE; // unrecorded, as of a kernel that gives no reason
    sleep_ns(f->ms * 1000000);
    return TT_OK;
}

void tti_fault_after(const tt_session *s, const tti_plan *p, int device, const tti_entry *en,
                     int64_t took_ns)
{
    const tti_fault *f = s->ctx->fault;
    if (f->how == FAULT_SLOW && is_meant(s, p, device, en))
        sleep_ns((int64_t)((f->times - 1) * (double)took_ns));
}
