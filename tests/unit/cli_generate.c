/*
 * cli_generate.c - tutti generate: how tokens are drawn, texts side by side, stop words.
 */
#include "../command.h"
#include "train/sampling.h"
#include <math.h>

#define N 5

static int32_t draw(tti_sampling s, const float *scores, const int32_t *text, int64_t n, double u)
{
    float copy[N];
    int32_t order[N];
    memcpy(copy, scores, sizeof(copy));
    return tti_sample(&s, copy, N, text, n, u, order);
}

TEST(sampling_draws_by_probability)
{
    const float scores[N] = {logf(1), logf(4), logf(2), logf(2), logf(1)}; // of 10
    tti_sampling all = {.temperature = 1};
    ck_assert_int_eq(draw(all, scores, NULL, 0, 0.05), 0);
    ck_assert_int_eq(draw(all, scores, NULL, 0, 0.15), 1);
    ck_assert_int_eq(draw(all, scores, NULL, 0, 0.49), 1);
    ck_assert_int_eq(draw(all, scores, NULL, 0, 0.55), 2);
    ck_assert_int_eq(draw(all, scores, NULL, 0, 0.999), 4);
    ck_assert_int_eq(draw((tti_sampling){.temperature = 0}, scores, NULL, 0, 0.999), 1);
}

TEST(sampling_cuts_to_the_top)
{
    const float scores[N] = {logf(1), logf(4), logf(2), logf(2), logf(1)};
    // The two highest: 1 and, of two equal ones, the lower token 2: 4 and 2 of 6.
    tti_sampling k = {.temperature = 1, .top_k = 2};
    ck_assert_int_eq(draw(k, scores, NULL, 0, 0.65), 1);
    ck_assert_int_eq(draw(k, scores, NULL, 0, 0.68), 2);
    ck_assert_int_eq(draw(k, scores, NULL, 0, 0.999), 2);
    // 0.4 and 0.2 reach 0.55; 0.4 alone does not.
    tti_sampling p = {.temperature = 1, .top_p = 0.55};
    ck_assert_int_eq(draw(p, scores, NULL, 0, 0.65), 1);
    ck_assert_int_eq(draw(p, scores, NULL, 0, 0.999), 2);
    p.top_p = 0.1;
    ck_assert_int_eq(draw(p, scores, NULL, 0, 0.999), 1);
}

TEST(sampling_lowers_what_was_said)
{
    const float scores[N] = {1, 4, 3, -1, -2};
    const int32_t text[] = {1, 1, 3};
    tti_sampling s = {.temperature = 0, .penalty = 2}; // 4 becomes 2, once
    ck_assert_int_eq(draw(s, scores, text, 3, 0), 2);
    s.penalty = 1.1;
    ck_assert_int_eq(draw(s, scores, text, 3, 0), 1);
}

TEST(generate_writes_texts_side_by_side)
{
    static char one[1 << 12];
    command_write("t.txt", "abcabcabc abcabc cab cab abc abc abcabcabcabc cabcabcab");
    command_write("text.yaml",
                  "data: {train: {text: {file: ./t.txt, level: char, context: 8, stride: 4}}}\n"
                  "model: {gpt: {layers: 1, heads: 2, width: 8}}\n"
                  "train: {steps: 5, batch: 4, loss: cross_entropy, optimizer: adam}\n");
    command_ok("train text.yaml --quiet");
    command_ok("generate text --prompt ab --length 30 --temperature 2 --seed 4");
    ck_assert_uint_lt(strlen(command_out), sizeof(one));
    strcpy(one, command_out);
    command_ok("predict text --prompt ab --length 30 --temperature 2 --seed 4");
    ck_assert_str_eq(command_out, one);
    command_ok("generate text --prompt ab --length 30 --temperature 2 --seed 4 --samples 3");
    CHECK(strncmp(command_out, one, strlen(one)) == 0); // the first is what it is alone
    ck_assert_int_eq(command_count(command_out, "\n---\n"), 2);
    CHECK(strncmp(strstr(command_out, "---\n") + 4, one, strlen(one)) != 0);
    command_ok("generate text --prompt ab --length 20 --top-k 1 --temperature 5");
    ck_assert_uint_lt(strlen(command_out), sizeof(one));
    strcpy(one, command_out);
    command_ok("generate text --prompt ab --length 20 --temperature 0");
    ck_assert_str_eq(command_out, one);
    command_ok("generate text --prompt ab --length 200 --temperature 9 --stop b --stop cc --json");
    CHECK_HAS(command_out, "\"finish\": \"stop\"");
    const char *text = strstr(command_out, "\"text\": \"");
    CHECK(strcspn(text + 9, "b") > strcspn(text + 9, "\""));
    CHECK(command_run("generate text --prompt ab --stop") == 2);
    CHECK(command_run("generate text --prompt ab --top-p 1.5") == 2);
    CHECK_HAS(command_err, "--top-p: '1.5' is not a number from 0 to 1");
}
