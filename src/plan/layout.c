/*
 * layout.c - layouts by the split rules of ops, and as text.
 */
#include "plan/layout.h"
#include <stdio.h>
#include <string.h>

// ---- rules -----------------------------------------------------------------------------------

static tti_layout_entry entry_of(tt_split s, int part)
{
    static const tt_layout_kind kinds[] = {
        [TT_SPLIT_WHOLE] = TT_LAYOUT_REPLICATED, [TT_SPLIT_AXIS] = TT_LAYOUT_SPLIT,
        [TT_SPLIT_LANE_SUM] = TT_LAYOUT_PARTIAL, [TT_SPLIT_LANE_MOMENTS] = TT_LAYOUT_MOMENTS,
        [TT_SPLIT_MIXES] = TT_LAYOUT_REPLICATED, // refused before
    };
    bool whole = s.kind == TT_SPLIT_WHOLE;
    return (tti_layout_entry){.kind = (uint8_t)kinds[s.kind],
                              .dim = s.kind == TT_SPLIT_AXIS ? (int8_t)s.axis : TTI_DIM_FLAT,
                              .part = (int16_t)(whole ? 0 : part)};
}

#define FEW 16 // inputs, as most nodes have: no memory is taken for them

// Along which axis each input is split; false: one is partial, or they are different parts.
static bool split_axes(const tt_node *n, const tti_layout_entry *in, int *axis, int *part)
{
    *part = -1;
    for (int i = 0; i < n->n_in; i++) {
        bool is_part = in[i].kind == TT_LAYOUT_SPLIT;
        axis[i] = is_part ? in[i].dim : -1;
        if (!is_part && in[i].kind != TT_LAYOUT_REPLICATED && in[i].kind != TT_LAYOUT_ONE)
            return false;
        if (is_part && (in[i].dim == TTI_DIM_FLAT || (*part >= 0 && in[i].part != *part)))
            return false;
        *part = is_part ? in[i].part : *part;
    }
    return true;
}

bool tti_layout_infer(tt_ctx *ctx, const tt_node *n, const tti_layout_entry *in,
                      tti_layout_entry *out)
{
    int few[FEW], *axis = few, part;
    tt_split splits[TTI_COUNT(((tt_infer *)0)->shape)] = {{TT_SPLIT_WHOLE, -1}};
    if (n->n_in > FEW)
        axis = tti_alloc(ctx, sizeof(int) * (size_t)n->n_in);
    bool good = axis != NULL && split_axes(n, in, axis, &part);
    tt_split_query q = {n, axis, splits};
    if (good && part >= 0)
        good = n->op->split != NULL && n->op->split(&q) == TT_OK;
    for (int i = 0; good && i < n->n_out; i++) {
        good = splits[i].kind != TT_SPLIT_MIXES;
        out[i] = entry_of(splits[i], part);
    }
    if (axis != few)
        tti_free(ctx, axis);
    return good;
}

// ---- text ------------------------------------------------------------------------------------

const char *tti_layout_entry_text(tti_layout_entry e, char out[TTI_LAYOUT_TEXT])
{
    static const char *const kinds[] = {
        [TT_LAYOUT_REPLICATED] = "replicated", [TT_LAYOUT_SPLIT] = "split",
        [TT_LAYOUT_PARTIAL] = "partial",       [TT_LAYOUT_ONE] = "one",
        [TT_LAYOUT_MOMENTS] = "moments",
    };
    if (e.kind == TT_LAYOUT_SPLIT && e.dim == TTI_DIM_FLAT)
        snprintf(out, TTI_LAYOUT_TEXT, "split(flat)@%d", e.part);
    else if (e.kind == TT_LAYOUT_SPLIT)
        snprintf(out, TTI_LAYOUT_TEXT, "split(%d)@%d", e.dim, e.part);
    else if (e.kind == TT_LAYOUT_REPLICATED)
        snprintf(out, TTI_LAYOUT_TEXT, "replicated");
    else
        snprintf(out, TTI_LAYOUT_TEXT, "%s@%d", e.kind < TTI_COUNT(kinds) ? kinds[e.kind] : "?",
                 e.part);
    return out;
}

const char *tti_layout_text(const tti_layout *l, char out[TTI_LAYOUTS_TEXT])
{
    int n = 0;
    for (int a = 0; a < TTI_N_AXES; a++) {
        char entry[TTI_LAYOUT_TEXT];
        if (l->on[a].kind == TT_LAYOUT_REPLICATED)
            continue;
        n += snprintf(out + n, (size_t)(TTI_LAYOUTS_TEXT - n), "%s%s %s", n > 0 ? ", " : "",
                      tti_mesh_axis_name((tti_mesh_axis)a), tti_layout_entry_text(l->on[a], entry));
    }
    if (n == 0)
        snprintf(out, TTI_LAYOUTS_TEXT, "replicated");
    return out;
}
