/*
 * kernel_key.c - what kernels are asked for by (device/kernel_key.h): which keys are equal, and
 * their text.
 */
#include "device/kernel_key.h"
#include "../test.h"
#include "base/base.h"
#include <string.h>

TEST(kernel_keys_are_equal_by_form_and_ops)
{
    char add[] = "add", sum[] = "sum"; // names elsewhere in memory
    const tti_kernel_key keys[] = {
        {TTI_KERNEL_OP, {"add", NULL, NULL}},      {TTI_KERNEL_BATCHED, {"add", NULL, NULL}},
        {TTI_KERNEL_CHAIN, {"add", "sum", NULL}},  {TTI_KERNEL_CHAIN, {"sum", "add", NULL}},
        {TTI_KERNEL_CHAIN, {"add", "sum", "mul"}}, {TTI_KERNEL_CHAIN, {"add", NULL, NULL}},
        {TTI_KERNEL_OP, {"sum", NULL, NULL}},      {TTI_KERNEL_TREE, {NULL, NULL, NULL}},
        {TTI_KERNEL_WIDEN, {NULL, NULL, NULL}},
    };
    for (int i = 0; i < TTI_COUNT(keys); i++)
        for (int k = 0; k < TTI_COUNT(keys); k++)
            CHECK(tti_kernel_key_equal(&keys[i], &keys[k]) == (i == k));
    tti_kernel_key same = {TTI_KERNEL_CHAIN, {add, sum, NULL}}, op = tti_kernel_of_op(add);
    CHECK(tti_kernel_key_equal(&same, &keys[2]));
    CHECK(tti_kernel_key_equal(&op, &keys[0]));
    CHECK(!tti_kernel_key_equal(&same, &keys[4])); // one is the beginning of the other
}

TEST(kernel_keys_as_text)
{
    static const struct {
        tti_kernel_key key;
        const char *text;
    } cases[] = {
        {{TTI_KERNEL_OP, {"matmul", NULL, NULL}}, "matmul"},
        {{TTI_KERNEL_BATCHED, {"square_sum", NULL, NULL}}, "batched square_sum"},
        {{TTI_KERNEL_CHAIN, {"add", "layer_norm", NULL}}, "chain add+layer_norm"},
        {{TTI_KERNEL_CHAIN, {"a", "b", "c"}}, "chain a+b+c"},
        {{TTI_KERNEL_INIT, {NULL, NULL, NULL}}, "init"},
        {{TTI_KERNEL_COLLECT, {NULL, NULL, NULL}}, "collect"},
    };
    char text[TTI_KERNEL_TEXT];
    for (int i = 0; i < TTI_COUNT(cases); i++) {
        tti_kernel_key_text(&cases[i].key, text);
        CHECK_STR(text, cases[i].text);
    }
    char name[200]; // too long: cut, not written past the end
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    tti_kernel_key_text(&(tti_kernel_key){TTI_KERNEL_CHAIN, {name, name, NULL}}, text);
    CHECK_INT((int)strlen(text), TTI_KERNEL_TEXT - 1);
}
