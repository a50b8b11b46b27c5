/*
 * scale.c - tutti bench scale: what more devices bring. One core a device, so that one device is
 * one core, and beside it one device with all cores. Sides are measured in turn, several rounds of
 * them, each in a context of its own: what drifts on the machine drifts for all.
 */
#include "cli/job.h"
#include "cli/progress.h"
#include "cli/side.h"
#include "device/device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS  5
#define WARM    3         // steps before the clock runs, at least
#define WARM_NS 100000000 // and short steps until then: the executor tries what suits them
#define MOST    64

typedef struct row {
    int devices, cores;
    bool is_whole; // one device with all cores
    char spec[32];
    double ms[ROUNDS];
    int64_t samples;
    tt_status status;
    char message[256];
} row;

typedef struct scale {
    const cli_args *args;
    cli_job j;
    const char *strategy;
    row rows[MOST + 1];
    int n;
} scale;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(row *r)
{
    qsort(r->ms, ROUNDS, sizeof(r->ms[0]), by_value);
    return r->ms[ROUNDS / 2];
}

static tt_open_opts settings(const scale *s, const row *r)
{
    tt_open_opts o = cli_one_device(s->j.job), job = *tt_job_open_opts(s->j.job);
    o.threads = r->cores;
    o.isa = s->args->isa != NULL ? s->args->isa : o.isa;
    if (r->devices == 1)
        return o;
    o.devices = r->spec;
    o.threads = r->devices; // more than there are cores: still one thread each
    o.strategy = s->strategy;
    if (job.strategy != NULL && strcmp(job.strategy, s->strategy) == 0)
        o.spread = job.spread;
    return o;
}

static tt_status one_round(cli_side *side, int64_t steps, row *r, double *ms)
{
    int64_t begin = tti_now_ns();
    for (int i = 0; i < WARM || (i < 40 && tti_now_ns() - begin < WARM_NS); i++)
        TT_TRY(cli_side_step(side));
    r->samples = side->batch.rows;
    return cli_side_time(side, steps, ms);
}

static void measure(scale *s, row *r, int round)
{
    cli_side side;
    tt_open_opts opts = settings(s, r);
    int64_t steps = TTI_MAX(s->args->steps / ROUNDS, 1);
    r->status = cli_side_open(s->j.job, &opts, &side);
    if (r->status == TT_OK)
        r->status = one_round(&side, steps, r, &r->ms[round]);
    if (r->status != TT_OK)
        snprintf(r->message, sizeof(r->message), "%.250s",
                 side.ctx != NULL ? tt_last_error(side.ctx).message : "out of memory");
    cli_side_close(&side);
}

static void make_rows(scale *s)
{
    int cores = tti_cores(), lanes = tt_job_open_opts(s->j.job)->lanes;
    lanes = lanes > 0 ? lanes : 8;
    int most = s->args->most > 0 ? (int)s->args->most : TTI_MIN(lanes, 2 * cores);
    for (int n = 1; n <= TTI_MIN(most, MOST); n++) {
        row *r = &s->rows[s->n++];
        *r = (row){.devices = n, .cores = TTI_MIN(n, cores)};
        snprintf(r->spec, sizeof(r->spec), "cpu:0*%d", n);
    }
    if (cores > 1)
        s->rows[s->n++] = (row){.devices = 1, .cores = cores, .is_whole = true};
}

static void print_text(row *r, double base)
{
    char rate[32];
    double ms = median(r);
    cli_rate_text(1e3 * (double)r->samples / ms, rate);
    printf("%7d %6d %10.3f %9.3f-%9.3f %12s %8.2fx %9.0f %%%s\n", r->devices, r->cores, ms,
           r->ms[0], r->ms[ROUNDS - 1], rate, base / ms, 100 * base / ms / r->cores,
           r->is_whole ? "  one device, all cores" : "");
}

static void print_json(const scale *s, row *r, double base)
{
    double ms = median(r);
    printf("{\"devices\": %d, \"cores\": %d, \"strategy\": \"%s\", \"step_ms_median\": %.6g, "
           "\"step_ms_low\": %.6g, \"step_ms_high\": %.6g, \"samples_per_second\": %.6g, "
           "\"speed_up\": %.4g, \"efficiency\": %.4g}\n",
           r->devices, r->cores, r->devices == 1 ? "single" : s->strategy, ms, r->ms[0],
           r->ms[ROUNDS - 1], 1e3 * (double)r->samples / ms, base / ms, base / ms / r->cores);
}

static int print(scale *s)
{
    double base = median(&s->rows[0]);
    bool spread = s->n < 2 || s->rows[1].is_whole; // is there anything that was spread?
    for (int i = 1; i < s->n; i++)
        spread |= s->rows[i].devices > 1 && s->rows[i].status == TT_OK;
    if (!s->args->json)
        printf("%s, batch %lld, %d rounds of %lld steps\n%7s %6s %10s %19s %12s %9s %11s\n",
               s->strategy, (long long)s->rows[0].samples, ROUNDS,
               (long long)TTI_MAX(s->args->steps / ROUNDS, 1), "devices", "cores", "median ms",
               "rounds within", "samples/s", "speed-up", "efficiency");
    for (int i = 0; i < s->n; i++) {
        row *r = &s->rows[i];
        if (r->status != TT_OK) {
            // Pins and stages do not go with every number.
            fprintf(stderr, "tutti: %s: %d devices: %s\n", spread ? "warn" : "error", r->devices,
                    r->message);
        } else if (s->args->json) {
            print_json(s, r, base);
        } else {
            print_text(r, base);
        }
    }
    return spread ? CLI_OK : CLI_FAILED;
}

static int run(scale *s)
{
    make_rows(s);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < s->n; i++)
            if (s->rows[i].status == TT_OK)
                measure(s, &s->rows[i], round);
    const row *one = &s->rows[0];
    if (one->status != TT_OK) { // nothing to compare with
        fprintf(stderr, "tutti: error: %s\n", one->message);
        return cli_code(one->status);
    }
    return print(s);
}

int cli_scale(const cli_args *args)
{
    scale *s = tti_calloc(NULL, 1, sizeof(*s));
    cli_args plain = *args;
    if (s == NULL)
        return cli_error("out of memory");
    if (args->n_words != 2) {
        tti_free(NULL, s);
        return cli_usage("tutti bench scale needs one JOB");
    }
    s->args = args;
    s->strategy = args->strategy != NULL ? args->strategy : "mirrored";
    plain.strategy = plain.devices = NULL;
    plain.threads = 0;
    int rc = cli_job_read(&plain, args->words[1], CLI_NOTHING, &s->j);
    if (rc == CLI_OK)
        rc = run(s);
    rc = cli_job_close(&s->j, rc);
    tti_free(NULL, s);
    return rc;
}
