/*
 * job.c - reading, checking, printing and freeing jobs.
 */
#include "job/job.h"
#include "base/file.h"
#include <stdio.h>
#include <string.h>

// What only says where and how fast it runs: the result, and so a checkpoint, is the same without.
static const char *const place_keys[] = {
    "name",       "data.workers", "data.prefetch", "data.compare_all",
    "distribute", "output",       "model*.device", NULL};

// ---- checks that need more than one key ------------------------------------------------------

static tt_status check_numbers(tt_job *j, const tti_item *train)
{
    const tti_item *item = tti_item_get(train, "accumulate");
    const tti_item *steps = tti_item_get(train, "steps"), *epochs = tti_item_get(train, "epochs");
    char place[TTI_PLACE_MAX];
    tti_job_train *t = tti_calloc(j->ctx, 1, sizeof(*t));
    if (t == NULL)
        return TT_ENOMEM;
    tt_status st = tti_bind(j->ctx, tti_job_train_rows, train, t);
    int64_t k = t->fit.accumulate, n_steps = t->fit.steps, n_epochs = t->fit.epochs;
    tti_free(j->ctx, t);
    TT_TRY(st);
    if (n_steps > 0 && n_epochs > 0)
        return tti_fail_at(j->ctx, TT_EINVAL, steps->at, "train.steps",
                           "is %lld, but train.epochs is %lld (%s); give only one of them",
                           (long long)n_steps, (long long)n_epochs,
                           tti_place_text(epochs->at, place));
    if (j->open.lanes % k == 0)
        return TT_OK;
    char list[256];
    int n = 0;
    for (int d = 1; d <= j->open.lanes && n < (int)sizeof(list) - 16; d++)
        if (j->open.lanes % d == 0)
            n += snprintf(list + n, sizeof(list) - (size_t)n, "%s%d", d > 1 ? ", " : "", d);
    return tti_fail_at(j->ctx, TT_EINVAL, item->at, "train.accumulate",
                       "%lld does not divide the %d lanes; %s do", (long long)k, j->open.lanes,
                       list);
}

static tt_status check_train(tt_job *j, const tti_item *train)
{
    const tti_item *one = tti_item_get(train, "loss"), *list = tti_item_get(train, "losses");
    const tti_item *data = tti_item_get(tti_item_get(j->root, "data"), "train");
    if (one != NULL && list != NULL)
        return tti_fail_at(j->ctx, TT_EINVAL, list->key_at, "train",
                           "give either loss or losses, not both");
    if (one == NULL && (list == NULL || list->n == 0))
        return tti_fail_at(j->ctx, TT_EINVAL, train->at, "train", "loss must be given");
    if (data == NULL)
        return tti_fail_at(j->ctx, TT_EINVAL, tti_item_get(j->root, "data")->at, "data",
                           "train must be given: the job trains");
    return check_numbers(j, train);
}

// Options of a strategy that go with it; devices are not open yet.
static tt_status check_spread(tt_job *j)
{
    char buf[TTI_PLACE_MAX];
    tti_fail_item(j->ctx, tti_item_get(j->root, "distribute"), "distribute", buf);
    tt_status st = tti_spread_check(j->ctx, tti_strategy_find(j->open.strategy), &j->spread);
    tti_fail_where(j->ctx, NULL);
    return st;
}

static tt_status check(tt_job *j)
{
    const tti_item *train = tti_item_get(j->root, "train");
    if (tti_item_get(j->root, "model") == NULL)
        return tti_fail_at(j->ctx, TT_EINVAL, j->root->at, "", "model must be given");
    TT_TRY(check_spread(j));
    return train == NULL ? TT_OK : check_train(j, train);
}

// ---- reading ---------------------------------------------------------------------------------

// "digits" of "examples/digits.yaml".
static tt_status default_name(tt_job *j, tti_item *root, const char *file)
{
    const char *base = strrchr(file, '/');
    base = base != NULL ? base + 1 : file;
    size_t n = strcspn(base, ".");
    tti_item *name = root->kind == TTI_MAP && tti_item_get(root, "name") == NULL && n > 0
                         ? tti_scalar_new(&j->tree, base, false, root->at)
                         : NULL;
    if (name == NULL)
        return tt_status_of(j->ctx);
    name->text = tti_tree_text(&j->tree, base, n);
    if (name->text == NULL)
        return TT_ENOMEM;
    tti_item_add(root, "name", root->at, name);
    return TT_OK;
}

/*
 * "train.optimizer.lr=0.1" of a job that says adam is "train.optimizer.adam.lr=0.1": the learning
 * rate can be set without knowing the optimizer. Other settings stay as they are.
 */
static tt_status assign(tt_job *j, tti_item *root, const char *setting)
{
    static const char head[] = "train.optimizer.lr=";
    const tti_item *optimizer = tti_item_get(tti_item_get(root, "train"), "optimizer");
    const char *kind = "sgd"; // the default
    char text[TTI_KEY_MAX];
    if (strncmp(setting, head, strlen(head)) != 0)
        return tti_tree_assign(&j->tree, root, setting);
    if (optimizer != NULL && optimizer->kind == TTI_SCALAR && !tti_item_is_null(optimizer))
        kind = optimizer->text;
    else if (optimizer != NULL && optimizer->kind == TTI_MAP && optimizer->first != NULL)
        kind = optimizer->first->key[0] != '\0' ? optimizer->first->key : optimizer->first->text;
    snprintf(text, sizeof(text), "train.optimizer.%.100s.lr=%.100s", kind, setting + strlen(head));
    return tti_tree_assign(&j->tree, root, text);
}

bool tti_job_key_path(const char *name, char path[TTI_KEY_MAX])
{
    const char *section = tti_section_with(name);
    bool is_top = tti_schema_row(&tti_job_schema, name) != NULL;
    if (section == NULL && !is_top)
        return false;
    tti_path_join(path, is_top ? "" : section, name);
    return true;
}

// Everything after the tree is there.
static tt_status resolve(tt_job *j, tti_item *root, const tt_job_opts *opts)
{
    if (opts != NULL && !opts->no_env)
        TT_TRY(tti_environment(&j->tree, &tti_job_schema, root));
    for (int i = 0; opts != NULL && i < opts->n_sets; i++)
        TT_TRY(assign(j, root, opts->sets[i]));
    TT_TRY(tti_resolve(&j->tree, &tti_job_schema, "", root, &j->root));
    TT_TRY(tti_bind_own(j->ctx, tti_job_top_rows, j->root, &j->top));
    const tti_item *distribute = tti_item_get(j->root, "distribute");
    tti_job_distribute d;
    TT_TRY(tti_bind_own(j->ctx, tti_job_distribute_rows, distribute, &d));
    TT_TRY(tti_bind_own(j->ctx, tti_spread_rows, distribute, &d.spread));
    TT_TRY(tti_job_leave_out(j, root->at.source, &d));
    j->spread = d.spread;
    j->spread.opts_size = sizeof(j->spread);
    j->open = (tt_open_opts){.opts_size = sizeof(j->open),
                             .strategy = tti_job_strategies[d.strategy],
                             .devices = d.devices,
                             .lanes = d.lanes,
                             .threads = d.threads,
                             .deadline_ms = d.deadline_ms,
                             .spread = &j->spread,
                             .seed = (uint64_t)j->top.seed};
    TT_TRY(check(j));
    j->core = tt_job_core_print(j);
    return j->core == NULL ? TT_ENOMEM : TT_OK;
}

static void job_free(void *p)
{
    tt_job *j = p;
    tti_tree_free(&j->tree);
    tti_free(j->ctx, j->core);
    tti_free(j->ctx, j);
}

static tt_job *parse(tt_ctx *ctx, const char *text, size_t bytes, const char *name,
                     const tt_job_opts *opts)
{
    tt_job *j = tti_calloc(ctx, 1, sizeof(*j));
    if (j == NULL)
        return NULL;
    j->ctx = j->tree.ctx = ctx;
    tti_item *root = NULL;
    tt_status st = tti_yaml_read(&j->tree, name, text, bytes, &root);
    if (st == TT_OK)
        st = default_name(j, root, name);
    if (st == TT_OK)
        st = resolve(j, root, opts);
    if (st != TT_OK) {
        job_free(j);
        return NULL;
    }
    tti_own(ctx, &j->owned, j, job_free);
    return j;
}

tt_job *tt_job_parse(tt_ctx *ctx, const char *text, size_t bytes, const char *name)
{
    if (tti_is_stuck(ctx))
        return NULL;
    if (text == NULL || name == NULL) {
        (void)TT_FAIL(ctx, TT_EINVAL, "job: text and name must be given");
        return NULL;
    }
    return parse(ctx, text, bytes, name, NULL);
}

tt_job *tt_job_read_with(tt_ctx *ctx, const char *path, const tt_job_opts *opts)
{
    char *text;
    size_t bytes;
    tt_job_opts o;
    if (tti_is_stuck(ctx))
        return NULL;
    if (path == NULL) {
        (void)TT_FAIL(ctx, TT_EINVAL, "job: the path is NULL");
        return NULL;
    }
    if (TTI_OPTS_COPY(ctx, "job", opts, &o) != TT_OK ||
        tti_stream_read(ctx, path, TTI_MAX_JOB_BYTES, &text, &bytes) != TT_OK)
        return NULL;
    tt_job *j = parse(ctx, text, bytes, path, &o);
    tti_free(ctx, text);
    return j;
}

void tt_job_free(tt_job *j)
{
    if (j == NULL)
        return;
    tti_disown(j->ctx, &j->owned);
    job_free(j);
}

// ---- looking ---------------------------------------------------------------------------------

const char *tt_job_name(const tt_job *j)
{
    return j == NULL || j->top.name == NULL ? "job" : j->top.name;
}

const tt_open_opts *tt_job_open_opts(const tt_job *j)
{
    return j == NULL ? NULL : &j->open;
}

const char *tt_job_get(const tt_job *j, const char *key)
{
    const tti_item *item = j != NULL && key != NULL ? j->root : NULL;
    while (item != NULL && *key != '\0') {
        char part[128];
        size_t n = strcspn(key, ".");
        snprintf(part, sizeof(part), "%.*s", (int)TTI_MIN(n, sizeof(part) - 1), key);
        item = tti_item_get(item, part);
        key += n + (key[n] == '.');
    }
    return item != NULL && item->kind == TTI_SCALAR ? item->text : NULL;
}

static char *print(tt_job *j, const char *const *skip)
{
    tti_text t = {.ctx = j->ctx};
    tti_tree_print(&t, j->root, skip);
    return tti_text_take(&t);
}

char *tt_job_print(tt_job *j)
{
    return j == NULL || tti_is_stuck(j->ctx) ? NULL : print(j, NULL);
}

char *tt_job_core_print(tt_job *j)
{
    return j == NULL || tti_is_stuck(j->ctx) ? NULL : print(j, place_keys);
}

char *tt_job_help(tt_ctx *ctx, const char *key)
{
    if (tti_is_stuck(ctx))
        return NULL;
    tti_text t = {.ctx = ctx};
    if (tti_schema_help(ctx, &t, &tti_job_schema, key != NULL ? key : "") != TT_OK) {
        tti_text_free(&t);
        return NULL;
    }
    return tti_text_take(&t);
}
