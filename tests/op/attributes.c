/*
 * attributes.c - equal nodes have equal attributes, byte for byte: plans hash and compare the bytes
 * to find duplicates. Whatever lay on the stack before a node was built must not be seen in them.
 */
#include "graph/graph.h"
#include "op_test.h"
#include <stdlib.h>

#define PAINTED (256 << 10) // bytes of stack below the caller

__attribute__((noinline)) static void paint(int value)
{
    char room[PAINTED];
    memset(room, value, sizeof(room));
    __asm__ volatile("" : : "r"(room) : "memory"); // it is written though nobody reads it
}

// Attributes of all nodes, one after another, and where the nodes' begin.
typedef struct image {
    char bytes[1 << 18];
    size_t n, begin[1024];
    char op[1024][32];
    int n_nodes;
} image;

static void add_node(const tt_node *n, void *user)
{
    image *im = user;
    size_t size = n->attr == NULL ? 0 : n->op->attr_size;
    if (im->n_nodes == 1024 || im->n + size > sizeof(im->bytes))
        ck_abort_msg("a case with more than 1024 nodes");
    strncpy(im->op[im->n_nodes], n->op->name, 31);
    im->begin[im->n_nodes++] = im->n;
    memcpy(im->bytes + im->n, size == 0 ? "" : n->attr, size);
    im->n += size;
}

static void compare(const image *a, const image *b, const char *what)
{
    CHECK_INT(a->n_nodes, b->n_nodes);
    CHECK_INT((int)a->n, (int)b->n);
    for (int i = 0; i < a->n_nodes; i++) {
        size_t end = i + 1 < a->n_nodes ? a->begin[i + 1] : a->n;
        CHECK_STR(a->op[i], b->op[i]);
        for (size_t k = a->begin[i]; k < end; k++)
            ck_assert_msg(a->bytes[k] == b->bytes[k],
                          "%s: byte %d of the attributes of %s is 0x%02x, then 0x%02x", what,
                          (int)(k - a->begin[i]), a->op[i], (unsigned char)a->bytes[k],
                          (unsigned char)b->bytes[k]);
    }
}

TEST(attributes_hold_nothing_of_the_stack)
{
    image *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
    int n = 0;
    CHECK(a != NULL && b != NULL);
    for (const test_entry *e = test_first(); e != NULL; e = e->next) {
        const op_case *c = op_case_of_entry(e);
        if (c == NULL || strncmp(e->name, "gpu/", 4) == 0)
            continue;
        memset(a, 0, sizeof(*a));
        memset(b, 0, sizeof(*b));
        paint(0xaa);
        op_case_nodes(c, add_node, a);
        paint(0x55);
        op_case_nodes(c, add_node, b);
        compare(a, b, e->name);
        n++;
    }
    CHECK(n > 100);
    free(a);
    free(b);
}

// A model that trains: its layers, gradients and updates, and the plan of its step.
static char *plan_of(image *im, int value)
{
    tt_ctx *ctx = test_ctx();
    tt_model *m = tt_sequential(ctx, .input = {8, 8, 3});
    paint(value);
    tt_layer_conv2d(m, .filters = 4, .kernel = {3, 3}, .act = TT_RELU);
    paint(value);
    tt_layer_batch_norm(m);
    paint(value);
    tt_layer_max_pool2d(m, .size = {2, 2});
    paint(value);
    tt_layer_flatten(m);
    paint(value);
    tt_layer_dense(m, .units = 12, .act = TT_GELU);
    paint(value);
    tt_layer_layer_norm(m);
    paint(value);
    tt_layer_dense(m, .units = 5);
    paint(value);
    tt_compile(m, .loss = TT_CROSS_ENTROPY, .metrics = TT_ACCURACY,
               .optimizer = tt_adamw(.clip_global = 1, .ema = 0.9));
    CHECK_OK(tt_status_of(ctx));
    tt_graph *g = tt_model_get_train_graph(m);
    tt_tensor *list[64];
    int n = 0;
    for (int64_t i = 0; i < g->n_nodes; i++) {
        const tt_node *node = g->nodes[i];
        add_node(node, im);
        if ((node->op->flags & TT_OP_UPDATE) != 0 && n < 64)
            list[n++] = node->out;
    }
    char *text =
        tt_plan_print(tt_model_get_session(m), .targets = list, .n_targets = n, .rows = 16);
    CHECK(text != NULL);
    char *copy = strdup(text);
    tt_string_free(ctx, text);
    CHECK_OK(tt_close(ctx));
    return copy;
}

TEST(plans_hold_nothing_of_the_stack)
{
    image *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
    CHECK(a != NULL && b != NULL);
    char *first = plan_of(a, 0xaa), *second = plan_of(b, 0x55);
    compare(a, b, "a model");
    CHECK_STR(first, second);
    free(first);
    free(second);
    free(a);
    free(b);
}
