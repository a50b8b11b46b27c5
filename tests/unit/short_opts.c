/*
 * short_opts.c - every function that takes options, with those of older and newer callers: structs
 * of every shorter size, at the end of readable memory, so that reading past one crashes; and
 * longer ones. What is missing is default: the call does what it does with the whole struct. The
 * same for the structs that options point to. Calls and parts are generated: tools/null-calls
 * --opts, tools/option-parts.
 */
#include "../calls.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 4 // for the largest struct
#define MORE  64

// Fields without which a call would do nothing but fail.
static const struct {
    const char *type;
    size_t offset, bytes;
    int64_t value;
} required[] = {
#define FIELD(type, field, value)                                       \
    {                                                                   \
#type, offsetof(type, field), sizeof(((type *)0)->field), value \
    }
    FIELD(tt_layer_dense_opts, units, 2),
    FIELD(tt_layer_conv2d_opts, filters, 2),
    FIELD(tt_layer_activation_opts, act, TT_RELU),
    FIELD(tt_layer_embedding_opts, vocab, 3),
    FIELD(tt_layer_embedding_opts, width, 2),
    FIELD(tt_layer_attention_opts, heads, 1),
    FIELD(tt_layer_transformer_block_opts, heads, 1),
    FIELD(tt_attention_opts, heads, 1),
    FIELD(tt_layer_gpt_opts, vocab, 5),
    FIELD(tt_compile_opts, loss, TT_MSE),
    FIELD(tt_pool_opts, size, 0x100000001), // two ints: 1, 1
    FIELD(tt_data_split_opts, rows, 1),
    FIELD(tt_loss, kind, TT_MSE),
    FIELD(tt_watch, patience, 1),
    FIELD(tt_memory_opts, count, 1),
};

static void fill(const char *type, char *opts, size_t size)
{
    for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++)
        if (strcmp(required[i].type, type) == 0 && required[i].offset + required[i].bytes <= size)
            memcpy(opts + required[i].offset, &required[i].value, required[i].bytes);
}

// ---- structs that options point to -----------------------------------------------------------

static const struct part {
    const char *outer, *field, *type;
    size_t at, size; // of the pointer, or the first of several; of the struct
} parts[] = {
#define PART(outer_, field_, type_) \
    {#outer_, #field_, #type_, offsetof(outer_, field_), sizeof(type_)},
#define PLAIN(type_)
#include "short_parts.inc"
#undef PART
#undef PLAIN
};
#define N_PARTS (sizeof(parts) / sizeof(parts[0]))

// Plain values in options, and rows that they point to: their sizes are part of every program.
#define SIZE_tt_shape      72
#define SIZE_tt_axes       36
#define SIZE_tt_ints       136
#define SIZE_tt_init       24
#define SIZE_tt_batch      24
#define SIZE_tt_feed_value 96
#define SIZE_tt_fetch      24
#define SIZE_tt_queue_part 80
#define PART(outer_, field_, type_)
#define PLAIN(type_) _Static_assert(sizeof(type_) == SIZE_##type_, #type_ " must not grow");
#include "short_parts.inc"
#undef PART
#undef PLAIN

// ---- the calls -------------------------------------------------------------------------------

typedef struct outcome {
    const char *name, *type;
    size_t size;      // of the struct
    tt_status status; // of a call that returns one, or of the context
    bool is_made;
} outcome;

#define CASE(name_, type_, ...)                                      \
    if (n++ == wanted) {                                             \
        *o = (outcome){#name_, #type_, sizeof(type_), TT_OK, false}; \
        if (!dry) {                                                  \
            __VA_ARGS__;                                             \
        }                                                            \
        return true;                                                 \
    }
#define STATUS(name_, type_, call_)  CASE(name_, type_, o->status = (call_))
#define POINTER(name_, type_, call_) CASE(name_, type_, made((call_), o))

// Whatever was made; a context is closed here, the rest with the context of fx.
static void made(const void *what, outcome *o)
{
    o->is_made = what != NULL;
    if (strcmp(o->name, "tt_open_with") == 0) {
        tt_ctx *ctx = (tt_ctx *)(uintptr_t)what;
        o->status = tt_status_of(ctx);
        (void)TT_FAIL(fx.ctx, o->status == TT_OK ? TT_EASSERT : o->status, "opened: %s",
                      tt_last_error(ctx).message);
        tt_close(ctx);
    }
}

static bool call(int wanted, bool dry, outcome *o)
{
    int n = 0;
#include "short_opts.inc"
    return false;
}

// ---- one call --------------------------------------------------------------------------------

static struct shared {
    size_t size;    // being tried, for the message after a crash
    char what[512]; // how outcomes differ
    char whole[1 << 16], here[1 << 16];
} * shared;

// What the call did, as text: its status, the error, the graph and the model after it.
static void describe(const outcome *o, char out[1 << 16])
{
    tt_error e = tt_last_error(fx.ctx);
    int n = snprintf(out, 1 << 16, "%d %d %d '%s'\n", o->is_made, (int)o->status, (int)e.status,
                     e.message);
    tt_clear_error(fx.ctx);
    char *graph = tt_graph_print(fx.graph), *model = tt_graph_print(tt_model_get_graph(fx.model));
    snprintf(out + n, (size_t)((1 << 16) - n), "%s\n%s", graph, model);
    tt_string_free(fx.ctx, graph);
    tt_string_free(fx.ctx, model);
}

static void try(int i, const void *opts, char out[1 << 16])
{
    outcome o;
    call(i, true, &o);
    calls_open_for(o.name);
    fx.opts = opts;
    call(i, false, &o);
    describe(&o, out);
    calls_close();
}

static char *pages(void)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    char *p =
        mmap(NULL, (PAGES + 1) * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + PAGES * bytes, bytes, PROT_NONE) != 0)
        _exit(4);
    return p + PAGES * bytes;
}

static int differ(const outcome *o, const char *how)
{
    snprintf(shared->what, sizeof(shared->what), "%s of %zu bytes of %zu: %.150s instead of %.150s",
             how, shared->size, o->size, shared->here, shared->whole);
    return 3;
}

// Shorter structs, each at the end of what can be read.
static int try_shorter(int i, const outcome *o, char *end)
{
    for (size_t size = sizeof(size_t); size < o->size; size += sizeof(size_t)) {
        char *whole = calloc(1, o->size);
        shared->size = size;
        fill(o->type, whole, size);
        memcpy(whole, &o->size, sizeof(size_t));
        try(i, whole, shared->whole);
        memcpy(end - size, whole, size);
        memcpy(end - size, &size, sizeof(size));
        try(i, end - size, shared->here);
        free(whole);
        if (strcmp(shared->whole, shared->here) != 0)
            return differ(o, "a struct");
    }
    return 0;
}

// Was the call refused with these words, or for what it is always refused for?
static bool is_refused(const char *words)
{
    bool fails_anyway = strstr(shared->whole, "0 ''\n") == NULL;
    return strstr(shared->here, words) != NULL ||
           (fails_anyway && strcmp(shared->whole, shared->here) == 0);
}

// Longer structs: zeros beyond are fine, anything else is refused; so is a size that is none.
static int try_longer(int i, const outcome *o, char *end)
{
    size_t size = o->size + MORE, none = 0;
    char *opts = end - size;
    memset(opts, 0, size);
    fill(o->type, opts, o->size);
    memcpy(opts, &o->size, sizeof(size_t));
    shared->size = size;
    try(i, opts, shared->whole);
    memcpy(opts, &size, sizeof(size));
    try(i, opts, shared->here);
    if (strcmp(shared->whole, shared->here) != 0)
        return differ(o, "a longer struct");
    opts[size - 1] = 1;
    try(i, opts, shared->here);
    if (!is_refused("compiled with a newer version"))
        return differ(o, "a longer struct with more options");
    memcpy(opts, &none, sizeof(none));
    try(i, opts, shared->here);
    if (!is_refused("opts_size is 0"))
        return differ(o, "a struct without a size");
    return 0;
}

// The outermost options, all of them whole, down to a part; those may be a part of a part.
static void point_to(const struct part *p, const void *opts, char *room, const char *type,
                     size_t size)
{
    memset(room, 0, size);
    fill(type, room, size);
    memcpy(room, &size, sizeof(size));
    if (strcmp(p->field, "losses") == 0) // one or the other
        memset(room + offsetof(tt_compile_opts, loss), 0, sizeof(tt_loss_kind));
    memcpy(room + p->at, &opts, sizeof(opts));
}

static const void *outermost(const outcome *o, const struct part *p, const void *opts, char *inner,
                             char *outer)
{
    if (strcmp(p->outer, o->type) == 0) {
        point_to(p, opts, outer, o->type, o->size);
        return outer;
    }
    for (size_t i = 0; i < N_PARTS; i++) {
        if (strcmp(parts[i].type, p->outer) != 0 || strcmp(parts[i].outer, o->type) != 0)
            continue;
        point_to(p, opts, inner, parts[i].type, parts[i].size);
        point_to(&parts[i], inner, outer, o->type, o->size);
        return outer;
    }
    return NULL;
}

static int differ_in(const struct part *p, const char *how)
{
    snprintf(shared->what, sizeof(shared->what),
             "%s %s of %zu bytes of %zu: %.150s instead of %.150s", p->field, how, shared->size,
             p->size, shared->here, shared->whole);
    return 3;
}

static int try_part(int i, const outcome *o, const struct part *p, char *end)
{
    static char inner[1 << 13], outer[1 << 13], whole[1 << 13];
    size_t none = 0, longer = p->size + MORE;
    if (outermost(o, p, whole, inner, outer) == NULL)
        return 0; // of another call
    for (size_t size = sizeof(size_t); size <= longer; size += sizeof(size_t)) {
        size_t known = size < p->size ? size : p->size;
        shared->size = size;
        memset(whole, 0, sizeof(whole));
        fill(p->type, whole, known);
        memcpy(end - size, whole, size);
        memcpy(end - size, &size, sizeof(size));
        memcpy(whole, &p->size, sizeof(size_t));
        try(i, outermost(o, p, whole, inner, outer), shared->whole);
        try(i, outermost(o, p, end - size, inner, outer), shared->here);
        if (strcmp(shared->whole, shared->here) != 0)
            return differ_in(p, "as a struct");
    }
    end[-1] = 1;
    try(i, outermost(o, p, end - longer, inner, outer), shared->here);
    if (strstr(shared->here, "compiled with a newer version") == NULL)
        return differ_in(p, "with more options");
    end[-1] = 0;
    memcpy(end - longer, &none, sizeof(none));
    try(i, outermost(o, p, end - longer, inner, outer), shared->here);
    return strstr(shared->here, "opts_size is 0") == NULL ? differ_in(p, "without a size") : 0;
}

static int try_all(int i, const outcome *o)
{
    alarm(240);
    if (freopen("/dev/null", "w", stderr) == NULL) // what is logged there is not looked at
        return 4;
    char *end = pages();
    int rc = try_longer(i, o, end);
    memset(end - o->size - MORE, 0, o->size + MORE);
    rc = rc != 0 ? rc : try_shorter(i, o, end);
    for (size_t k = 0; rc == 0 && k < N_PARTS; k++) {
        memset(end - PAGES * 4096, 0, PAGES * 4096);
        rc = try_part(i, o, &parts[k], end);
    }
    return rc;
}

// Every part is one of some call's options, or of such a part.
TEST(parts_of_options_are_all_tried)
{
    outcome o;
    CHECK(N_PARTS > 10);
    for (size_t k = 0; k < N_PARTS; k++) {
        static char inner[1 << 13], outer[1 << 13];
        bool any = false;
        for (int n = 0; call(n, true, &o); n++)
            any |= o.size < sizeof(outer) && outermost(&o, &parts[k], NULL, inner, outer) != NULL;
        ck_assert_msg(any, "%s.%s is of no call", parts[k].outer, parts[k].field);
    }
}

TEST(options_of_older_and_newer_callers)
{
    outcome o;
    char wrong[8192] = "";
    int n = 0, n_wrong = 0;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    for (; call(n, true, &o); n++) {
        memset(shared, 0, sizeof(*shared));
        pid_t child = fork();
        if (child == 0)
            _exit(try_all(n, &o));
        int status = 0;
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        size_t at = strlen(wrong);
        if (WIFEXITED(status))
            snprintf(wrong + at, sizeof(wrong) - at, "\n%s: %s", o.name, shared->what);
        else
            snprintf(wrong + at, sizeof(wrong) - at, "\n%s: %zu bytes of %zu: %s", o.name,
                     shared->size, o.size, strsignal(WTERMSIG(status)));
        n_wrong++;
    }
    CHECK(n > 70);
    ck_assert_msg(n_wrong == 0, "%d of %d functions:%s", n_wrong, n, wrong);
}
