/*
 * trace.c - what ran when, as a trace that Perfetto opens: one row per device, transfers as arrows.
 */
#include "run/run.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

tt_status tti_write_file(tt_ctx *ctx, const char *path, const char *text)
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

static double us(int64_t ns, int64_t start)
{
    return (double)(ns - start) / 1000.0;
}

// An arrow from where a received value was made to its receive, in the same run.
static void add_arrow(tti_text *t, const tt_session *s, int64_t n, const tti_span *recv, int id,
                      int64_t start)
{
    const tti_pnode *pn =
        &recv->plan->nodes[recv->plan->devices[recv->device].entries[recv->entry].pnode];
    if (pn->kind != TTI_RECV)
        return;
    int maker = recv->plan->values[tti_root(recv->plan, pn->in[0])].node;
    for (int64_t i = 0; i < n; i++) {
        const tti_span *sp = &s->spans[i];
        if (sp->plan != recv->plan || sp->run != recv->run ||
            sp->plan->devices[sp->device].entries[sp->entry].pnode != maker)
            continue;
        tti_text_add(
            t,
            ",\n{\"ph\":\"s\",\"cat\":\"transfer\",\"name\":\"transfer\",\"id\":%d,\"pid\":1,"
            "\"tid\":%d,\"ts\":%.3f}",
            id, sp->device, us(sp->end_ns - 1, start));
        tti_text_add(
            t,
            ",\n{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"transfer\",\"name\":\"transfer\",\"id\":%d,"
            "\"pid\":1,\"tid\":%d,\"ts\":%.3f}",
            id, recv->device, us(recv->begin_ns, start));
        return;
    }
}

tt_status tt_trace_write(tt_session *s, const char *path)
{
    if (s == NULL || path == NULL)
        return TT_EINVAL;
    if (!s->trace)
        return TT_FAIL(s->ctx, TT_EINVAL, "trace: the session was opened without .trace");
    int64_t n = TTI_MIN(atomic_load(&s->n_spans), (int64_t)TTI_SPANS), start = INT64_MAX;
    for (int64_t i = 0; i < n; i++)
        start = TTI_MIN(start, s->spans[i].begin_ns);
    tti_text t = {.ctx = s->ctx};
    tti_text_add(&t,
                 "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":1,\"name\":"
                 "\"process_name\",\"args\":{\"name\":\"tutti\"}}");
    for (int d = 0; d < s->ctx->n_devices; d++)
        tti_text_add(
            &t,
            ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":"
            "\"%s\"}}",
            d, s->ctx->devices[d]->name);
    for (int64_t i = 0; i < n; i++) {
        const tti_span *sp = &s->spans[i];
        const tti_pnode *pn =
            &sp->plan->nodes[sp->plan->devices[sp->device].entries[sp->entry].pnode];
        const char *kind = tti_pnode_kind_name(pn);
        tti_text_add(&t, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"name\":",
                     sp->device, us(sp->begin_ns, start), us(sp->end_ns, sp->begin_ns));
        tti_text_json(&t, pn->node->name);
        tti_text_add(&t, ",\"cat\":\"%s\",\"args\":{\"op\":\"%s\",\"run\":%lld,\"bytes\":%zu}}",
                     kind, kind, (long long)sp->run,
                     pn->n_out > 0 ? sp->plan->values[pn->out].bytes : (size_t)0);
        add_arrow(&t, s, n, sp, (int)i + 1, start);
    }
    tti_text_add(&t, "\n]}\n");
    char *text = tti_text_take(&t);
    if (text == NULL)
        return TT_ENOMEM;
    tt_status st = tti_write_file(s->ctx, path, text);
    tti_free(s->ctx, text);
    return st;
}
