/*
 * cli_same_bits.c - tutti bench same-bits: its table, JSON, hashes, and what it refuses.
 */
#include "../command.h"

#define out command_out
#define err command_err

TEST(same_bits_prints_the_matrix)
{
    command_ok("bench same-bits mlp.sgd 1 7 34");
    CHECK_HAS(out, "mlp   sgd   single                1 ");
    CHECK_HAS(out, "mlp   sgd   mirrored              3 ");
    CHECK_HAS(out, "3 combinations, 1 model: one hash each");
    CHECK_INT(command_count(out, "a4c7b89227dff532"), 3);
}

TEST(same_bits_compares_processes)
{
    if (strstr(tt_version_text(), "zeromq: yes") == NULL)
        test_skip("this build has no ZeroMQ");
    command_ok("bench same-bits mlp.sgd 7 --processes 3");
    CHECK_HAS(out, "3 by wire");
    CHECK_HAS(out, "5 combinations, 1 model: one hash each");
    CHECK_INT(command_count(out, "a4c7b89227dff532"), 5);
    CHECK_INT(command_run("bench same-bits mlp.sgd 7 --processes 9"), 2);
}

TEST(same_bits_prints_json)
{
    int lines;
    command_ok("bench same-bits mlp 7 --json");
    json_t *o = command_last_object(out, &lines);
    CHECK_INT(lines, 2);
    CHECK_STR(json_string_value(json_object_get(o, "strategy")), "mirrored");
    CHECK_STR(json_string_value(json_object_get(o, "optimizer")), "adam");
    CHECK_INT(json_integer_value(json_object_get(o, "devices")), 3);
    CHECK(json_is_true(json_object_get(o, "same")));
    json_decref(o);
}

TEST(same_bits_writes_hashes_for_diff)
{
    command_ok("bench same-bits cnn.adam 1 --hashes one.hashes");
    command_ok("bench same-bits cnn.adam 7 --hashes three.hashes");
    command_ok("diff one.hashes three.hashes");
    CHECK_HAS(out, "equal: ");
    command_ok("bench same-bits cnn.sgd 1 --hashes other.hashes");
    CHECK_INT(command_run("diff one.hashes other.hashes"), 1);
}

TEST(same_bits_refuses_what_it_has_not)
{
    CHECK_INT(command_run("bench same-bits gtp"), 2);
    CHECK_HAS(err, "unknown model 'gtp'; choose mlp, cnn, gpt, norm, lane, bf16, f16");
    CHECK_INT(command_run("bench same-bits mlp 999"), 2);
    CHECK_HAS(err, "row 999 is not between 1 and ");
}
