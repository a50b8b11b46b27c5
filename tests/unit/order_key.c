/*
 * order_key.c - keys of the order (plan/order_key.h): which comes first, and what a shift does at
 * the border of a rank.
 */
#include "plan/order_key.h"
#include "../test.h"
#include "base/base.h"

static tti_order_key at(int slot, int rank, int shift)
{
    return (tti_order_key){slot, rank, shift};
}

// In this order: slot before rank before shift, whatever the later parts are.
TEST(order_keys_are_compared_part_by_part)
{
    const tti_order_key sorted[] = {
        TTI_KEY_START,
        at(0, 0, 0),
        at(0, 0, 1),
        at(0, 0, TTI_SHIFT_RANK - 1),
        at(0, 1, 0),
        at(0, 1 << 30, 0),
        at(1, -1, TTI_SHIFT_RANK - TTI_SHIFT_RECEIVE), // a receive before the first of slot 1
        at(1, 0, 0),
        at(1 << 20, 5, 0),
        TTI_KEY_END,
        TTI_KEY_UNKNOWN,
    };
    int n = TTI_COUNT(sorted);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            CHECK_INT(tti_key_compare(sorted[i], sorted[k]), (i > k) - (i < k));
            CHECK(tti_key_before(sorted[i], sorted[k]) == (i < k));
            int first = i < k ? i : k, last = i < k ? k : i;
            tti_order_key e = tti_key_earlier(sorted[i], sorted[k]);
            tti_order_key l = tti_key_later(sorted[i], sorted[k]);
            CHECK_INT(tti_key_compare(e, sorted[first]), 0);
            CHECK_INT(tti_key_compare(l, sorted[last]), 0);
        }
}

static void check_shift(tti_order_key k, int shift, tti_order_key want)
{
    tti_order_key got = tti_key_shift(k, shift);
    ck_assert_msg(tti_key_compare(got, want) == 0, "(%d, %d, %d) by %d: (%d, %d, %d)", k.slot,
                  k.rank, k.shift, shift, got.slot, got.rank, got.shift);
}

TEST(a_shift_passes_into_the_next_rank_or_the_one_before)
{
    check_shift(at(2, 7, 0), TTI_SHIFT_UPDATE, at(2, 7, 500000));
    check_shift(at(2, 7, 500000), TTI_SHIFT_UPDATE, at(2, 8, 0));
    check_shift(at(2, 7, 900000), TTI_SHIFT_TREE, at(2, 8, 200000));
    check_shift(at(2, 7, 0), -TTI_SHIFT_RECEIVE, at(2, 6, 750000));
    check_shift(at(2, 7, 250000), -TTI_SHIFT_RECEIVE, at(2, 7, 0));
    check_shift(at(1, 0, 0), -TTI_SHIFT_RECOMPUTED, at(1, -1, 999999)); // still in its slot
    check_shift(TTI_KEY_START, -TTI_SHIFT_RECEIVE, at(0, -2, 750000));
    // There and back, from every shift that is used.
    static const int shifts[] = {TTI_SHIFT_RECOMPUTED, TTI_SHIFT_SEND,    TTI_SHIFT_ASSEMBLE,
                                 TTI_SHIFT_SCALAR,     TTI_SHIFT_PARTIAL, TTI_SHIFT_RECEIVE,
                                 TTI_SHIFT_TREE,       TTI_SHIFT_UPDATE,  TTI_SHIFT_RANK};
    for (int i = 0; i < TTI_COUNT(shifts); i++)
        for (int k = 0; k < TTI_COUNT(shifts); k++) {
            tti_order_key from = tti_key_shift(at(3, 4, 0), shifts[i]);
            tti_order_key to = tti_key_shift(from, shifts[k]);
            CHECK(to.shift >= 0 && to.shift < TTI_SHIFT_RANK);
            CHECK(tti_key_before(from, to));
            check_shift(to, -shifts[k], from);
        }
    // Eight scalars after one another are a rank: the ninth passes what stands there.
    tti_order_key k = at(0, 0, 0);
    for (int i = 0; i < 8; i++)
        k = tti_key_shift(k, TTI_SHIFT_SCALAR);
    CHECK_INT(tti_key_compare(k, at(0, 1, 0)), 0);
}

TEST(slots_are_added_but_the_end_stays_the_end)
{
    CHECK_INT(tti_key_compare(tti_key_slots(at(3, 4, 5), 2), at(5, 4, 5)), 0);
    CHECK_INT(tti_key_compare(tti_key_slots(TTI_KEY_START, 0), TTI_KEY_START), 0);
    CHECK_INT(tti_key_compare(tti_key_slots(TTI_KEY_END, 1000), TTI_KEY_END), 0);
    CHECK_INT(tti_key_compare(tti_key_slots(TTI_KEY_UNKNOWN, 1000), TTI_KEY_UNKNOWN), 0);
}
