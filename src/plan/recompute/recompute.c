/*
 * recompute.c - activations that are not kept for the backward part but computed again in it: which
 * they are. recompute_copies.c then makes the copies that compute them.
 *
 * Chosen are the inside of segments ("all", see recompute_segments.c), the inside of named layers,
 * or the cheapest of "all" (recompute_budget.c). Sums over rows are always kept.
 */
#include "plan/recompute/recompute.h"
#include <stdio.h>
#include <string.h>

typedef tti_chooser chooser;

// ---- texts -----------------------------------------------------------------------------------

// The text is this word, or with a value this word and more.
static bool is_word(const char *text, const char *word, bool value)
{
    size_t n = strlen(word);
    text += strspn(text, " \t");
    if (strncmp(text, word, n) != 0)
        return false;
    return value ? strchr(" \t:", text[n]) != NULL : text[n + strspn(text + n, " \t")] == 0;
}

bool tti_recompute_is_none(const char *text)
{
    return text == NULL || text[strspn(text, " \t,")] == 0 || is_word(text, "none", false);
}

bool tti_recompute_budget(tt_ctx *ctx, const char *text, size_t *bytes, tt_status *st)
{
    *st = TT_OK;
    if (tti_recompute_is_none(text) || !is_word(text, "budget", true))
        return false;
    const char *size = strstr(text, "budget") + 6;
    *st = tti_parse_size(ctx, size + strspn(size, " \t:"), bytes);
    return true;
}

/*
 * The layer of a node that a pattern means: the shortest scope in its name that matches, "block.0"
 * or "block.0/attn", which may also be written with dots throughout. Its length; 0: none.
 */
static size_t layer_matched(const char *pattern, size_t n, const char *name)
{
    char scope[TTI_NAME_MAX], dots[TTI_NAME_MAX];
    for (const char *slash = strchr(name, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        size_t length = (size_t)(slash - name);
        if (length >= sizeof(scope))
            return 0;
        memcpy(scope, name, length);
        scope[length] = 0;
        for (size_t i = 0; i <= length; i++)
            dots[i] = scope[i] == '/' ? '.' : scope[i];
        if (tti_match_one(pattern, n, scope) || tti_match_one(pattern, n, dots))
            return length;
    }
    return 0;
}

static size_t layer_of(const char *patterns, const char *name)
{
    size_t best = 0;
    for (const char *p = patterns; *p != 0;) {
        p += strspn(p, ", \t");
        size_t n = strcspn(p, ", \t"), length = n > 0 ? layer_matched(p, n, name) : 0;
        if (length > 0 && (best == 0 || length < best))
            best = length;
        p += n;
    }
    return best;
}

static bool is_forward(const tt_node *n)
{
    return n->origin == NULL && (n->op->flags & (TT_OP_SOURCE | TT_OP_UPDATE)) == 0;
}

// Names the pattern and the first few layers there are.
static tt_status refuse_pattern(const tt_graph *g, const char *pattern, size_t n)
{
    char list[160] = "", last[48] = "";
    size_t at = 0;
    for (int64_t i = 0; i < g->n_nodes && at + 64 < sizeof(list); i++) {
        const char *name = g->nodes[i]->name, *slash = strchr(name, '/');
        size_t length = slash == NULL ? 0 : (size_t)(slash - name);
        if (!is_forward(g->nodes[i]) || length == 0 || length >= sizeof(last) ||
            (strncmp(name, last, length) == 0 && last[length] == 0))
            continue;
        snprintf(last, sizeof(last), "%.*s", (int)length, name);
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", at > 0 ? ", " : "", last);
    }
    return TT_FAIL(g->ctx, TT_EINVAL,
                   "recompute: no layer matches '%.*s'; use none, all, budget with a size, or "
                   "layer name patterns (%s, ...)",
                   (int)n, pattern, list);
}

tt_status tti_recompute_check(tt_graph *g, const char *text)
{
    size_t budget;
    tt_status st;
    if (tti_recompute_is_none(text) || tti_recompute_budget(g->ctx, text, &budget, &st))
        return tti_recompute_is_none(text) ? TT_OK : st;
    if (is_word(text, "all", false))
        return TT_OK;
    for (const char *p = text; *p != 0;) {
        p += strspn(p, ", \t");
        size_t n = strcspn(p, ", \t"), found = n == 0;
        for (int64_t i = 0; !found && i < g->n_nodes; i++)
            found = is_forward(g->nodes[i]) && layer_matched(p, n, g->nodes[i]->name) > 0;
        if (!found)
            return refuse_pattern(g, p, TTI_MIN(n, (size_t)64));
        p += n;
    }
    return TT_OK;
}

// ---- candidates ------------------------------------------------------------------------------

bool tti_is_repeatable(const chooser *c, int i)
{
    const tti_pnode *pn = &c->p->nodes[i];
    unsigned never = TT_OP_SOURCE | TT_OP_UPDATE | TT_OP_EFFECT;
    if (c->backward[i] || pn->is_dropped || pn->kind != TTI_OP || pn->n_out == 0 ||
        pn->n_after > 0 || pn->node->mixes_rows || (pn->node->op->flags & never) != 0)
        return false;
    for (int k = 0; k < pn->n_out; k++) {
        const tti_value *v = &c->p->values[pn->out + k];
        if (v->tensor->layout.kind != TT_LAYOUT_SPLIT || v->memory == TTI_CONSTANT || v->keep)
            return false;
    }
    return true;
}

static void mark_backward(chooser *c)
{
    const tti_plan *p = c->p;
    for (int64_t i = 0; i < c->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        c->backward[i] = pn->kind == TTI_OP && pn->node->origin != NULL;
        for (int k = 0; k < pn->n_in && !c->backward[i]; k++)
            c->backward[i] = c->backward[p->values[pn->in[k]].node];
    }
}

static tt_status estimate(chooser *c, tti_candidate *cand)
{
    tti_plan *p = c->p;
    const tti_pnode *pn = &p->nodes[cand->node];
    bool wide = tti_needs_widening(pn->node);
    int n = pn->n_in + pn->n_out;
    tt_arg *args = tti_calloc(p->ctx, (size_t)n, sizeof(*args));
    tt_prep *prep = tti_calloc(p->ctx, 1, sizeof(*prep));
    tt_status st = args == NULL || prep == NULL ? TT_ENOMEM : TT_OK;
    for (int i = 0; st == TT_OK && i < n; i++) {
        tti_arg_fill(&args[i], &p->values[i < pn->n_in ? pn->in[i] : pn->out + i - pn->n_in]);
        if (wide && (args[i].dtype == TT_BF16 || args[i].dtype == TT_F16))
            args[i].dtype = TT_F32;
    }
    if (st == TT_OK)
        st = tti_prepare(p, pn->node, -1, pn->lanes, args, args + pn->n_in, prep);
    if (st == TT_OK)
        cand->ns = prep->ns > 0 ? prep->ns : (double)args[pn->n_in].count;
    tti_free(p->ctx, args);
    tti_free(p->ctx, prep);
    return st;
}

tti_candidate *tti_candidate_of(const chooser *c, int value)
{
    int number = c->number[c->p->values[tti_root(c->p, value)].node];
    return number < 0 ? NULL : &c->list[number];
}

// Who reads what each candidate makes.
static void find_readers(chooser *c)
{
    tti_plan *p = c->p;
    uint8_t *counted = c->is_recomputed; // by node, here: bit k: output k was counted
    for (int64_t i = 0; i < c->n_nodes; i++) {
        const tti_pnode *pn = &p->nodes[i];
        for (int k = 0; k < pn->n_in && !pn->is_dropped; k++) {
            tti_candidate *from = tti_candidate_of(c, pn->in[k]);
            if (from == NULL || !tti_reads(pn, k))
                continue;
            if (c->number[i] >= 0)
                from->last = TTI_MAX(from->last, c->number[i]);
            int root = tti_root(p, pn->in[k]), output = root - p->nodes[from->node].out;
            if (!c->backward[i] || (counted[from->node] >> TTI_MIN(output, 7) & 1) != 0)
                continue;
            counted[from->node] |= (uint8_t)(1u << TTI_MIN(output, 7));
            from->saved += p->values[root].bytes;
        }
    }
    memset(c->is_recomputed, 0, (size_t)c->n_nodes);
}

static tt_status find_candidates(chooser *c)
{
    tti_plan *p = c->p;
    mark_backward(c);
    for (int64_t i = 0; i < c->n_nodes; i++) {
        c->number[i] = c->copy[i] = -1;
        if (!tti_is_repeatable(c, (int)i) || tti_is_view(&p->nodes[i]))
            continue;
        tti_candidate *cand = &c->list[c->n];
        *cand = (tti_candidate){.node = (int)i, .last = c->n};
        for (int k = 0; k < p->nodes[i].n_out; k++)
            cand->bytes += p->values[p->nodes[i].out + k].bytes;
        TT_TRY(estimate(c, cand));
        c->number[i] = c->n++;
        p->forward_ns += cand->ns;
    }
    find_readers(c);
    return TT_OK;
}

// ---- the choice ------------------------------------------------------------------------------

// The inside of layers; what one that matches hands to another that matches is kept.
static void choose_layers(chooser *c, const char *patterns)
{
    tti_plan *p = c->p;
    for (int i = 0; i < c->n; i++)
        c->list[i].is_recomputed = layer_of(patterns, p->nodes[c->list[i].node].node->name) > 0;
    for (int i = 0; i < c->n; i++) {
        const tti_pnode *pn = &p->nodes[c->list[i].node];
        size_t length = layer_of(patterns, pn->node->name);
        for (int k = 0; k < pn->n_in && length > 0; k++) {
            tti_candidate *from = tti_candidate_of(c, pn->in[k]);
            const char *name = from == NULL ? "" : p->nodes[from->node].node->name;
            if (from != NULL && layer_of(patterns, name) > 0 &&
                (layer_of(patterns, name) != length || strncmp(name, pn->node->name, length) != 0))
                from->is_recomputed = false;
        }
    }
}

// Of those chosen only the n cheapest by the byte that they free stay.
static void keep_cheapest(chooser *c, int n)
{
    for (;; n--) {
        int best = -1;
        double least = 0;
        for (int i = 0; i < c->n; i++) {
            const tti_candidate *x = &c->list[i];
            double price = x->ns / (double)TTI_MAX(x->saved, x->bytes / 16 + 1);
            if (x->is_recomputed && c->is_recomputed[x->node] == 0 && (best < 0 || price < least)) {
                best = i;
                least = price;
            }
        }
        if (best < 0)
            break;
        if (n <= 0)
            c->list[best].is_recomputed = false;
        else
            c->is_recomputed[c->list[best].node] = 1;
    }
    memset(c->is_recomputed, 0, (size_t)c->n_nodes);
}

/*
 * Computing a value again from inputs that would otherwise be dropped, and are no smaller, gains
 * nothing: such a value is kept after all.
 */
static void drop_useless(chooser *c)
{
    uint8_t *held = c->backward + c->n_nodes; // by candidate: its output stays anyway
    for (int i = 0; i < c->n; i++)
        held[i] = !c->list[i].is_recomputed && c->list[i].saved > 0;
    for (int i = 0; i < c->n; i++) {
        const tti_pnode *pn = &c->p->nodes[c->list[i].node];
        size_t cost = 0;
        for (int k = 0; k < pn->n_in && c->list[i].is_recomputed; k++) {
            const tti_candidate *from = tti_candidate_of(c, pn->in[k]);
            if (from != NULL && !from->is_recomputed && !held[from - c->list])
                cost += c->p->values[tti_root(c->p, pn->in[k])].bytes;
        }
        if (cost > 0 && cost >= c->list[i].saved) {
            c->list[i].is_recomputed = false;
            held[i] = c->list[i].saved > 0;
        }
        for (int k = 0; k < pn->n_in && c->list[i].is_recomputed; k++) {
            const tti_candidate *from = tti_candidate_of(c, pn->in[k]);
            if (from != NULL && !from->is_recomputed)
                held[from - c->list] = 1;
        }
    }
}

// What one local device of a replica hands to another is kept where it was received.
static tt_status keep_handed_on(chooser *c, const tti_plan_request *req)
{
    tti_plan *p = c->p;
    if (tti_mesh_size(&p->mesh, TTI_AXIS_PIPE) < 2)
        return TT_OK;
    int *stage = tti_calloc(p->ctx, (size_t)c->n_nodes + 1, sizeof(int));
    if (stage == NULL)
        return TT_ENOMEM;
    tt_status st = tti_plan_stages(p, req, stage);
    for (int i = 0; st == TT_OK && i < c->n; i++) {
        const tti_pnode *pn = &p->nodes[c->list[i].node];
        for (int k = 0; k < pn->n_in; k++) {
            tti_candidate *from = tti_candidate_of(c, pn->in[k]);
            if (from != NULL && stage[from->node] != stage[c->list[i].node])
                from->is_recomputed = false;
        }
    }
    tti_free(p->ctx, stage);
    return st;
}

static tt_status choose(chooser *c, const tti_plan_request *req)
{
    size_t budget;
    tt_status st;
    TT_TRY(find_candidates(c));
    bool all = is_word(req->recompute, "all", false) ||
               tti_recompute_budget(c->p->ctx, req->recompute, &budget, &st);
    if (all)
        TT_TRY(tti_segments_choose(c->p->ctx, c->list, c->n));
    else
        choose_layers(c, req->recompute);
    if (all && req->cheapest > 0)
        keep_cheapest(c, req->cheapest);
    for (int i = 0; i < c->n; i++)
        c->p->n_chosen += c->list[i].is_recomputed;
    TT_TRY(keep_handed_on(c, req));
    drop_useless(c);
    return tti_recompute_copy(c);
}

tt_status tti_plan_recompute(tti_plan *p, const tti_plan_request *req)
{
    if (tti_recompute_is_none(req->recompute))
        return TT_OK;
    chooser c = {.p = p, .n_nodes = p->n_nodes};
    size_t n = (size_t)p->n_nodes + 1;
    c.backward = tti_calloc(p->ctx, 2 * n, 1);
    c.is_recomputed = tti_calloc(p->ctx, n, 1);
    c.number = tti_calloc(p->ctx, n, sizeof(int));
    c.copy = tti_calloc(p->ctx, n, sizeof(int));
    c.list = tti_calloc(p->ctx, n, sizeof(*c.list));
    tt_status st = TT_ENOMEM;
    if (c.backward != NULL && c.is_recomputed != NULL && c.number != NULL && c.copy != NULL &&
        c.list != NULL)
        st = choose(&c, req);
    tti_free(p->ctx, c.backward);
    tti_free(p->ctx, c.is_recomputed);
    tti_free(p->ctx, c.number);
    tti_free(p->ctx, c.copy);
    tti_free(p->ctx, c.list);
    return st;
}
