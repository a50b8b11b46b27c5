/*
 * same_bits.c - tutti bench same-bits: trains every model of the matrix in every way and compares
 * what comes out.
 */
#include "cli/matrix.h"
#include "cli/report.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct tally {
    int n, n_models, differ, failed;
} tally;

// Over how many processes, and what carries data between them.
typedef struct spread {
    int processes;
    const char *transport;
} spread;

static void print_json(const matrix_model *model, int number, const spread *over,
                       const matrix_result *r, bool same)
{
    const matrix_way *way = &matrix_ways[number];
    char hash[33], options[128];
    tti_text t = {0};
    matrix_options(way, options);
    cli_hash_text(&r->weights, hash);
    tti_text_add(&t,
                 "{\"way\": %d, \"model\": \"%s\", \"optimizer\": \"%s\", \"strategy\": \"%s\", "
                 "\"devices\": %d, \"options\": ",
                 number + 1, model->name, model->optimizer, matrix_strategy(way), way->devices);
    tti_text_json(&t, options);
    if (over->processes > 1)
        tti_text_add(&t, ", \"processes\": %d, \"transport\": \"%s\"", over->processes,
                     over->transport);
    if (r->status == TT_OK)
        tti_text_add(&t, ", \"hash\": \"%s\", \"loss\": %.17g, \"step_ms\": %.6g", hash, r->loss,
                     r->ms);
    tti_text_add(&t, ", \"same\": %s, \"error\": ", same ? "true" : "false");
    tti_text_json(&t, r->message);
    tti_text_add(&t, "}\n");
    cli_print_text(&t);
}

static void print_text(const matrix_model *model, int number, const spread *over,
                       const matrix_result *r, bool same)
{
    const matrix_way *way = &matrix_ways[number];
    char hash[33], options[128];
    matrix_options(way, options);
    if (over->processes > 1) {
        size_t n = strlen(options);
        snprintf(options + n, sizeof(options) - n, "%s%d by %s", n > 0 ? ", " : "", over->processes,
                 over->transport);
    }
    cli_hash_text(&r->weights, hash);
    printf("%3d  %-5s %-5s %-20s %2d  %-35s ", number + 1, model->name, model->optimizer,
           matrix_strategy(way), way->devices, options);
    if (r->status != TT_OK)
        printf("%s\n", r->message);
    else
        printf("%.16s %8.3f%s\n", hash, r->ms, same ? "" : "  differs");
    fflush(stdout);
}

static bool is_number(const char *word)
{
    return word[0] >= '0' && word[0] <= '9';
}

static bool is_called(const matrix_model *model, const char *word)
{
    char name[32];
    snprintf(name, sizeof(name), "%s.%s", model->name, model->optimizer);
    return strcmp(word, model->name) == 0 || strcmp(word, name) == 0;
}

// Words select models, "gpt" or "gpt.adam", and ways by number; no word of a kind: all of them.
static bool wants_model(const cli_args *args, const matrix_model *model)
{
    bool any = false, wanted = false;
    for (int i = 1; i < args->n_words; i++) {
        any |= !is_number(args->words[i]);
        wanted |= is_called(model, args->words[i]);
    }
    return wanted || !any;
}

static bool wants_way(const cli_args *args, int number)
{
    bool any = false, wanted = false;
    for (int i = 1; i < args->n_words; i++) {
        any |= is_number(args->words[i]);
        wanted |= is_number(args->words[i]) && atoi(args->words[i]) == number + 1;
    }
    return wanted || !any;
}

static int check_words(const cli_args *args)
{
    for (int i = 1; i < args->n_words; i++) {
        const char *word = args->words[i];
        bool known = false;
        for (int k = 0; k < matrix_n_models(); k++)
            known |= is_called(&matrix_models[k], word);
        if (is_number(word) && (atoi(word) < 1 || atoi(word) > matrix_n_ways()))
            return cli_usage("tutti bench same-bits: row %s is not between 1 and %d", word,
                             matrix_n_ways());
        if (!is_number(word) && !known)
            return cli_usage(
                "tutti bench same-bits: unknown model '%s'; choose mlp, cnn, gpt, norm, lane, "
                "bf16, f16, one with an optimizer such as mlp.sgd, or a row from 1 to %d",
                word, matrix_n_ways());
    }
    return CLI_OK;
}

// One process, then 2 to --processes by shared memory and by wire; none left: 0 processes.
static spread next_spread(const cli_args *args, const matrix_way *way, spread last)
{
    if (last.processes > 1 && strcmp(last.transport, "shm") == 0)
        return (spread){last.processes, "wire"};
    bool more = last.processes < args->processes && last.processes < way->devices;
    return (spread){more ? last.processes + 1 : 0, "shm"};
}

/*
 * A GPU cannot be used on both sides of a fork: where there are processes to fork, it is opened in
 * those alone.
 */
static void run_alone(const cli_args *args, const matrix_model *model, const matrix_way *way,
                      const char *hashes, matrix_result *out)
{
    bool forks = args->processes > 1 && way->device != NULL && strncmp(way->device, "gpu", 3) == 0;
    if (forks)
        matrix_run_job(model, way, 1, "shm", out);
    else
        matrix_run(model, way, hashes, out);
}

static void run_model(const cli_args *args, const matrix_model *model, tally *t)
{
    matrix_result one[MATRIX_MAX_LANES + 1];
    bool has[MATRIX_MAX_LANES + 1] = {false};
    int before = t->n;
    for (int i = 0; i < matrix_n_ways(); i++) {
        matrix_way way = matrix_ways[i];
        matrix_result r;
        if (!matrix_has(model, &way) || !wants_way(args, i))
            continue;
        way.device = args->devices;
        if (!has[way.lanes]) {
            matrix_way reference = matrix_reference(way.lanes);
            reference.device = args->devices;
            run_alone(args, model, &reference, NULL, &one[way.lanes]);
            has[way.lanes] = true;
        }
        for (spread over = {1, "shm"}; over.processes > 0; over = next_spread(args, &way, over)) {
            if (over.processes == 1)
                run_alone(args, model, &way, args->hashes, &r);
            else
                matrix_run_job(model, &way, over.processes, over.transport, &r);
            bool same = matrix_same(&r, &one[way.lanes]) &&
                        (!matrix_has_golden(&way) || matrix_is_golden(model, &r));
            (args->json ? print_json : print_text)(model, i, &over, &r, same);
            t->n++;
            t->failed += r.status != TT_OK;
            t->differ += r.status == TT_OK && !same;
        }
    }
    t->n_models += t->n > before;
}

int cli_same_bits(const cli_args *args)
{
    tally t = {0};
    int rc = check_words(args);
    if (rc != CLI_OK)
        return rc;
    if (args->devices != NULL && args->devices[strcspn(args->devices, "*@, ")] != '\0')
        return cli_usage("tutti bench same-bits: --devices must be one device, cpu:0 or gpu:0, "
                         "which is divided into the devices of each row; not '%s'",
                         args->devices);
    if (args->processes > MATRIX_MOST_TASKS)
        return cli_usage("tutti bench same-bits: --processes is %lld; the limit is %d",
                         (long long)args->processes, MATRIX_MOST_TASKS);
    if (!args->json)
        printf("%3s  %-5s %-5s %-20s %2s %-36s %-16s %8s\n", "way", "model", "rule", "strategy",
               "on", " options", "weights", "ms");
    for (int i = 0; i < matrix_n_models(); i++)
        if (wants_model(args, &matrix_models[i]))
            run_model(args, &matrix_models[i], &t);
    if (t.n == 0)
        return cli_usage("tutti bench same-bits: norm needs the whole batch at once, which this "
                         "row does not provide");
    const char *plural = t.n_models == 1 ? "" : "s";
    if (!args->json && t.differ + t.failed == 0)
        printf("%d combinations, %d model%s: one hash each (per model and lanes)\n", t.n,
               t.n_models, plural);
    else if (!args->json)
        printf("%d combinations, %d model%s: %d differ, %d failed\n", t.n, t.n_models, plural,
               t.differ, t.failed);
    return t.differ + t.failed > 0 ? CLI_FAILED : CLI_OK;
}
