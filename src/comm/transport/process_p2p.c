/*
 * process_p2p.c - messages between processes (process.h). Heads and small data go as messages.
 * Large data for a process of the same host goes through shared memory: the sender copies it into a
 * buffer of its own and says which in a message, the receiver copies it out and marks the buffer as
 * taken. Both sides keep their mappings, so a buffer costs its pages once.
 */
#include "comm/transport/process_sum.h"
#include "net/timeout.h"
#include <string.h>

#define LEAST ((size_t)64 << 10) // bytes that are worth a buffer
#define HEAD  64                 // bytes of a buffer before its data

struct tti_buffer {
    tti_buffer *next;
    tti_segment memory; // begins with a flag: the last use that was taken
    int process;        // of the receiver; of mapped ones, the sender
    int fd;             // of mapped ones, in the sender
    uint32_t n_uses;
};

// What a message says of large data.
typedef struct where {
    tti_segment_name memory;
    uint32_t use, unused;
} where;

static bool is_shared(const tti_process *p, int process, size_t bytes)
{
    return p->shares_memory[process] && bytes >= LEAST;
}

static tti_flag *taken(const tti_buffer *b)
{
    return b->memory.at;
}

// ---- sending ---------------------------------------------------------------------------------

// The smallest free buffer that is large enough and not far too large, or a new one.
static tt_status find_buffer(tt_comm *c, size_t bytes, tti_buffer **out)
{
    tti_process *p = c->state;
    tti_buffer *best = NULL;
    for (tti_buffer *b = p->buffers; b != NULL; b = b->next) {
        size_t room = b->memory.bytes - HEAD;
        bool is_free = tti_flag_is_set(taken(b), b->n_uses);
        if (is_free && room >= bytes && room / 4 <= bytes &&
            (best == NULL || best->memory.bytes > b->memory.bytes))
            best = b;
    }
    *out = best;
    if (best != NULL)
        return TT_OK;
    tti_buffer *b = tti_calloc(c->ctx, 1, sizeof(*b));
    if (b == NULL)
        return TT_ENOMEM;
    tt_status st = tti_segment_new(c->ctx, HEAD + bytes, &b->memory);
    if (st != TT_OK) {
        tti_free(c->ctx, b);
        return st;
    }
    tti_flag_init_shared(taken(b));
    b->next = p->buffers;
    p->buffers = *out = b;
    return TT_OK;
}

tt_status tti_process_p2p_send(tt_comm *c, const char *what, int to, uint32_t n, bool is_data,
                               const void *data, size_t bytes)
{
    tti_process *p = c->state;
    tti_edge edge = is_data ? TTI_EDGE_DATA : TTI_EDGE_P2P;
    if (!is_data || !is_shared(p, to, bytes))
        return tti_process_send(c, what, to, n, edge, data, bytes);
    tti_buffer *b;
    TT_TRY(find_buffer(c, bytes, &b));
    memcpy((char *)b->memory.at + HEAD, data, bytes);
    b->process = to;
    where w = {tti_segment_name_of(&b->memory), ++b->n_uses, 0};
    return tti_process_send(c, what, to, n, edge, &w, sizeof(w));
}

// ---- receiving -------------------------------------------------------------------------------

static tt_status find_mapped(tt_comm *c, int from, const where *w, size_t bytes, tti_buffer **out)
{
    tti_process *p = c->state;
    tti_buffer *b = p->mapped;
    while (b != NULL && (b->process != from || b->fd != w->memory.fd))
        b = b->next;
    *out = b;
    if (w->memory.bytes < HEAD + bytes || (b != NULL && b->memory.bytes != w->memory.bytes))
        return TT_FAIL(c->ctx, TT_EPEER, "receive_from: rank %d sends %zu bytes in memory of %llu",
                       p->subgroup.ranks[from], bytes, (unsigned long long)w->memory.bytes);
    if (b != NULL)
        return TT_OK;
    b = tti_calloc(c->ctx, 1, sizeof(*b));
    if (b == NULL)
        return TT_ENOMEM;
    tt_status st = tti_segment_map(c->ctx, &w->memory, &b->memory);
    if (st != TT_OK) {
        tti_free(c->ctx, b);
        return st;
    }
    b->process = from;
    b->fd = w->memory.fd;
    b->next = p->mapped;
    p->mapped = *out = b;
    return TT_OK;
}

tt_status tti_process_p2p_receive(tt_comm *c, const char *what, int from, uint32_t n, bool is_data,
                                  void *data, size_t bytes)
{
    tti_process *p = c->state;
    tti_edge edge = is_data ? TTI_EDGE_DATA : TTI_EDGE_P2P;
    if (!is_data || !is_shared(p, from, bytes))
        return tti_process_receive(c, what, from, n, edge, data, bytes);
    where w;
    tti_buffer *b;
    TT_TRY(tti_process_receive(c, what, from, n, edge, &w, sizeof(w)));
    TT_TRY(find_mapped(c, from, &w, bytes, &b));
    memcpy(data, (const char *)b->memory.at + HEAD, bytes);
    tti_flag_set(taken(b), w.use);
    return TT_OK;
}

// A world that has failed counts: taking the message then says so.
bool tti_process_p2p_has(tt_comm *c, int from, uint32_t n, bool is_data)
{
    const tti_process *p = c->state;
    tti_message l = {p->subgroup.id, n, is_data ? TTI_EDGE_DATA : TTI_EDGE_P2P, 0};
    return tti_world_has(p->w, p->subgroup.ranks[from], &l);
}

// ---- closing ---------------------------------------------------------------------------------

/*
 * Others find a buffer through this process: it stays until they have taken what is in it, or close
 * the group without wanting it, or the job ends.
 */
static void await_taken(tt_comm *c, const tti_buffer *b)
{
    const tti_process *p = c->state;
    tti_timeout timeout;
    tti_timeout_begin(&timeout, c->ctx, c->deadline_ms);
    while (tti_flag_wait(taken(b), b->n_uses, 0, tti_deadline(TTI_POLL_MS)) != TT_OK)
        if (tti_flag_is_set(&p->area[b->process]->closed, 1) || tt_status_of(c->ctx) != TT_OK ||
            tti_timeout_expired(&timeout))
            return;
}

static void free_list(tt_comm *c, tti_buffer *b)
{
    while (b != NULL) {
        tti_buffer *next = b->next;
        tti_segment_free(&b->memory);
        tti_free(c->ctx, b);
        b = next;
    }
}

void tti_process_p2p_close(tt_comm *c)
{
    tti_process *p = c->state;
    if (p->area[p->self] != NULL)
        tti_flag_set(&p->area[p->self]->closed, 1);
    for (const tti_buffer *b = p->buffers; b != NULL; b = b->next)
        await_taken(c, b);
    free_list(c, p->buffers);
    free_list(c, p->mapped);
}
