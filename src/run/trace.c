/*
 * trace.c - what ran when, as a trace that Perfetto opens: one row per device, transfers as arrows.
 * Of several processes each makes the events of its devices; trace_ranks.c puts them together.
 */
#include "run/run.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static tt_status write_file(tt_ctx *ctx, const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return TT_FAIL(ctx, TT_EIO, "cannot write '%s': %s", path, strerror(errno));
    size_t n = strlen(text);
    while (n > 0) {
        ssize_t done = write(fd, text, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            tt_status st = TT_FAIL(ctx, TT_EIO, "cannot write '%s': %s", path, strerror(errno));
            close(fd);
            return st;
        }
        text += done;
        n -= (size_t)done;
    }
    if (close(fd) != 0)
        return TT_FAIL(ctx, TT_EIO, "cannot write '%s': %s", path, strerror(errno));
    return TT_OK;
}

tt_status tti_text_write(tti_text *t, const char *path)
{
    char *text = tti_text_take(t);
    if (text == NULL)
        return TT_ENOMEM;
    tt_status st = write_file(t->ctx, path, text);
    tti_free(t->ctx, text);
    return st;
}

static double us(int64_t ns, int64_t start)
{
    return (double)(ns - start) / 1000.0;
}

// Processes are Perfetto's, from 1 on.
static int process_of(const tt_session *s)
{
    return s->ctx->top.task + 1;
}

// One end of a message between processes: both know its number.
static void add_message(tti_text *t, const tt_session *s, const tti_span *sp, const tti_pnode *pn,
                        int64_t start)
{
    bool sends = pn->kind == TTI_SEND;
    tti_text_add(t,
                 ",\n{\"ph\":\"%s\",\"cat\":\"message\",\"name\":\"message\",\"id\":%lld,"
                 "\"pid\":%d,\"tid\":%d,\"ts\":%.3f}",
                 sends ? "s" : "f\",\"bp\":\"e",
                 (long long)sp->run << 32 | (long long)pn->transfer->edge << 1 | 1, process_of(s),
                 sp->device, us(sends ? sp->begin_ns : sp->end_ns - 1, start));
}

// An arrow from where a received value was made to its receive, in the same run.
static void add_arrow(tti_text *t, const tt_session *s, int64_t n, const tti_span *recv,
                      long long id, int64_t start)
{
    const tti_pnode *pn =
        &recv->plan->nodes[recv->plan->exe.lists[recv->device].entries[recv->entry].pnode];
    if (pn->transfer != NULL)
        add_message(t, s, recv, pn, start);
    if (pn->kind != TTI_RECV || pn->transfer != NULL)
        return;
    int maker = recv->plan->values[tti_root(recv->plan, pn->in[0])].node;
    for (int64_t i = 0; i < n; i++) {
        const tti_span *sp = &s->spans[i];
        if (sp->plan != recv->plan || sp->run != recv->run ||
            sp->plan->exe.lists[sp->device].entries[sp->entry].pnode != maker)
            continue;
        tti_text_add(
            t,
            ",\n{\"ph\":\"s\",\"cat\":\"transfer\",\"name\":\"transfer\",\"id\":%lld,\"pid\":%d,"
            "\"tid\":%d,\"ts\":%.3f}",
            id, process_of(s), sp->device, us(sp->end_ns - 1, start));
        tti_text_add(
            t,
            ",\n{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"transfer\",\"name\":\"transfer\",\"id\":%lld,"
            "\"pid\":%d,\"tid\":%d,\"ts\":%.3f}",
            id, process_of(s), recv->device, us(recv->begin_ns, start));
        return;
    }
}

// The devices whose values a communication entry reads: "cpu:0, cpu:2".
static void add_senders(tti_text *t, const tti_plan *p, const tti_pnode *pn)
{
    tti_set seen = {tti_calloc(p->ctx, TTI_SET_WORDS((size_t)p->top->n_devices), sizeof(uint64_t)),
                    p->top->n_devices};
    if (seen.words == NULL) {
        t->failed = true;
        return;
    }
    tti_text_add(t, ",\"from\":\"");
    for (int k = 0; k < pn->n_in; k++) {
        int d = p->values[tti_root(p, pn->in[k])].device;
        if (!tti_set_has(&seen, d))
            tti_text_add(t, "%s%s", k == 0 ? "" : ", ", p->ctx->top.devices[d]->name);
        tti_set_add(&seen, d);
    }
    tti_free(p->ctx, seen.words);
    if (pn->kind == TTI_RECV && pn->transfer != NULL)
        tti_text_add(t, "%s", p->ctx->top.devices[pn->from]->name);
    tti_text_add(t, "\"");
}

// "add+relu" of a fused node.
static void add_members(tti_text *t, const tti_plan *p, const tti_pnode *pn)
{
    tti_text_add(t, ",\"ops\":\"");
    for (int i = 0; i < pn->n_members; i++)
        tti_text_add(t, "%s%s", i == 0 ? "" : "+", p->nodes[pn->members[i]].node->op->name);
    tti_text_add(t, "\"");
}

/*
 * What a span says of itself: its lanes and rows, in a pipeline its stage, where there are several
 * its micro-batch; of communication from whom, and which piece.
 */
static void add_args(tti_text *t, const tti_span *sp, const tti_pnode *pn)
{
    const tti_plan *p = sp->plan;
    const tt_lanes *l = pn->lanes;
    tti_text_add(t, "{\"op\":\"%s\",\"run\":%lld,\"bytes\":%zu", tti_pnode_kind_name(pn),
                 (long long)sp->run, pn->n_out > 0 ? p->values[pn->out].bytes : (size_t)0);
    bool combines = tti_is_communication(pn) && pn->kind != TTI_RECV;
    if (l != NULL && l->n > 0 && !combines) // what combines lanes has those of all
        tti_text_add(t, ",\"lanes\":\"%d-%d\",\"rows\":%lld", l->first, l->first + l->n - 1,
                     (long long)l->bound[l->n]);
    if (pn->stage > 0)
        tti_text_add(t, ",\"stage\":%d", pn->stage - 1);
    if (pn->stage > 0 || pn->micro > 0)
        tti_text_add(t, ",\"micro\":%d", pn->micro);
    if (pn->node->origin != NULL || pn->is_recomputed)
        tti_text_add(t, ",\"part\":\"%s\"", pn->is_recomputed ? "again" : "backward");
    if (tti_is_communication(pn)) {
        add_senders(t, p, pn);
        if (pn->kind != TTI_RECV && pn->piece >= 0)
            tti_text_add(t, ",\"piece\":%d", pn->piece);
    }
    if (pn->kind == TTI_FUSED || pn->kind == TTI_CHAINED)
        add_members(t, p, pn);
    tti_text_add(t, "}");
}

static void add_span(tti_text *t, const tt_session *s, const tti_span *sp, int64_t start)
{
    const tti_pnode *pn =
        &sp->plan->nodes[sp->plan->exe.lists[sp->device].entries[sp->entry].pnode];
    bool carries = tti_is_communication(pn);
    tti_text name = {.ctx = t->ctx};
    tti_text_add(&name, "%s%s%s", carries ? tti_pnode_kind_name(pn) : "", carries ? " " : "",
                 pn->node->name);
    char *text = tti_text_take(&name);
    tti_text_add(t, ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"name\":",
                 process_of(s), sp->device, us(sp->begin_ns, start), us(sp->end_ns, sp->begin_ns));
    tti_text_json(t, text != NULL ? text : "");
    tti_free(t->ctx, text);
    tti_text_add(t,
                 ",\"cat\":\"%s\",\"args\":", carries ? "communication" : tti_pnode_kind_name(pn));
    add_args(t, sp, pn);
    tti_text_add(t, "}");
}

// Of the spans that are kept: how many, and when the first began; INT64_MAX: there are none.
static int64_t count_spans(const tt_session *s, int64_t *first)
{
    int64_t n = TTI_MIN(atomic_load(&s->n_spans), (int64_t)TTI_SPANS);
    *first = INT64_MAX;
    for (int64_t i = 0; i < n; i++)
        *first = TTI_MIN(*first, s->spans[i].begin_ns);
    return n;
}

int64_t tti_trace_first(const tt_session *s)
{
    int64_t first;
    (void)count_spans(s, &first);
    return first;
}

void tti_trace_events(const tt_session *s, int64_t start, tti_text *t)
{
    int64_t first, n = count_spans(s, &first);
    for (int64_t i = 0; i < n; i++) {
        const tti_span *sp = &s->spans[i];
        add_span(t, s, sp, start);
        add_arrow(t, s, n, sp, 2 * ((long long)s->ctx->top.task * TTI_SPANS + i + 1), start);
    }
}

// Names of processes and devices, and the beginning of the file.
static void add_names(const tt_session *s, tti_text *t)
{
    const tti_topology *top = &s->ctx->top;
    tti_text_add(t, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    for (int d = 0, process = 0; d < top->n_devices; d++) {
        const tti_device *dev = top->devices[d];
        if (process != dev->task + 1) {
            process = dev->task + 1;
            tti_text_add(t, "%s\n{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":",
                         d == 0 ? "" : ",", process);
            if (top->n_tasks > 1)
                tti_text_add(t, "{\"name\":\"task:%d\"}}", dev->full.task);
            else
                tti_text_add(t, "{\"name\":\"tutti\"}}");
        }
        tti_text_add(t,
                     ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_name\",\"args\":{"
                     "\"name\":\"%s\"}}",
                     process, d, dev->name);
    }
}

tt_status tt_trace_write(tt_session *s, const char *path)
{
    if (s == NULL)
        return TT_EINVAL;
    if (path == NULL)
        return TT_FAIL(s->ctx, TT_EINVAL, "trace: the path is NULL");
    if (!s->trace)
        return TT_FAIL(s->ctx, TT_EINVAL, "trace: the session was opened without .trace");
    tti_text t = {.ctx = s->ctx};
    add_names(s, &t);
    tt_status st = TT_OK;
    if (s->ctx->top.n_tasks > 1)
        st = tti_trace_gather(s, &t);
    else
        tti_trace_events(s, tti_trace_first(s), &t);
    tti_text_add(&t, "\n]}\n");
    if (st == TT_OK && s->ctx->top.task == 0)
        return tti_text_write(&t, path);
    tti_free(s->ctx, tti_text_take(&t));
    return st;
}
