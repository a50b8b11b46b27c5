/*
 * gpu_profile.h - where a step's time goes on a device with streams: spans of a traced step,
 * which is not captured, joined by op and by op and shape, with the bytes of arguments and the
 * operations where they are known, so that a kernel's rate stands beside its time.
 */
#ifndef TUTTI_BENCH_GPU_PROFILE_H
#define TUTTI_BENCH_GPU_PROFILE_H

#include "base/ctx.h"
#include "model/model.h"
#include "op/attention.h"
#include "op/gemm.h"
#include "run/run.h"
#include "train/compile.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROFILE_ROWS 1024

typedef struct profile_row {
    char name[96];
    double seconds, bytes, flops;
    int64_t calls;
} profile_row;

typedef struct profile_table {
    profile_row rows[PROFILE_ROWS];
    int n;
} profile_table;

static inline void profile_add(profile_table *t, const char *name, const profile_row *span)
{
    int i = 0;
    while (i < t->n && strcmp(t->rows[i].name, name) != 0)
        i++;
    if (i == PROFILE_ROWS)
        i--; // the last is for all others
    if (i == t->n)
        snprintf(t->rows[t->n++].name, sizeof(t->rows[0].name), "%.95s", name);
    t->rows[i].seconds += span->seconds;
    t->rows[i].bytes += span->bytes;
    t->rows[i].flops += span->flops;
    t->rows[i].calls++;
}

static inline double profile_bytes(const tt_launch *l)
{
    double bytes = 0;
    for (int i = 0; i < l->n_in; i++)
        bytes += (double)l->in[i].count * (double)tt_dtype_bytes(l->in[i].dtype);
    for (int i = 0; i < l->n_out; i++)
        bytes += (double)l->out[i].count * (double)tt_dtype_bytes(l->out[i].dtype);
    return bytes;
}

// Elements of a sum over rows without its parts.
static inline double profile_whole(const tt_launch *l, const tt_arg *sum)
{
    bool in_parts =
        l->node->out->layout.kind == TT_LAYOUT_PARTIAL && l->lanes != NULL && l->lanes->n_parts > 1;
    return (double)sum->count / (in_parts ? l->lanes->n_parts : 1);
}

// Multiplications and additions of products; 0 where they do not matter.
static inline double profile_flops(const tt_launch *l, const char *op)
{
    const tt_arg *in = l->in, *out = l->out;
    if (strcmp(op, "matmul") == 0) {
        const tti_matmul_attr *a = l->attr;
        int rank = in[0].shape.rank;
        double k = (double)(a->transpose_a && rank > 1 ? in[0].shape.dim[rank - 2] : in[0].cols);
        return 2 * k * profile_whole(l, &out[0]);
    }
    if (strcmp(op, "conv2d") == 0)
        return 2 * (double)out[0].count * (double)in[1].count / (double)out[0].cols;
    if (strcmp(op, "conv2d_dx") == 0)
        return 2 * (double)in[0].count * (double)in[1].count / (double)in[0].cols;
    if (strcmp(op, "conv2d_dw") == 0)
        return 2 * (double)in[1].count * profile_whole(l, &out[0]) / (double)in[1].cols;
    bool backward = strcmp(op, "attention_grad") == 0;
    if (backward || strcmp(op, "attention") == 0) {
        const tti_attention_attr *a = l->attr;
        tti_attention_size s = tti_attention_sizes(a, in);
        double pairs = (double)(s.batch * s.heads) * (double)(s.tq * s.tk) * (a->causal ? 0.5 : 1);
        return (backward ? 10 : 4) * pairs * (double)s.d;
    }
    return 0;
}

// "fused add+relu", "matmul".
static inline void profile_name(const tti_plan *p, const tti_pnode *pn, char out[64])
{
    snprintf(out, 64, "%s", tti_pnode_kind_name(pn));
    for (int i = 0; pn->n_members > 1 && i < pn->n_members; i++) {
        size_t n = strlen(out);
        snprintf(out + n, 64 - n, "%s%s", i == 0 ? " " : "+",
                 p->nodes[pn->members[i]].node->op->name);
    }
}

// The shapes that tell calls of one op apart: of its first inputs and its output.
static inline void profile_shapes(const tt_launch *l, char out[128])
{
    char text[TT_SHAPE_TEXT];
    out[0] = '\0';
    for (int i = 0; i < l->n_in && i < 2; i++)
        snprintf(out + strlen(out), 128 - strlen(out), "%s%.40s", i > 0 ? " " : "",
                 tt_shape_text(&l->in[i].shape, text));
    if (l->n_out > 0)
        snprintf(out + strlen(out), 128 - strlen(out), ">%.40s %s",
                 tt_shape_text(&l->out[0].shape, text), tt_dtype_name(l->out[0].dtype));
}

static inline int profile_by_time(const void *a, const void *b)
{
    double x = ((const profile_row *)a)->seconds, y = ((const profile_row *)b)->seconds;
    return (x < y) - (x > y);
}

static inline void profile_print(profile_table *t, const char *title, double steps, int most)
{
    double total = 0;
    for (int i = 0; i < t->n; i++)
        total += t->rows[i].seconds;
    qsort(t->rows, (size_t)t->n, sizeof(t->rows[0]), profile_by_time);
    printf("\n%-78s %10s %6s %6s %9s %7s %9s\n", title, "us a step", "share", "calls", "GB a step",
           "TB/s", "TFLOP/s");
    for (int i = 0; i < t->n && i < most; i++) {
        const profile_row *r = &t->rows[i];
        printf("%-78.78s %10.1f %5.1f%% %6.0f %9.3f %7.2f", r->name, 1e6 * r->seconds / steps,
               100 * r->seconds / total, (double)r->calls / steps, 1e-9 * r->bytes / steps,
               r->seconds > 0 ? 1e-12 * r->bytes / r->seconds : 0);
        if (r->flops > 0 && r->seconds > 0)
            printf(" %9.1f", 1e-12 * r->flops / r->seconds);
        printf("\n");
    }
    if (t->n > most)
        printf("and %d more\n", t->n - most);
}

// Joins the spans; wall is the sum over runs of the time from the first to the last.
static inline void profile_collect(const tt_session *s, profile_table *ops, profile_table *shapes,
                                   double *wall)
{
    int64_t n = TTI_MIN(atomic_load(&s->n_spans), (int64_t)TTI_SPANS);
    int64_t begin = INT64_MAX, end = 0, run = -1;
    for (int64_t i = 0; i < n; i++) {
        const tti_span *sp = &s->spans[i];
        if (sp->run != run && run >= 0) {
            *wall += 1e-9 * (double)(end - begin);
            begin = INT64_MAX, end = 0;
        }
        run = sp->run;
        begin = TTI_MIN(begin, sp->begin_ns);
        end = TTI_MAX(end, sp->end_ns);
        const tti_entry *en = &sp->plan->exe.lists[sp->device].entries[sp->entry];
        const tti_pnode *pn = &sp->plan->nodes[en->pnode];
        profile_row row = {.seconds = 1e-9 * (double)(sp->end_ns - sp->begin_ns)};
        for (int k = 0; k < en->n_calls; k++) {
            row.bytes += profile_bytes(&en->calls[k].launch);
            if (pn->kind == TTI_OP)
                row.flops += profile_flops(&en->calls[k].launch, pn->node->op->name);
        }
        char name[64], shape[128], both[sizeof(name) + sizeof(shape)];
        profile_name(sp->plan, pn, name);
        profile_add(ops, name, &row);
        if (en->n_calls == 0)
            continue;
        profile_shapes(&en->calls[en->n_calls - 1].launch, shape);
        snprintf(both, sizeof(both), "%.30s %s", name, shape);
        profile_add(shapes, both, &row);
    }
    if (run >= 0)
        *wall += 1e-9 * (double)(end - begin);
}

/*
 * Steps of a compiled model, traced, after some that warm up; captured is the seconds of a step
 * that is not traced, for comparison.
 */
static inline tt_status profile_model(tt_model *m, const tt_batch_data *batches, int n_batches,
                                      int steps, double captured)
{
    TT_TRY(tti_compile_again(m, m->step->guard, true, false));
    tt_session *s = tt_model_get_session(m);
    tt_progress progress;
    for (int i = 0; i < 2 + steps; i++) {
        if (i == 2)
            atomic_store(&s->n_spans, 0);
        TT_TRY(tt_train_step(m, &batches[i % n_batches], &progress));
    }
    profile_table *ops = calloc(2, sizeof(*ops)), *shapes = ops + 1;
    double wall = 0, busy = 0;
    if (ops == NULL)
        return TT_ENOMEM;
    profile_collect(s, ops, shapes, &wall);
    for (int i = 0; i < ops->n; i++)
        busy += ops->rows[i].seconds;
    printf("\n%d steps traced: %.3f ms each from the first kernel to the last, %.3f ms in kernels; "
           "%.3f ms a step captured\n",
           steps, 1e3 * wall / steps, 1e3 * busy / steps, 1e3 * captured);
    profile_print(ops, "by op", steps, 40);
    profile_print(shapes, "by op and shapes", steps, 60);
    free(ops);
    return TT_OK;
}

#endif
