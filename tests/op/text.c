/*
 * text.c - every op as text: the graph of each case, its gradients included, is printed and read
 * back to the same text, and what was read computes the same bits.
 */
#include "graph/text.h"
#include "op_trial.h"
#include <stdlib.h>

// The same tensor in the graph that was read.
static tt_tensor *in_copy(const tt_graph *copy, const tt_tensor *x)
{
    return x == NULL ? NULL : copy->nodes[x->node->id]->outs[x->index];
}

// Prints and reads the graph of t; t then is a trial of what was read.
static void replace_graph(op_test *t)
{
    char *a = tt_graph_print(t->g);
    if (a == NULL)
        op_fail(t, "print: %s", tt_last_error(t->ctx).message);
    tt_graph *copy = tt_graph_parse(t->ctx, a, strlen(a));
    if (copy == NULL)
        op_fail(t, "%s in\n%s", tt_last_error(t->ctx).message, a);
    char *b = tt_graph_print(copy);
    if (b == NULL || strcmp(a, b) != 0)
        op_fail(t, "the text changes from\n%s\nto\n%s", a, b);
    tt_string_free(t->ctx, a);
    tt_string_free(t->ctx, b);

    for (int i = 0; i < t->n_in; i++) {
        t->in[i].tensor = in_copy(copy, t->in[i].tensor);
        t->dx[i] = in_copy(copy, t->dx[i]);
    }
    t->y = in_copy(copy, t->y);
    t->w.tensor = in_copy(copy, t->w.tensor);
    t->g = copy;
    t->s = tt_session_new(copy);
}

TEST(every_op_round_trips_as_text)
{
    for (const test_entry *e = test_first(); e != NULL; e = e->next) {
        const op_case *c = op_case_of_entry(e);
        if (c == NULL)
            continue;
        op_test t;
        op_result before, after;
        op_open(&t, "text", c, e->name,
                (op_how){.form = OP_AS_CONSTANTS,
                         .threads = 1,
                         .gradient = (c->skip & OP_NO_GRAD) == 0});
        op_run(&t, NULL, &before);
        replace_graph(&t);
        op_run(&t, NULL, &after);
        for (int i = 0; i < before.n; i++) {
            const op_out *x = &before.out[i], *y = &after.out[i];
            size_t bytes = tt_dtype_bytes(x->dtype) * (size_t)x->count;
            if ((x->tensor == NULL) != (y->tensor == NULL) || x->count != y->count ||
                (x->tensor != NULL && memcmp(x->data, y->data, bytes) != 0))
                op_fail(&t, "result %d has other bits", i);
        }
        op_result_free(&before);
        op_result_free(&after);
        op_close(&t);
    }
}
