/*
 * coverage.c - an op without cases fails the run: every registered op must occur in the graph of
 * some OP_CASES case, its gradients included, or be named by OP_TESTED beside tests by hand.
 */
#include "op_test.h"
#include <stdio.h>
#include <stdlib.h>

#define MAX_OPS 1024

static const tt_op *ops[MAX_OPS];
static bool is_seen[MAX_OPS];
static int n_ops;

static void mark(const char *name)
{
    for (int i = 0; i < n_ops; i++)
        if (strcmp(ops[i]->name, name) == 0)
            is_seen[i] = true;
}

static tt_ctx *list_ops(void)
{
    tt_ctx *ctx = test_ctx();
    while (n_ops < MAX_OPS && tt_op_at(ctx, n_ops) != NULL) {
        ops[n_ops] = tt_op_at(ctx, n_ops);
        n_ops++;
    }
    return ctx;
}

static int count_seen(void)
{
    int n = 0;
    for (int i = 0; i < n_ops; i++)
        n += is_seen[i];
    return n;
}

/*
 * A few cases on a GPU whose graphs together have every op that has cases: their names go to the
 * file TEST_COVER, for tools too slow for all cases.
 */
TEST(cover_of_all_ops_is_small)
{
    tt_ctx *ctx = list_ops();
    const char *path = getenv("TEST_COVER");
    FILE *out = path == NULL ? NULL : fopen(path, "w");
    int n = 0, all = 0;
    for (const test_entry *e = test_first(); e != NULL; e = e->next) {
        if (strncmp(e->name, "gpu/", 4) != 0)
            continue;
        int before = count_seen();
        all++;
        if (op_case_of_entry(e) != NULL)
            op_case_ops(op_case_of_entry(e), mark);
        if (count_seen() == before && op_case_of_entry(e) != NULL)
            continue;
        n++;
        if (out != NULL)
            fprintf(out, "%s\n", e->name);
    }
    if (out != NULL)
        fclose(out);
    CHECK(n > 50 && n < all / 2);
    CHECK_OK(tt_close(ctx));
}

TEST(every_op_has_cases)
{
    tt_ctx *ctx = list_ops();
    for (const test_entry *e = test_first(); e != NULL; e = e->next)
        if (op_case_of_entry(e) != NULL)
            op_case_ops(op_case_of_entry(e), mark);
    char missing[2048] = "";
    for (int i = 0; i < n_ops; i++)
        if (!is_seen[i] && !op_is_tested(ops[i]->name) && (ops[i]->flags & TT_OP_SOURCE) == 0)
            snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing), " %s",
                     ops[i]->name);
    CHECK_OK(tt_close(ctx));
    ck_assert_msg(missing[0] == '\0', "ops without cases:%s", missing);
}
