/*
 * origin.c - where a run comes from: the event "record" with versions, data, environment and
 * hardware. No variable that may hold a secret is recorded.
 */
#include "data/data.h"
#include "device/device.h"
#include "record/record.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct facts {
    char host[64], cpu[80], cores[24], memory[24], gpu[TTI_BITS_TEXT];
    char isa[64], compiler[128], build[32], data[3][64], arithmetic[16];
    char where[TTI_PATH_MAX];
} facts;

// ---- environment -----------------------------------------------------------------------------

static bool is_secret(const char *name, size_t n)
{
    static const char *const words[] = {"SECRET", "KEY", "TOKEN", "PASS", "CREDENTIAL", "AUTH"};
    for (int i = 0; i < TTI_COUNT(words); i++)
        if (memmem(name, n, words[i], strlen(words[i])) != NULL)
            return true;
    return false;
}

// Variables that may decide how a run goes.
static bool matters(const char *name, size_t n)
{
    static const char *const heads[] = {"TUTTI_", "CUDA_", "NCCL_"};
    static const char *const names[] = {"OMP_NUM_THREADS", "LD_PRELOAD", "SLURM_JOB_ID",
                                        "SLURM_NNODES", "TF_CONFIG"};
    bool found = false;
    for (int i = 0; i < TTI_COUNT(heads); i++)
        found |= n > strlen(heads[i]) && memcmp(name, heads[i], strlen(heads[i])) == 0;
    for (int i = 0; i < TTI_COUNT(names); i++)
        found |= n == strlen(names[i]) && memcmp(name, names[i], n) == 0;
    return found && !is_secret(name, n);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// "A=1; B=2", sorted.
static char *environment(void)
{
    const char *found[64];
    int n = 0;
    for (char **e = environ; e != NULL && *e != NULL && n < TTI_COUNT(found); e++)
        if (matters(*e, strcspn(*e, "=")))
            found[n++] = *e;
    qsort((void *)found, (size_t)n, sizeof(found[0]), by_text);
    tti_text t = {0};
    tti_text_put(&t, "", 0);
    for (int i = 0; i < n; i++)
        tti_text_add(&t, "%s%.400s", i > 0 ? "; " : "", found[i]);
    return tti_text_take(&t);
}

// ---- hardware and versions -------------------------------------------------------------------

// The value of "key: value" in what tutti version prints.
static void version_line(const char *key, char *out, size_t room)
{
    const char *s = strstr(tt_version_text(), key);
    if (s == NULL)
        return;
    s += strlen(key) + 2;
    snprintf(out, room, "%.*s", (int)TTI_MIN(strcspn(s, "\n"), room - 1), s);
}

static void hardware(tt_ctx *ctx, facts *f)
{
    tt_device_info d;
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    if (gethostname(f->host, sizeof(f->host) - 1) != 0)
        f->host[0] = '\0';
    if (tt_device_get(ctx, 0, &d) == TT_OK)
        snprintf(f->cpu, sizeof(f->cpu), "%s", d.model);
    snprintf(f->cores, sizeof(f->cores), "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    if (pages > 0 && size > 0)
        snprintf(f->memory, sizeof(f->memory), "%.1f GiB",
                 (double)pages * (double)size / (double)(1 << 30));
    tti_bits_of(ctx, f->gpu);
    snprintf(f->arithmetic, sizeof(f->arithmetic), "%d", tti_arithmetic_of(ctx));
    version_line("compiler", f->compiler, sizeof(f->compiler));
    version_line("instruction sets", f->isa, sizeof(f->isa));
    version_line("build", f->build, sizeof(f->build));
}

// One number for a data set: the hash of all its fingerprint's parts.
static tt_status data_text(tt_data *d, char out[64])
{
    tti_data_print p;
    if (d == NULL)
        return TT_OK;
    TT_TRY(tti_data_print_make(d, &p));
    uint64_t h = tti_hash64(&p.fields, sizeof(p.fields), p.records);
    for (int i = 0; i < p.n_files; i++)
        h = tti_hash64(&p.file[i].hash, sizeof(p.file[i].hash), h);
    snprintf(out, 64, "%lld records, %016llx", (long long)p.count, (unsigned long long)h);
    return TT_OK;
}

tt_status tti_run_origin_tell(tt_ctx *ctx, const tti_run_origin *o)
{
    facts f = {0};
    if (getcwd(f.where, sizeof(f.where)) == NULL)
        f.where[0] = '\0';
    hardware(ctx, &f);
    TT_TRY(data_text(o->train, f.data[0]));
    TT_TRY(data_text(o->validate, f.data[1]));
    TT_TRY(data_text(o->test, f.data[2]));
    char *environ_text = environment();
    const tt_pair all[] = {{"version", 0, TT_VERSION},
                           {"arithmetic", 0, f.arithmetic},
                           {"build", 0, f.build},
                           {"compiler", 0, f.compiler},
                           {"instruction_sets", 0, f.isa},
                           {"commit", 0, o->commit != NULL ? o->commit : ""},
                           {"changed", 0, o->changed != NULL ? o->changed : ""},
                           {"train_data", 0, f.data[0]},
                           {"validate_data", 0, f.data[1]},
                           {"test_data", 0, f.data[2]},
                           {"host", 0, f.host},
                           {"device", 0, f.cpu},
                           {"cores", 0, f.cores},
                           {"memory", 0, f.memory},
                           {"gpu", 0, f.gpu},
                           {"folder", 0, f.where},
                           {"environment", 0, environ_text != NULL ? environ_text : ""}};
    tt_pair told[TTI_COUNT(all)];
    int n = 0;
    for (int i = 0; i < TTI_COUNT(all); i++)
        if (all[i].text[0] != '\0')
            told[n++] = all[i];
    tti_emit_pairs(ctx, "record", told, n);
    tti_free(NULL, environ_text);
    return TT_OK;
}
