/*
 * data_compare.c - processes of a job compare their data before they train: whose differs, in what,
 * is named at once by all.
 */
#include "../world_test.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <tutti/job.h>
#include <unistd.h>

#define ROWS 3000

typedef struct odd {
    const char *set;  // which data is other on rank 1
    int row;          // whose value; below 0: none
    int rows;         // of the file
    bool extra_bytes; // behind the last row
    const char *words[4];
} odd;

static void write_csv(const char *name, int rows, int odd_row, bool extra)
{
    FILE *f = fopen(name, "w");
    fprintf(f, "a,b,y\n");
    for (int i = 0; i < rows; i++)
        fprintf(f, "%d,%d,%d\n", i % 10, i * 7 % 10, i == odd_row ? 9 : i % 5);
    if (extra)
        fprintf(f, "\n");
    fclose(f);
}

static const char yaml[] =
    "data:\n"
    "  train: {csv: {file: train.csv, y: y}}\n"
    "  validate: {csv: {file: validate.csv, y: y}}\n"
    "  test: {csv: {file: test.csv, y: y}}\n"
    "model: [{dense: 4}, {dense: 1}]\n"
    "train: {epochs: 1, batch: 100, loss: mse, optimizer: {sgd: {lr: 1e-5}}}\n";

// Every rank has a folder of its own, as machines have.
static void build(world_job *j, int rank, tt_ctx *ctx)
{
    static const char *const sets[] = {"train", "validate", "test"};
    const odd *o = j->arg;
    char folder[600];
    snprintf(folder, sizeof(folder), "%s/rank-%d", test_folder(), rank);
    mkdir(folder, 0700);
    if (chdir(folder) != 0)
        return;
    for (int i = 0; i < 3; i++) {
        char name[32];
        bool is_odd = rank == 1 && strcmp(sets[i], o->set) == 0;
        snprintf(name, sizeof(name), "%s.csv", sets[i]);
        write_csv(name, is_odd ? o->rows : ROWS, is_odd ? o->row : -1, is_odd && o->extra_bytes);
    }
    tt_job *job = tt_job_parse(ctx, yaml, strlen(yaml), "j.yaml");
    tt_job_parts parts;
    if (job == NULL || tt_job_build(job, ctx, &parts) != TT_OK)
        return;
    IGNORED(tt_fit_with(parts.model, parts.train, parts.fit));
}

TEST(data_that_differs_is_named_before_training)
{
    static const odd cases[] = {
        {"none", -1, ROWS, false, {NULL}},
        {"train", 1234, ROWS, false, {"data.train", "train.csv", "record 1234 "}},
        {"validate", 0, ROWS, false, {"data.validate", "validate.csv", "record 0 "}},
        {"test", ROWS - 1, ROWS, false, {"data.test", "test.csv", "record 2999 "}},
        {"train", -1, ROWS - 7, false, {"data.train", "train.csv", "2993 records", "3000"}},
        {"test", -1, ROWS, true, {"data.test", "test.csv", "bytes"}},
    };
    for (int i = 0; i < TTI_COUNT(cases); i++) {
        const odd *o = &cases[i];
        world_job j = {.n = 3, .strategy = "mirrored", .run = build, .arg = (void *)o};
        world_run(&j);
        for (int r = 0; r < 3; r++) {
            const char *m = j.ranks[r].message;
            if (o->words[0] == NULL) {
                ck_assert_msg(j.ranks[r].status == TT_OK, "case %d, rank %d: %s", i, r, m);
                continue;
            }
            ck_assert_msg(j.ranks[r].status == TT_EINVAL, "case %d, rank %d: %s (status %d)", i, r,
                          m, (int)j.ranks[r].status);
            CHECK_STR(m, j.ranks[0].message);
            ck_assert_msg(strstr(m, "rank 1 (/job:worker/task:1, host ") != NULL, "%s", m);
            for (int k = 0; k < 4 && o->words[k] != NULL; k++)
                ck_assert_msg(strstr(m, o->words[k]) != NULL, "'%s' is not in: %s", o->words[k], m);
            ck_assert_msg(j.ranks[r].seconds < 10, "it took %.1f s", j.ranks[r].seconds);
        }
    }
}
