/*
 * checkpoint.h - checkpoints for tests: every number in them says which step they are of.
 */
#ifndef TUTTI_TEST_CHECKPOINT_H
#define TUTTI_TEST_CHECKPOINT_H

#include "save/checkpoint.h"

#define TEST_TENSORS 6

// A small checkpoint of a step; tensors grow with scale. Free with test_snapshot_free().
void test_snapshot_make(tti_snapshot *s, int64_t step, int64_t scale);
void test_snapshot_free(tti_snapshot *s);
// Fails the test unless s is the checkpoint of its step, whole.
void test_snapshot_check(const tti_snapshot *s, int64_t scale);

#endif
