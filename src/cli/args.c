/*
 * args.c - flags. One table says all of them; a verb names those it takes.
 */
#include "base/hints.h"
#include "cli/cli.h"
#include "cli/flags.h"
#include "job/job.h"
#include "strategy/strategy.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Does verb take the flag? --help and --level go with every verb.
bool cli_takes(const cli_verb *verb, const char *name)
{
    size_t n = strlen(name);
    if (strcmp(name, "help") == 0 || strcmp(name, "level") == 0)
        return true;
    for (const char *s = verb->flags; s != NULL && *s != '\0'; s += strspn(s, " ")) {
        size_t length = strcspn(s, " ");
        if (length == n && memcmp(s, name, n) == 0)
            return true;
        s += length;
    }
    return false;
}

bool cli_flag_at(int i, cli_flag *out)
{
    static const char *const types[] = {
        [SWITCH] = "bool", [TEXT] = "text", [NUMBER] = "int", [REAL] = "float", [MANY] = "text"};
    if (i < 0 || i >= TTI_COUNT(flags))
        return false;
    const flag *f = &flags[i];
    *out = (cli_flag){.name = f->name,
                      .type = types[f->kind],
                      .value = f->value,
                      .help = f->help,
                      .repeats = f->kind == MANY,
                      .has_bounds = f->kind == NUMBER || f->kind == REAL,
                      .min = f->min,
                      .max = f->max};
    return true;
}

// One flag's words; 0: it is not set.
static int words_of(const flag *f, const cli_args *a, char **out)
{
    const void *at = (const char *)a + f->offset;
    const cli_texts *all = at;
    char number[32] = "";
    const char *value = NULL;
    int n = 0;
    if (f->kind == SWITCH && *(const bool *)at)
        return asprintf(out, "--%s", f->name) > 0 ? 1 : -1;
    if (f->kind == NUMBER && *(const int64_t *)at != 0) {
        snprintf(number, sizeof(number), "%lld", (long long)*(const int64_t *)at);
        value = number;
    }
    if (f->kind == TEXT)
        value = *(const char *const *)at;
    if (value != NULL)
        return asprintf(out, "--%s=%s", f->name, value) > 0 ? 1 : -1;
    for (; f->kind == MANY && n < all->n; n++)
        if (asprintf(&out[n], "--%s=%s", f->name, all->v[n]) < 0)
            return -1;
    return n;
}

int cli_flag_words(const cli_verb *verb, const cli_args *a, char **out, int room)
{
    int n = 0;
    for (int i = 0; i < TTI_COUNT(flags); i++) {
        if (!cli_takes(verb, flags[i].name))
            continue;
        if (n + CLI_MAX_TEXTS >= room)
            return -1;
        int more = words_of(&flags[i], a, out + n);
        if (more < 0)
            return -1;
        n += more;
    }
    out[n] = NULL;
    return n;
}

// Flags that set a key of the job, for hints.
static const char *const flag_keys[][2] = {
    {"train.epochs", "epochs"},          {"train.batch", "batch"},
    {"train.optimizer.adam.lr", "lr"},   {"distribute.devices", "devices"},
    {"distribute.strategy", "strategy"}, {"distribute.lanes", "lanes"},
    {"distribute.threads", "threads"},
};

// "; use --batch N" for the key of a job; "" where the verb cannot set it.
static void key_hint(const cli_verb *verb, const char *key, char out[TTI_HINT_MAX])
{
    out[0] = '\0';
    for (int i = 0; i < TTI_COUNT(flag_keys); i++)
        if (strcmp(flag_keys[i][0], key) == 0 && cli_takes(verb, flag_keys[i][1])) {
            snprintf(out, TTI_HINT_MAX, "; use --%s", flag_keys[i][1]);
            return;
        }
    if (cli_takes(verb, "set"))
        snprintf(out, TTI_HINT_MAX, "; use --set %.200s=VALUE", key);
}

// A flag of another framework, or the name of a key.
static void flag_hint(const cli_verb *verb, const char *name, char out[TTI_HINT_MAX])
{
    char key[128], path[256];
    const tti_hint *h = tti_hint_find("flag", NULL, name);
    out[0] = '\0';
    if (h != NULL) {
        snprintf(out, TTI_HINT_MAX, "; %s", h->note);
        return;
    }
    snprintf(key, sizeof(key), "%s", name);
    for (char *c = key; *c != '\0'; c++)
        *c = *c == '-' ? '_' : *c;
    h = tti_hint_find("key", NULL, name);
    if (tti_job_key_path(key, path))
        key_hint(verb, path, out);
    else if (h != NULL && h->ours != NULL)
        key_hint(verb, h->ours, out);
    else if (h != NULL && cli_takes(verb, "set"))
        snprintf(out, TTI_HINT_MAX, "; %s", h->note);
}

static int unknown_flag(const cli_verb *verb, const char *name)
{
    const char *names[TTI_COUNT(flags) + 1];
    char shown[TTI_COUNT(flags)][32], hint[TTI_HINT_MAX];
    const char *all[TTI_COUNT(flags)];
    int n = 0;
    bool is_others = false;
    for (int i = 0; i < TTI_COUNT(flags); i++) {
        is_others = is_others || strcmp(flags[i].name, name) == 0;
        if (!cli_takes(verb, flags[i].name))
            continue;
        snprintf(shown[n], sizeof(shown[n]), "--%s", flags[i].name);
        all[n] = shown[n];
        names[n++] = flags[i].name;
    }
    names[n] = NULL;
    const char *near = tti_meant(name, names);
    flag_hint(verb, name, hint);
    if (near != NULL && (hint[0] == '\0' || tti_is_same_word(name, near)) && !is_others)
        snprintf(hint, sizeof(hint), "; did you mean --%s?", near);
    tti_text t = {.ctx = NULL};
    tti_text_names(&t, all, n, 12);
    char *list = tti_text_take(&t);
    int rc = cli_usage(is_others ? "tutti %s has no flag --%s%s\n  possible: %s"
                                 : "tutti %s: unknown flag --%s%s\n  possible: %s",
                       verb->name, name, hint, list != NULL ? list : "");
    tti_free(NULL, list);
    return rc;
}

static int set_number(const flag *f, const char *value, cli_args *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(value, &end, 10);
    if (end == value || *end != '\0' || errno != 0)
        return cli_usage("--%s: '%s' is not an integer", f->name, value);
    if (v < f->min || v > f->max)
        return cli_usage("--%s: %lld is not between %lld and %lld", f->name, v, (long long)f->min,
                         (long long)f->max);
    *(int64_t *)((char *)out + f->offset) = v;
    return CLI_OK;
}

static int set_real(const flag *f, const char *value, cli_args *out)
{
    char *end;
    double v = strtod(value, &end);
    if (end == value || *end != '\0' || !(v >= (double)f->min && v <= (double)f->max))
        return cli_usage("--%s: '%s' is not a number from %lld to %lld", f->name, value,
                         (long long)f->min, (long long)f->max);
    *(double *)((char *)out + f->offset) = v;
    return CLI_OK;
}

static int set(const flag *f, const char *value, cli_args *out)
{
    void *at = (char *)out + f->offset;
    switch (f->kind) {
    case SWITCH:
        *(bool *)at = true;
        return CLI_OK;
    case TEXT:
        *(const char **)at = value;
        return CLI_OK;
    case NUMBER:
        return set_number(f, value, out);
    case REAL:
        return set_real(f, value, out);
    case MANY: {
        cli_texts *all = at;
        if (all == &out->sets && (value[0] == '=' || strchr(value, '=') == NULL))
            return cli_usage(
                "--set: '%s' is not of the form KEY=VALUE, for example train.batch=256", value);
        if (all->n == CLI_MAX_TEXTS)
            return cli_usage("--%s is given more than %d times, the limit", f->name, CLI_MAX_TEXTS);
        all->v[all->n++] = value;
        return CLI_OK;
    }
    }
    return CLI_USAGE;
}

// One "--name", "--name=value" or "--name value"; *i is moved past it.
static int one_flag(const cli_verb *verb, int argc, char **argv, int *i, cli_args *out)
{
    char name[64];
    const char *s = argv[*i] + 2, *equals = strchr(s, '=');
    snprintf(name, sizeof(name), "%.*s", equals != NULL ? (int)(equals - s) : (int)strlen(s), s);
    const flag *f = flags;
    while (f < flags + TTI_COUNT(flags) && strcmp(f->name, name) != 0)
        f++;
    if (f == flags + TTI_COUNT(flags) || !cli_takes(verb, name))
        return unknown_flag(verb, name);

    const char *value = equals != NULL ? equals + 1 : NULL;
    if (f->kind == SWITCH && value != NULL)
        return cli_usage("--%s takes no value", name);
    if (f->kind != SWITCH && value == NULL) {
        if (*i + 1 == argc)
            return cli_usage("--%s needs a value: --%s %s", name, name, f->value);
        value = argv[++*i];
    }
    if (f->offset == AT(steps) && strcmp(verb->name, "audit") == 0) {
        out->interval = value;
        return CLI_OK;
    }
    return set(f, value, out);
}

static int check_strategy(const char *word)
{
    const char *names[16], *near;
    int n = 0;
    if (word == NULL || tti_strategy_find(word) != NULL)
        return CLI_OK;
    while (n < TTI_COUNT(names) - 1 && tti_strategy_at(n) != NULL) {
        names[n] = tti_strategy_at(n)->name;
        n++;
    }
    names[n] = NULL;
    const tti_hint *h = tti_hint_find("strategy", NULL, word);
    near = h != NULL ? h->ours : tti_meant(word, names);
    if (near != NULL)
        return cli_usage("--strategy: '%s' is unknown; did you mean '%s'?", word, near);
    return cli_usage("--strategy: '%s' is not one of single, mirrored, central, pipeline", word);
}

// A text, so that the job has it as it was written.
static int check_lr(const char *text)
{
    char *end;
    double v = text != NULL ? strtod(text, &end) : 0;
    if (text != NULL && (end == text || *end != '\0' || !(v >= 0) || v > 1e300))
        return cli_usage("--lr: '%s' is not a number of at least 0", text);
    return CLI_OK;
}

static int check(const cli_verb *verb, const cli_args *a)
{
    if (a->help)
        return CLI_OK;
    if (check_strategy(a->strategy) != CLI_OK)
        return CLI_USAGE;
    if (a->n_words < verb->min_words)
        return cli_usage("tutti %s needs %s", verb->name, verb->words);
    if (a->n_words > verb->max_words)
        return cli_usage("tutti %s: unexpected argument '%s'", verb->name,
                         a->words[verb->max_words]);
    if (check_lr(a->lr) != CLI_OK)
        return CLI_USAGE;
    if (a->json && a->quiet)
        return cli_usage("tutti %s: --json and --quiet cannot be combined", verb->name);
    if (a->json + a->dot + (a->svg != NULL) > 1)
        return cli_usage("tutti %s: only one of --json, --dot and --svg may be given", verb->name);
    return CLI_OK;
}

// The long name of a flag that has a short one; NULL: it has none.
static char *long_name(const cli_verb *verb, const char *word)
{
    static char processes[] = "--processes", on[] = "--on";
    char *name = strcmp(word, "-n") == 0 ? processes : strcmp(word, "-H") == 0 ? on : NULL;
    return name != NULL && cli_takes(verb, name + 2) ? name : NULL;
}

int cli_parse(const cli_verb *verb, int argc, char **argv, cli_args *out)
{
    bool only_words = false; // after "--"
    *out = (cli_args){.temperature = 0.8, .length = 200, .steps = 50};
    for (int i = 0; i < argc; i++) {
        if (!only_words && strcmp(argv[i], "--") == 0) {
            only_words = true;
        } else if (!only_words && strcmp(argv[i], "-h") == 0) {
            out->help = true;
        } else if (!only_words && long_name(verb, argv[i]) != NULL) {
            argv[i] = long_name(verb, argv[i]);
            i--;
        } else if (!only_words && strncmp(argv[i], "--", 2) == 0) {
            int rc = one_flag(verb, argc, argv, &i, out);
            if (rc != CLI_OK)
                return rc;
        } else if (!only_words && argv[i][0] == '-' && argv[i][1] != '\0') {
            return cli_usage("tutti %s: unknown flag %s; flags begin with --", verb->name, argv[i]);
        } else if (out->n_words == CLI_MAX_WORDS) {
            return cli_usage("tutti %s: more than %d arguments", verb->name, CLI_MAX_WORDS);
        } else {
            out->words[out->n_words++] = argv[i];
            only_words = only_words || (out->n_words == 1 && verb->ends_flags != NULL &&
                                        verb->ends_flags(argv[i]));
        }
    }
    return check(verb, out);
}
