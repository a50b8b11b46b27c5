/*
 * cut.c - edges between devices become receives: one copy per tensor and destination, however many
 * nodes there read it. Constants are not copied: every device of the host reads them in place.
 *
 * Where processes share no memory a receive has messages, and a send on the other side: one for
 * each process that reads the value, whose devices then have it from the one that received it; one
 * for each host where trees read it. A tree over
 * a piece gets that piece alone, there and between devices that do not read each other's memory.
 */
#include "plan/spread/host_sums.h"
#include <string.h>

bool tti_is_cross_host(const tti_plan *p, int device, int other)
{
    const tti_device *a = p->top->devices[device], *b = p->top->devices[other];
    return a->task != b->task && !tti_device_can_read(a, b);
}

/*
 * A receive of value on a device: a copy of the other's memory, or, with a transfer, of messages;
 * then a plan node runs first, the send.
 */
static int receive(tti_plan *p, int value, int device, tti_transfer *transfer, int send)
{
    int *in = tti_plan_alloc(p, sizeof(int));
    if (in == NULL)
        return -1;
    in[0] = transfer == NULL ? value : send;
    tti_value v = p->values[value];
    const tti_pnode *maker = &p->nodes[v.node];
    tti_pnode pn = {.kind = TTI_RECV,
                    .node = v.tensor->node,
                    .n_in = transfer == NULL,
                    .n_out = 1,
                    .in = in,
                    .out = (int)p->n_values,
                    .device = device,
                    .reason = "received",
                    .lanes = maker->lanes,
                    .micro = maker->micro,
                    .stage = maker->stage,
                    .key = tti_key_shift(maker->key, TTI_SHIFT_RECEIVE),
                    .n_after = transfer != NULL,
                    .after = in,
                    .from = v.device,
                    .maker = maker->kind == TTI_RECV ? maker->maker : v.node,
                    .transfer = transfer};
    int id = tti_plan_node(p, pn);
    if (id < 0)
        return -1;
    if (transfer == NULL)
        p->values[tti_root(p, value)].is_sent = true;
    v.node = id;
    v.root = -1;
    v.skip = 0;
    v.is_piece = false;
    v.device = device;
    v.memory = TTI_ARENA;
    v.fixed = NULL;
    v.keep = v.is_sent = false;
    return tti_plan_value(p, v);
}

// Parts of a sum that a value has: one for each sub-tree of its lanes.
static int64_t parts_of(const tti_value *v)
{
    return v->shape.rank > v->tensor->shape.rank ? v->shape.dim[0] : 1;
}

static tti_transfer *new_transfer(tti_plan *p, int peer, int n)
{
    tti_transfer *m = tti_plan_alloc(p, sizeof(*m));
    if (m == NULL)
        return NULL;
    *m = (tti_transfer){.peer = peer, .edge = p->n_messages, .n = n};
    return m;
}

// Adds the send of a value (-1: of nothing, after plan node after) to device's process.
static int send(tti_plan *p, int value, int after, int device, const tti_transfer *transfer)
{
    int *in = tti_plan_alloc(p, sizeof(int));
    if (in == NULL)
        return -1;
    in[0] = value >= 0 ? value : after;
    const tti_pnode *maker = &p->nodes[value >= 0 ? p->values[value].node : after];
    tti_pnode pn = {.kind = TTI_SEND,
                    .node = value >= 0 ? p->values[value].tensor->node : maker->node,
                    .n_in = value >= 0,
                    .in = in,
                    .out = value >= 0 ? value : maker->out,
                    .device = value >= 0 ? p->values[value].device : maker->device,
                    .reason = "to another process",
                    .lanes = maker->lanes,
                    .micro = maker->micro,
                    .stage = maker->stage,
                    .key = tti_key_shift(maker->key, TTI_SHIFT_SEND),
                    .n_after = value < 0,
                    .after = in};
    pn.transfer = new_transfer(p, p->top->devices[device]->task, transfer->n);
    if (pn.transfer == NULL)
        return -1;
    *pn.transfer = *transfer;
    pn.transfer->peer = p->top->devices[device]->task;
    p->n_messages += transfer->n;
    return tti_plan_node(p, pn);
}

// Of a value of a process that is far away, or of one piece of every part of it; -1.
static int far_receive(tti_plan *p, int value, int device, const tti_pnode *piece)
{
    tti_value *v = &p->values[value];
    tti_transfer *m = new_transfer(p, p->top->devices[v->device]->task, 1);
    if (m == NULL)
        return -1;
    int64_t begin = 0, end = v->count, parts = 1;
    if (piece != NULL) {
        parts = parts_of(v);
        tti_piece_of(piece, &begin, &end);
    }
    size_t item = tt_dtype_bytes(v->dtype);
    m->n = (int)parts;
    m->begin = (size_t)begin * item;
    m->stride = v->bytes / (size_t)parts;
    m->bytes = piece != NULL ? (size_t)(end - begin) * item : v->bytes;
    int id = send(p, value, -1, device, m);
    int copy = id < 0 ? -1 : receive(p, value, device, m, id);
    if (copy < 0 || piece == NULL)
        return copy;
    tti_make_range(p, copy, parts, begin, end);
    return copy;
}

// Bytes of a value in another device's memory that a node reads: of a sum in pieces its own piece,
// once for each sub-tree of lanes that the value has; of sparse rows all, if all are in the piece.
static size_t bytes_read(const tti_plan *p, const tti_pnode *pn, int v)
{
    const tti_value *value = &p->values[v];
    if (pn->kind != TTI_TREE || pn->piece < 0)
        return value->bytes;
    int64_t parts = parts_of(value), begin, end;
    if (value->sparse_rows > 0 || value->is_range)
        parts = p->nodes[value->node].lanes->n_parts;
    tti_piece_of(pn, &begin, &end);
    size_t whole = (size_t)((end - begin) * parts) * tt_dtype_bytes(value->dtype);
    return value->sparse_rows > 0 ? TTI_MIN(value->bytes, whole) : whole;
}

// Nodes that put values of several devices together read them where they are, if they can.
static bool reads_directly(const tti_plan *p, const tti_pnode *pn, int value)
{
    return tti_kind_of(pn)->combines &&
           tti_device_can_read(p->top->devices[pn->device],
                               p->top->devices[p->values[value].device]);
}

// A view of what was received is a view of the copy.
static void follow_input(tti_plan *p, const tti_pnode *pn)
{
    if (pn->kind != TTI_OP || pn->is_dropped || (pn->node->op->flags & TT_OP_VIEW) == 0)
        return;
    tti_value *v = &p->values[pn->out];
    v->root = pn->in[0];
    v->skip = p->values[pn->in[0]].skip;
    v->memory = p->values[pn->in[0]].memory;
    v->fixed = p->values[pn->in[0]].fixed;
}

// Values already received, by where: a small open hash.
typedef struct device_pair {
    int value, place, copy;
} device_pair;

typedef struct receive_builder {
    tti_plan *p;
    device_pair *made;
    uint64_t mask;
    tti_host_map *hosts; // by part of the mesh along pipe; made when asked for
} receive_builder;

static device_pair *find_pair(const receive_builder *c, int value, int place)
{
    uint64_t at = ((uint64_t)value << 32 | (uint32_t)place) * 0x9e3779b97f4a7c15u;
    at = (at >> 20) & c->mask;
    while (c->made[at].copy != 0 && (c->made[at].value != value || c->made[at].place != place))
        at = (at + 1) & c->mask;
    return &c->made[at];
}

/*
 * Who receives a value for the host of a device, whose trees read it: the replica that the schedule
 * of collectives says (comm/collective_schedule.h). Sums of a bucket go to one of them, variables
 * to one for each replica that has made them. -1: recorded.
 */
static int receiver_of(receive_builder *c, int value, int device)
{
    const tti_plan *p = c->p;
    const tti_mesh *mesh = &p->mesh;
    const tti_pnode *maker = &p->nodes[p->values[value].node];
    int n = mesh->n_axes > 0 ? tti_mesh_n_devices(mesh) : 0;
    if (device >= n || maker->device >= n)
        return device;
    int part = tti_mesh_coordinate(mesh, device, TTI_AXIS_PIPE);
    tti_host_map *hosts = &c->hosts[part];
    if (hosts->n == 0 && tti_replica_hosts(p, part, hosts) != TT_OK)
        return -1;
    int turn = maker->kind == TTI_TREE ? maker->key.rank
                                       : tti_mesh_coordinate(mesh, maker->device, TTI_AXIS_DATA);
    int host = hosts->host[tti_mesh_coordinate(mesh, device, TTI_AXIS_DATA)];
    return tti_mesh_device(mesh, tti_host_agent(hosts, host, turn), part);
}

// The value as a process that is far away has it, once it was received there; -1.
static int receive_once(receive_builder *c, int value, int device, const tti_pnode *piece)
{
    tti_plan *p = c->p;
    int task = p->top->devices[device]->task; // places below n_devices are devices
    int place = p->top->n_devices + task * (tti_mesh_size(&p->mesh, TTI_AXIS_DATA) + 1) +
                (piece != NULL ? piece->piece + 1 : 0);
    device_pair *at = find_pair(c, value, place);
    if (at->copy == 0) {
        int copy = far_receive(p, value, device, piece);
        if (copy < 0)
            return -1;
        *at = (device_pair){value, place, copy};
        p->devices[device].received_bytes += p->values[copy].bytes;
    }
    return at->copy;
}

static int copy_to(receive_builder *c, int value, int device)
{
    tti_plan *p = c->p;
    device_pair *at = find_pair(c, value, device);
    if (at->copy == 0) {
        int copy = receive(p, value, device, NULL, -1);
        if (copy < 0)
            return -1;
        *at = (device_pair){value, device, copy};
        p->devices[device].received_bytes += p->values[copy].bytes;
    }
    return at->copy;
}

/*
 * What a tree over one piece needs of a sum of one part: that piece of it, which is received alone;
 * of anything else the value itself. -1.
 */
static int needed(tti_plan *p, const tti_pnode *pn, int value)
{
    tti_value v = p->values[value];
    if (pn->kind != TTI_TREE || pn->piece < 0 || v.sparse_rows > 0 || v.is_range ||
        parts_of(&v) > 1)
        return value;
    int64_t begin, end;
    tti_piece_of(pn, &begin, &end);
    v.root = value;
    v.skip += (size_t)begin * tt_dtype_bytes(v.dtype);
    v.keep = false;
    v.is_range = true;
    v.range_begin = begin;
    int piece = tti_plan_value(p, v);
    if (piece >= 0)
        tti_make_piece(p, piece, begin, end);
    return piece;
}

static tt_status cut_input(receive_builder *c, int node, int k)
{
    tti_plan *p = c->p;
    int v = p->nodes[node].in[k], device = p->nodes[node].device;
    if (tti_is_cross_host(p, device, p->values[v].device)) {
        const tti_pnode *pn = &p->nodes[node];
        bool in_piece = pn->kind == TTI_TREE && pn->piece >= 0 && p->values[v].sparse_rows == 0 &&
                        !p->values[v].is_range;
        // Its readers on a host that combine it read it where one of them has received it.
        bool is_shared = !in_piece && tti_kind_of(pn)->combines;
        int at = is_shared ? receiver_of(c, v, device) : device;
        v = at < 0 ? -1 : receive_once(c, v, at, in_piece ? pn : NULL);
        if (v < 0)
            return TT_ENOMEM;
        p->nodes[node].in[k] = v;
        if (p->values[v].device == device)
            return TT_OK;
    }
    if (reads_directly(p, &p->nodes[node], v)) {
        p->values[tti_root(p, v)].is_sent = true;
        p->devices[device].received_bytes += bytes_read(p, &p->nodes[node], v);
        return TT_OK;
    }
    v = needed(p, &p->nodes[node], v);
    int copy = v < 0 ? -1 : copy_to(c, v, device);
    p->nodes[node].in[k] = copy;
    return copy < 0 ? TT_ENOMEM : TT_OK;
}

// A control edge from a process that is far away: a message of no bytes.
static tt_status cut_after(tti_plan *p, int node, int k)
{
    int from = p->nodes[node].after[k], device = p->nodes[node].device;
    if (p->nodes[from].is_dropped || !tti_is_cross_host(p, device, p->nodes[from].device))
        return TT_OK;
    tti_transfer *m = new_transfer(p, p->top->devices[p->nodes[from].device]->task, 1);
    int id = m == NULL ? -1 : send(p, -1, from, device, m);
    int *after = tti_plan_alloc(p, sizeof(int) * (size_t)(p->nodes[node].n_after + 1));
    if (id < 0 || after == NULL)
        return TT_ENOMEM;
    memcpy(after, p->nodes[node].after, sizeof(int) * (size_t)p->nodes[node].n_after);
    int *in = &after[p->nodes[node].n_after];
    in[0] = id;
    tti_pnode pn = {.kind = TTI_RECV,
                    .node = p->nodes[from].node,
                    .in = in,
                    .out = p->nodes[from].out,
                    .device = device,
                    .reason = "after another process",
                    .key = tti_key_shift(p->nodes[node].key, -TTI_SHIFT_RECEIVE),
                    .n_after = 1,
                    .after = in,
                    .from = p->nodes[from].device,
                    .maker = from,
                    .transfer = m};
    after[k] = tti_plan_node(p, pn);
    p->nodes[node].after = after; // those of replicas shared one list
    return after[k] < 0 ? TT_ENOMEM : TT_OK;
}

/*
 * Every process gets what is fetched on a device of its own. Which of them is this process's
 * differs from process to process; the plan does not.
 */
static tt_status cut_fetches(receive_builder *c)
{
    tti_plan *p = c->p;
    for (int i = 0; i < p->n_fetched; i++) {
        int target = p->targets[i], last = -1;
        p->values[tti_root(p, target)].keep = true;
        if (p->values[target].memory == TTI_CONSTANT)
            continue;
        for (int d = 0; d < p->top->n_devices; d++) {
            int task = p->top->devices[d]->task, from = p->values[target].device;
            if (task == last || task == p->top->devices[from]->task)
                continue;
            last = task;
            int copy = tti_is_cross_host(p, d, from) ? receive_once(c, target, d, NULL)
                                                     : copy_to(c, target, d);
            if (copy < 0)
                return TT_ENOMEM;
            p->values[copy].keep = true;
            if (task == p->top->task)
                p->targets[i] = copy;
        }
    }
    return TT_OK;
}

static tt_status cut_all(receive_builder *c, int64_t n_nodes)
{
    tti_plan *p = c->p;
    for (int64_t i = 0; i < n_nodes; i++) {
        for (int k = 0; k < p->nodes[i].n_in && !p->nodes[i].is_dropped; k++) {
            int v = p->nodes[i].in[k];
            if (p->values[v].device != p->nodes[i].device && p->values[v].memory != TTI_CONSTANT &&
                tti_reads(&p->nodes[i], k))
                TT_TRY(cut_input(c, (int)i, k));
        }
        for (int k = 0; k < p->nodes[i].n_after && !p->nodes[i].is_dropped; k++)
            TT_TRY(cut_after(p, (int)i, k));
        follow_input(p, &p->nodes[i]);
    }
    return cut_fetches(c);
}

tt_status tti_plan_cut(tti_plan *p)
{
    if (p->top->n_devices == 1)
        return TT_OK;
    int64_t edges = (int64_t)p->n_fetched * TTI_MAX(p->top->n_tasks, 1), cap = 64;
    for (int64_t i = 0; i < p->n_nodes; i++)
        for (int k = 0; k < p->nodes[i].n_in; k++)
            edges += p->values[p->nodes[i].in[k]].device != p->nodes[i].device;
    while (cap < 4 * edges)
        cap *= 2;
    receive_builder c = {.p = p, .mask = (uint64_t)(cap - 1)};
    c.made = tti_calloc(p->ctx, (size_t)cap, sizeof(*c.made));
    int n_parts = tti_mesh_size(&p->mesh, TTI_AXIS_PIPE);
    c.hosts = tti_calloc(p->ctx, (size_t)n_parts, sizeof(*c.hosts));
    tt_status st = TT_ENOMEM;
    if (c.made != NULL && c.hosts != NULL)
        st = cut_all(&c, p->n_nodes);
    if (st == TT_OK && p->top->n_tasks > 1)
        st = tti_bundle_messages(p);
    for (int i = 0; c.hosts != NULL && i < n_parts; i++)
        tti_host_map_free(p->ctx, &c.hosts[i]);
    tti_free(p->ctx, c.hosts);
    tti_free(p->ctx, c.made);
    return st;
}
