/*
 * verify_layout.c - the rule on layouts: nobody takes a part for the whole.
 *
 * What is partial is read by what reduces it or passes it on. Nodes read parts of one coordinate
 * and of their own lanes, and make what the op's split rule says of them. What puts parts together
 * has each of them once.
 */
#include "device/device.h"
#include "plan/verify/verify.h"

static tti_layout_entry entry_of(const tti_plan *p, int value, tti_mesh_axis axis)
{
    return p->values[value].layout.on[axis];
}

static bool is_whole(tti_layout_entry e)
{
    return e.kind == TT_LAYOUT_REPLICATED || e.kind == TT_LAYOUT_ONE;
}

static bool is_partial(tti_layout_entry e)
{
    return e.kind == TT_LAYOUT_PARTIAL || e.kind == TT_LAYOUT_MOMENTS;
}

static bool is_piece(tti_layout_entry e)
{
    return e.kind == TT_LAYOUT_SPLIT && e.dim == TTI_DIM_FLAT;
}

static bool is_equal(tti_layout_entry a, tti_layout_entry b)
{
    return a.kind == b.kind && a.part == b.part && (a.kind != TT_LAYOUT_SPLIT || a.dim == b.dim);
}

static tt_status broken(const tti_plan *p, int node, int value, tti_mesh_axis axis,
                        const char *what)
{
    char text[TTI_LAYOUT_TEXT];
    return tti_broken(p, "layout", node, "%s value %d, which is %s along %s", what, value,
                      tti_layout_entry_text(entry_of(p, value, axis), text),
                      tti_mesh_axis_name(axis));
}

// Parts and dimensions that there are.
static tt_status check_entry(const tti_plan *p, int node, int value, tti_mesh_axis axis)
{
    tti_layout_entry e = entry_of(p, value, axis);
    int rank = p->values[value].tensor->shape.rank;
    bool good = e.kind <= TT_LAYOUT_MOMENTS && e.part >= 0 &&
                e.part < tti_mesh_size(&p->mesh, axis) &&
                (e.kind != TT_LAYOUT_SPLIT || (e.dim >= TTI_DIM_FLAT && e.dim < rank));
    return good ? TT_OK : broken(p, node, value, axis, "makes");
}

// ---- what puts parts together ----------------------------------------------------------------

// A tree, or what narrows a replica's sum; the last input of that is no sum.
static tt_status check_reduce(const tti_plan *p, int i, tti_mesh_axis axis)
{
    const tti_pnode *pn = &p->nodes[i];
    int n = pn->n_in - (pn->kind == TTI_NARROW);
    for (int k = 0; k < n; k++)
        if (!is_partial(entry_of(p, pn->in[k], axis)))
            return broken(p, i, pn->in[k], axis, "adds");
    tti_layout_entry out = entry_of(p, pn->out, axis);
    if (is_partial(out))
        return TT_OK; // somebody else ends it
    if (pn->kind == TTI_NARROW || pn->is_chain || pn->lanes->n < p->lanes.n)
        return broken(p, i, pn->out, axis, "of some lanes makes");
    if (pn->piece >= 0 ? !is_piece(out) || out.part != pn->piece : !is_whole(out))
        return broken(p, i, pn->out, axis, "makes");
    return TT_OK;
}

// Every piece once; in[0] is the own one where there is one already.
static tt_status check_collect(const tti_plan *p, int i, tti_mesh_axis axis, uint8_t *seen)
{
    const tti_pnode *pn = &p->nodes[i];
    int n = tti_mesh_size(&p->mesh, axis), have = 0;
    for (int r = 0; r < n; r++)
        seen[r] = 0;
    for (int k = 0; k < pn->n_in; k++) {
        tti_layout_entry e = entry_of(p, pn->in[k], axis);
        if (!is_piece(e) || e.part >= n || seen[e.part] ||
            (k == 0 && pn->piece >= 0 && e.part != pn->piece))
            return broken(p, i, pn->in[k], axis, "collects");
        seen[e.part] = 1;
        have++;
    }
    if (have != n)
        return tti_broken(p, "layout", i, "collects %d pieces of %d along %s", have, n,
                          tti_mesh_axis_name(axis));
    return is_whole(entry_of(p, pn->out, axis)) ? TT_OK : broken(p, i, pn->out, axis, "makes");
}

// Rows of all lanes: which lanes is another rule.
static tt_status check_gather(const tti_plan *p, int i, tti_mesh_axis axis)
{
    const tti_pnode *pn = &p->nodes[i];
    tti_layout_entry first = entry_of(p, pn->in[0], axis);
    for (int k = 0; k < pn->n_in; k++) {
        tti_layout_entry e = entry_of(p, pn->in[k], axis);
        if (e.kind != TT_LAYOUT_SPLIT || e.dim < 0 || e.dim != first.dim)
            return broken(p, i, pn->in[k], axis, "gathers");
    }
    return is_whole(entry_of(p, pn->out, axis)) ? TT_OK : broken(p, i, pn->out, axis, "makes");
}

// A device's part of a library's collective: its place among the devices is the part it has.
static tt_status check_library(const tti_plan *p, int i, tti_mesh_axis axis)
{
    const tti_pnode *pn = &p->nodes[i];
    tti_layout_entry in = entry_of(p, pn->in[0], axis), out = entry_of(p, pn->out, axis);
    int part = i - p->collectives[pn->collective].first;
    bool gathers = pn->what->kind == TTI_ALL_GATHER;
    if (gathers ? !is_piece(in) || in.part != part : !is_partial(in))
        return broken(p, i, pn->in[0], axis, "reads");
    if (pn->what->kind == TTI_REDUCE_SCATTER ? !is_piece(out) || out.part != part : !is_whole(out))
        return broken(p, i, pn->out, axis, "makes");
    return TT_OK;
}

// ---- ops -------------------------------------------------------------------------------------

// Of what is split by rows, the node's own lanes; of pieces and rows, one coordinate's.
static tt_status check_inputs(const tti_plan *p, int i, tti_mesh_axis axis)
{
    const tti_pnode *pn = &p->nodes[i];
    int part = -1;
    for (int k = 0; k < pn->n_in; k++) {
        tti_layout_entry e = entry_of(p, pn->in[k], axis);
        if (!tti_reads(pn, k) || is_whole(e))
            continue;
        if (is_partial(e))
            return broken(p, i, pn->in[k], axis, "reads");
        const tt_lanes *ln = tti_maker(p, pn->in[k])->lanes;
        if ((part >= 0 && e.part != part) ||
            (axis == TTI_AXIS_DATA && e.dim >= 0 &&
             (ln->first != pn->lanes->first || ln->n != pn->lanes->n)))
            return broken(p, i, pn->in[k], axis, "of other parts reads");
        part = e.part;
    }
    return TT_OK;
}

// Pieces in, pieces out; else what the split rule says.
static tt_status check_made(const tti_plan *p, int i, tti_mesh_axis axis, tti_layout_entry *in,
                            tti_layout_entry *out)
{
    const tti_pnode *pn = &p->nodes[i];
    const tti_layout_entry *piece = NULL;
    if ((pn->node->op->flags & TT_OP_SOURCE) != 0)
        return TT_OK;
    for (int k = 0; k < pn->n_in; k++) {
        in[k] = entry_of(p, pn->in[k], axis);
        piece = is_piece(in[k]) ? &in[k] : piece;
    }
    bool good = piece != NULL || tti_layout_infer(p->ctx, pn->node, in, out);
    TT_TRY(tt_status_of(p->ctx)); // out of memory
    if (!good)
        return tti_broken(p, "layout", i, "cannot work on parts along %s as it does",
                          tti_mesh_axis_name(axis));
    for (int o = 0; o < pn->n_out; o++) {
        tti_layout_entry made = entry_of(p, pn->out + o, axis),
                         want = piece != NULL ? *piece : out[o];
        // Statistics of all lanes are final; what is whole may be with one coordinate only.
        bool final = want.kind == TT_LAYOUT_MOMENTS && pn->lanes->n == p->lanes.n && is_whole(made);
        if (!final && !(is_whole(want) && is_whole(made)) && !is_equal(want, made))
            return broken(p, i, pn->out + o, axis, "makes");
    }
    return TT_OK;
}

// On the mesh, a part is with its coordinate; what has no kernel there is elsewhere.
static tt_status check_place(const tti_plan *p, int i, tti_mesh_axis axis)
{
    const tti_pnode *pn = &p->nodes[i];
    for (int o = 0; o < pn->n_out; o++) {
        tti_layout_entry e = entry_of(p, pn->out + o, axis);
        if (e.kind != TT_LAYOUT_REPLICATED &&
            tti_mesh_coordinate(&p->mesh, pn->device, axis) != e.part)
            return broken(p, i, pn->out + o, axis, "elsewhere makes");
    }
    return TT_OK;
}

// ---- all -------------------------------------------------------------------------------------

typedef struct layout_check {
    uint8_t *seen;              // by coordinate
    tti_layout_entry *in, *out; // room for a node's
} layout_check;

static tt_status check_node(const tti_plan *p, int i, tti_mesh_axis axis, const layout_check *c)
{
    const tti_pnode *pn = &p->nodes[i];
    const tti_kind *kind = tti_kind_of(pn);
    for (int o = 0; o < pn->n_out; o++)
        TT_TRY(check_entry(p, i, pn->out + o, axis));
    // Parts of the model hand values on whole; what puts parts together does it along data.
    if (axis == TTI_AXIS_PIPE || kind->layout == TTI_LAYOUT_MOVES ||
        (axis != TTI_AXIS_DATA && kind->layout != TTI_LAYOUT_FOLLOWS))
        return TT_OK;
    switch (kind->layout) {
    case TTI_LAYOUT_REDUCES:
        return check_reduce(p, i, axis);
    case TTI_LAYOUT_COLLECTS:
        return check_collect(p, i, axis, c->seen);
    case TTI_LAYOUT_GATHERS:
        return check_gather(p, i, axis);
    case TTI_LAYOUT_LIBRARY:
        return check_library(p, i, axis);
    default:
        TT_TRY(check_inputs(p, i, axis));
        return pn->kind == TTI_OP ? check_made(p, i, axis, c->in, c->out) : TT_OK;
    }
}

tt_status tti_verify_layouts(const tti_plan *p)
{
    int most = tti_mesh_n_devices(&p->mesh);
    for (int64_t i = 0; i < p->n_nodes; i++)
        most = TTI_MAX(most, TTI_MAX(p->nodes[i].n_in, p->nodes[i].n_out));
    layout_check c = {.seen = tti_calloc(p->ctx, (size_t)most + 1, 1),
                      .in = tti_calloc(p->ctx, 2 * ((size_t)most + 1), sizeof(*c.in))};
    c.out = c.in == NULL ? NULL : c.in + most + 1;
    tt_status st = c.seen == NULL || c.in == NULL ? TT_ENOMEM : TT_OK;
    for (int i = 0; st == TT_OK && i < p->n_nodes; i++)
        for (int a = 0; st == TT_OK && a < TTI_N_AXES && !p->nodes[i].is_dropped; a++) {
            st = check_node(p, i, (tti_mesh_axis)a, &c);
            bool placed = p->is_on_mesh && p->fallbacks == 0 && p->nodes[i].device >= 0;
            if (st == TT_OK && placed && tti_kind_of(&p->nodes[i])->layout != TTI_LAYOUT_MOVES)
                st = check_place(p, i, (tti_mesh_axis)a);
        }
    for (int i = 0; st == TT_OK && i < p->n_fetched; i++)
        for (int a = 0; st == TT_OK && a < TTI_N_AXES; a++)
            if (!is_whole(entry_of(p, p->targets[i], (tti_mesh_axis)a)))
                st = broken(p, p->values[p->targets[i]].node, p->targets[i], (tti_mesh_axis)a,
                            "is fetched as");
    tti_free(p->ctx, c.seen);
    tti_free(p->ctx, c.in);
    return st;
}
