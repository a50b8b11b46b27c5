/*
 * tasks.c - a context of several processes: who has which cores, whose devices there are; sessions
 * whose runs span them: arenas that others read, the border between two runs, letters.
 */
#include "net/timeout.h"
#include "net/world.h"
#include "run/run.h"
#include <sched.h>
#include <string.h>

// The cores a process may use, and how many threads it was told to have (0: its share).
typedef struct cores {
    char host[64];
    uint64_t cpus[16];
    int32_t threads, n;
    uint64_t gpus; // a hash of the GPUs it sees, if it asks for all; 0: it does not, or sees none
} cores;

static uint64_t visible_gpus(const char *devices)
{
    char why[256];
    int n = tti_devices_are_all(devices) ? tti_backend_cuda.count(why, sizeof(why)) : 0;
    uint64_t h = (uint64_t)n;
    for (int i = 0; i < n; i++) {
        tti_facts facts;
        tti_backend_cuda.facts(i, &facts);
        h = tti_hash64(facts.bus, strlen(facts.bus), h);
    }
    return h;
}

// Which of the processes that see the same GPUs of a host this one is, and how many they are.
static void share_gpus(tt_ctx *ctx, const cores *all, int n, int self)
{
    for (int i = 0; i < n; i++) {
        bool shares = all[self].gpus != 0 && all[i].gpus == all[self].gpus &&
                      memcmp(all[i].host, all[self].host, sizeof(all[i].host)) == 0;
        ctx->gpu_turn += shares && i < self;
        ctx->n_gpu_sharers += shares;
    }
}

static bool shares_with(const cores *a, const cores *b)
{
    return memcmp(a->host, b->host, sizeof(a->host)) == 0 &&
           memcmp(a->cpus, b->cpus, sizeof(a->cpus)) == 0;
}

// Threads of process r: of those that have the same cores each gets its share.
static int threads_of(const cores *all, int n, int r)
{
    int before = 0, many = 0;
    if (all[r].threads > 0)
        return all[r].threads;
    for (int i = 0; i < n; i++) {
        before += i < r && shares_with(&all[i], &all[r]);
        many += shares_with(&all[i], &all[r]);
    }
    return TTI_MAX(1, (before + 1) * all[r].n / many - before * all[r].n / many);
}

static tt_status share_host(tt_ctx *ctx, int threads, const char *devices)
{
    int n = tti_world_size(ctx->world), self = tti_world_self(ctx->world);
    cores mine = {.threads = threads, .n = tti_cores(), .gpus = visible_gpus(devices)};
    cores *all = tti_calloc(ctx, (size_t)n, sizeof(*all));
    if (all == NULL)
        return TT_ENOMEM;
    cpu_set_t set;
    CPU_ZERO(&set);
    (void)sched_getaffinity(0, sizeof(set), &set); // else all are taken to share
    for (int i = 0; i < 1024; i++)
        mine.cpus[i / 64] |= (uint64_t)(CPU_ISSET(i, &set) != 0) << (i % 64);
    memcpy(mine.host, tti_world_rank(ctx->world, self)->host, sizeof(mine.host));
    tt_status st = tti_world_exchange(ctx->world, "cores", &mine, sizeof(mine), all, 0);
    if (st == TT_OK) {
        ctx->n_threads = threads_of(all, n, self);
        share_gpus(ctx, all, n, self);
    }
    for (int i = 0; st == TT_OK && i < n; i++)
        if (i != self && shares_with(&all[i], &mine))
            ctx->n_beside += threads_of(all, n, i);
    tti_free(ctx, all);
    return st;
}

// What all say of themselves is known; now each describes its devices, in as many rows as the one
// with most has.
static tt_status join_described(tt_ctx *ctx, const tti_process_info *of)
{
    int most;
    TT_TRY(tti_processes_check(ctx, of, &most));
    size_t rows = (size_t)most;
    tti_device_desc *all =
        tti_calloc(ctx, rows * (size_t)(ctx->top.n_tasks + 1), sizeof(*all)); // its own at the end
    if (all == NULL)
        return TT_ENOMEM;
    tti_device_desc *mine = all + rows * (size_t)ctx->top.n_tasks;
    tti_devices_describe(ctx, mine);
    tt_status st = tti_world_exchange(ctx->world, "devices", mine, rows * sizeof(*mine), all, 0);
    if (st == TT_OK)
        st = tti_devices_join(ctx, of, all, most);
    tti_free(ctx, all);
    return st;
}

static tt_status join_devices(tt_ctx *ctx)
{
    tti_process_info *all = tti_calloc(ctx, (size_t)ctx->top.n_tasks + 1, sizeof(*all));
    if (all == NULL)
        return TT_ENOMEM;
    tti_process_info *mine = &all[ctx->top.n_tasks];
    const tti_rank *self = tti_world_rank(ctx->world, ctx->top.task);
    memcpy(mine->name, self->name, sizeof(mine->name));
    mine->isa = ctx->top.isa;
    mine->n_devices = ctx->top.n_devices;
    tti_set near = {mine->near, ctx->top.n_tasks};
    for (int r = 0; r < ctx->top.n_tasks; r++)
        if (r == ctx->top.task || tti_world_rank(ctx->world, r)->shares_memory)
            tti_set_add(&near, r);
    tt_status st =
        tti_world_exchange(ctx->world, "numbers of devices", mine, sizeof(*mine), all, 0);
    if (st == TT_OK)
        st = join_described(ctx, all);
    tti_free(ctx, all);
    return st;
}

tt_status tti_open_tasks(tt_ctx *ctx, const tt_open_opts *o)
{
    int n = tti_world_size(ctx->world);
    if (n == 1)
        return tti_devices_open(ctx, o->devices);
    TT_TRY(share_host(ctx, o->threads, o->devices));
    TT_TRY(tti_devices_open(ctx, o->devices));
    ctx->top.n_tasks = n;
    ctx->top.task = tti_world_self(ctx->world);
    TT_TRY(join_devices(ctx));
    tti_world_has_devices(ctx->world);
    return TT_OK;
}

// ---- sessions --------------------------------------------------------------------------------

#define AHEAD 16 // runs; processes far away are told of every so manieth

struct tti_meeting {
    uint64_t id;         // of the session, in all processes
    tti_segment *arenas; // by device: what others read
    tti_segment *border; // by rank: a flag that counts the runs it has ended
    // For an exchange, by device or rank: the process whose it is; has it changed?
    int *task;
    bool *is_new;
};

static struct tti_meeting *meeting_new(tt_ctx *ctx)
{
    struct tti_meeting *m = tti_calloc(ctx, 1, sizeof(*m));
    if (m == NULL)
        return NULL;
    size_t devices = (size_t)ctx->top.n_devices, tasks = (size_t)ctx->top.n_tasks;
    size_t most = TTI_MAX(devices, tasks);
    m->arenas = tti_calloc(ctx, devices + tasks, sizeof(*m->arenas));
    m->task = tti_calloc(ctx, most, sizeof(*m->task) + sizeof(*m->is_new));
    if (m->arenas == NULL || m->task == NULL) {
        tti_free(ctx, m->arenas);
        tti_free(ctx, m->task);
        tti_free(ctx, m);
        return NULL;
    }
    m->border = m->arenas + devices;
    m->is_new = (bool *)(void *)(m->task + most);
    return m;
}

void tti_meeting_free(tt_session *s)
{
    struct tti_meeting *m = s->meeting;
    if (m == NULL)
        return;
    for (int d = 0; d < s->ctx->top.n_devices; d++) {
        tti_device *dev = s->ctx->top.devices[d];
        size_t near = s->arena_bytes[s->ctx->top.n_devices + d];
        tti_segment_free(&m->arenas[d]);
        atomic_fetch_sub(&dev->arena, near);
        atomic_fetch_sub(&dev->used, near + (dev->is_away ? s->arena_bytes[d] : 0));
    }
    for (int r = 0; r < s->ctx->top.n_tasks; r++)
        tti_segment_free(&m->border[r]);
    tti_free(s->ctx, m->arenas);
    tti_free(s->ctx, m->task);
    tti_free(s->ctx, m);
    s->meeting = NULL;
}

// Gives names of own segments to all, and maps those of the processes whose memory can be read.
static tt_status swap(tt_session *s, const char *what, tti_segment *of, int n)
{
    tt_ctx *ctx = s->ctx;
    const int *task = s->meeting->task;
    const bool *is_new = s->meeting->is_new;
    tti_segment_name *mine =
                         tti_calloc(ctx, (size_t)n * (size_t)(ctx->top.n_tasks + 1), sizeof(*mine)),
                     *all = mine + n;
    if (mine == NULL)
        return TT_ENOMEM;
    for (int i = 0; i < n; i++)
        if (is_new[i] && task[i] == ctx->top.task)
            mine[i] = tti_segment_name_of(&of[i]);
    tt_status st = tti_world_exchange(ctx->world, what, mine, sizeof(*mine) * (size_t)n, all, 0);
    for (int i = 0; st == TT_OK && i < n; i++)
        if (is_new[i] && task[i] != ctx->top.task &&
            tti_world_rank(ctx->world, task[i])->shares_memory)
            st = tti_segment_map(ctx, &all[task[i] * n + i], &of[i]);
    if (st == TT_OK)
        st = tti_world_exchange(ctx->world, "memory is mapped", NULL, 0, NULL, 0);
    for (int i = 0; i < n; i++)
        if (is_new[i] && task[i] == ctx->top.task)
            tti_segment_seal(&of[i]);
    tti_free(ctx, mine);
    return st;
}

static tt_status open_meeting(tt_session *s)
{
    tt_ctx *ctx = s->ctx;
    struct tti_meeting *m = meeting_new(ctx);
    if (m == NULL)
        return TT_ENOMEM;
    s->meeting = m;
    uint32_t count = tti_world_count(ctx->world);
    m->id = tti_hash64(&count, sizeof(count), 11) >> 1;
    tti_segment *own = &m->border[ctx->top.task];
    TT_TRY(tti_segment_new(ctx, 64, own));
    tti_flag_init_shared(own->at);
    for (int r = 0; r < ctx->top.n_tasks; r++) {
        m->task[r] = r;
        m->is_new[r] = true;
    }
    return swap(s, "a session", m->border, ctx->top.n_tasks);
}

// Device d's own arena: only its process has it, the others count it.
static tt_status grow_own(tt_session *s, int d, size_t need)
{
    tti_device *dev = s->ctx->top.devices[d];
    void *arena = NULL;
    if (need <= s->arena_bytes[d])
        return TT_OK;
    atomic_fetch_add(&dev->arena, need - s->arena_bytes[d]);
    if (dev->is_away) {
        atomic_fetch_add(&dev->used, need - s->arena_bytes[d]);
    } else {
        tti_device_free(dev, s->arenas[d], s->arena_bytes[d]);
        s->arenas[d] = NULL;
        s->arena_bytes[d] = 0;
        TT_TRY(tti_device_alloc(dev, need, &arena));
        s->arenas[d] = arena;
    }
    s->arena_bytes[d] = need;
    return TT_OK;
}

tt_status tti_join_arenas(tt_session *s, const tti_plan *p)
{
    tt_ctx *ctx = s->ctx;
    bool any = false;
    if (s->meeting == NULL)
        TT_TRY(open_meeting(s));
    struct tti_meeting *m = s->meeting;
    for (int d = 0; d < ctx->top.n_devices; d++) {
        tti_device *dev = ctx->top.devices[d];
        size_t need = p->devices[d].mapped_bytes, *has = &s->arena_bytes[ctx->top.n_devices + d];
        TT_TRY(grow_own(s, d, p->devices[d].arena_bytes - need));
        m->task[d] = dev->task;
        m->is_new[d] = need > *has;
        if (!m->is_new[d])
            continue;
        any = true;
        tti_segment_free(&m->arenas[d]);
        atomic_fetch_add(&dev->arena, need - *has);
        atomic_fetch_add(&dev->used, need - *has);
        *has = need;
        if (!dev->is_away)
            TT_TRY(tti_segment_new(ctx, need, &m->arenas[d]));
    }
    if (any)
        TT_TRY(swap(s, "arenas", m->arenas, ctx->top.n_devices));
    for (int d = 0; any && d < ctx->top.n_devices; d++)
        s->arenas[ctx->top.n_devices + d] = m->arenas[d].at;
    return TT_OK;
}

tt_status tti_wait_shared(tt_session *s, tti_flag *flag, uint32_t value, int spins, int rank,
                          const tt_node *for_node)
{
    tti_world *w = s->ctx->world;
    tti_timeout p;
    bool told = false;
    for (;; spins = 0) {
        tt_status st = tti_flag_wait(flag, value, spins, tti_deadline(TTI_POLL_MS));
        if (st == TT_OK)
            break;
        TT_TRY(tti_world_status(w));
        if (atomic_load(&s->failed) != TT_OK)
            return TT_ESTOP;
        if (!told) {
            tti_timeout_begin(&p, s->ctx, s->wait_ms);
            tti_world_doing(w, "wait", for_node == NULL ? "the run before" : for_node->name);
            tti_world_waits_for(w, rank);
        } else if (tti_timeout_expired(&p)) {
            return TT_ETIMEOUT;
        }
        told = true;
    }
    if (told) {
        tti_world_doing(w, "run", NULL);
        tti_world_waits_for(w, -1);
    }
    return TT_OK;
}

/*
 * A process without anything to receive could be any number of runs ahead of those far away, whose
 * inboxes would fill. So every now and then it waits for where they have been.
 */
static tt_status border_far(tt_session *s, bool ended)
{
    tt_ctx *ctx = s->ctx;
    if (s->sequence % AHEAD != 0 || (!ended && s->sequence < 2 * AHEAD))
        return TT_OK;
    for (int r = 0; r < ctx->top.n_tasks; r++) {
        if (r == ctx->top.task || tti_world_rank(ctx->world, r)->shares_memory)
            continue;
        tti_message l = {.plan = s->meeting->id, .run = ended ? s->sequence : s->sequence - AHEAD};
        tt_status st = ended ? tti_world_send(ctx->world, r, &l, NULL, s->wait_ms)
                             : tti_world_receive(ctx->world, r, &l, NULL, s->wait_ms);
        if (st == TT_ETIMEOUT)
            st = tti_world_stuck(ctx->world, r, "the runs before", s->wait_ms);
        TT_TRY(st);
    }
    return TT_OK;
}

tt_status tti_border_wait(tt_session *s)
{
    tt_ctx *ctx = s->ctx;
    if (s->meeting == NULL)
        return TT_OK;
    TT_TRY(tti_world_status(ctx->world));
    tti_world_doing(ctx->world, "run", NULL);
    for (int r = 0; r < ctx->top.n_tasks; r++) {
        tti_flag *ended = s->meeting->border[r].at;
        if (r == ctx->top.task || ended == NULL || tti_flag_is_set(ended, s->sequence - 1))
            continue;
        tt_status st = tti_wait_shared(s, ended, s->sequence - 1, 2000, r, NULL);
        if (st == TT_ETIMEOUT)
            st = tti_world_stuck(ctx->world, r, "the run before", s->wait_ms);
        TT_TRY(st);
    }
    return border_far(s, false);
}

tt_status tti_border_set(tt_session *s)
{
    if (s->meeting == NULL)
        return TT_OK;
    tti_flag_set(s->meeting->border[s->ctx->top.task].at, s->sequence);
    tti_world_doing(s->ctx->world, NULL, NULL);
    return border_far(s, true);
}

tt_status tti_run_mail(tt_session *s, tti_plan *p, const tti_entry *en, const tti_call *c)
{
    tt_ctx *ctx = s->ctx;
    const tti_transfer *m = c->transfer;
    const tti_pnode *pn = &p->nodes[en->pnode];
    bool sends = pn->kind == TTI_SEND;
    char *data = sends ? (c->launch.n_in > 0 ? c->launch.in[0].data : NULL)
                       : (c->launch.n_out > 0 ? c->launch.out[0].data : NULL);
    tt_status st = TT_OK;
    for (int i = 0; i < m->n && st == TT_OK; i++) {
        tti_message l = {p->fingerprint, s->sequence, (uint32_t)(m->edge + i), m->bytes};
        size_t at = sends ? m->begin + (size_t)i * m->stride : (size_t)i * m->bytes;
        char *place = data == NULL ? NULL : data + at;
        struct iovec one = {place, m->bytes}, *parts = m->parts != NULL ? m->parts : &one;
        for (int k = 0; sends && m->parts != NULL && k < pn->n_in; k++)
            parts[k] = (struct iovec){c->launch.in[k].data, p->values[pn->in[k]].bytes};
        st = sends ? tti_world_send_parts(ctx->world, m->peer, &l, parts,
                                          m->parts != NULL ? pn->n_in : 1, s->wait_ms)
                   : tti_world_receive(ctx->world, m->peer, &l, place, s->wait_ms);
    }
    return st == TT_ETIMEOUT ? tti_world_stuck(ctx->world, m->peer, pn->node->name, s->wait_ms)
                             : st;
}
