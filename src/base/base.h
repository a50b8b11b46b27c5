/*
 * base.h (internal) - what every folder may use: errors, host memory, text, the context.
 */
#ifndef TUTTI_SRC_BASE_H
#define TUTTI_SRC_BASE_H

#include <stdarg.h>
#include <stdatomic.h>
#include <tutti/base.h>
#include <tutti/extend.h>

#define TTI_CHECKED __attribute__((warn_unused_result))

#ifdef TUTTI_DEBUG
#define TTI_ASSERT(cond) ((cond) ? (void)0 : __builtin_trap())
#else
#define TTI_ASSERT(cond) ((void)0)
#endif

#define TTI_COUNT(a)  ((int)(sizeof(a) / sizeof((a)[0])))
#define TTI_MIN(a, b) ((a) < (b) ? (a) : (b))
#define TTI_MAX(a, b) ((a) > (b) ? (a) : (b))

// ---- log -------------------------------------------------------------------------------------

void tti_log(tt_ctx *ctx, tt_level level, const char *fmt, ...) TT_PRINTF(3, 4);
#define TT_LOG(ctx, level, ...) tti_log((ctx), (level), __VA_ARGS__)
void tti_emit(tt_ctx *ctx, const tt_event *ev); // one at a time
// An event with values; its text is the JSON object of them. Allocates nothing.
void tti_emit_pairs(tt_ctx *ctx, const char *kind, const tt_pair *pairs, int n);

// Someone besides the owner who gets every event; unlinked by the one who linked it.
typedef struct tti_observer {
    tt_event_fn fn;
    void *user;
    struct tti_observer *next;
} tti_observer;
void tti_observe(tt_ctx *ctx, tti_observer *o);
void tti_unobserve(tt_ctx *ctx, tti_observer *o);

// tt_fail() for those who have the arguments as a list.
tt_status tti_vfail(tt_ctx *ctx, tt_status st, const char *file, int line, const char *fmt,
                    va_list args) TT_PRINTF(5, 0);

// True (and the caller returns at once) when ctx is NULL, carries an error, or is of the process
// that this one was forked from.
bool tti_is_stuck(const tt_ctx *ctx);

// ---- host memory: counted, can be made to fail at the k-th call ------------------------------

void *tti_alloc(tt_ctx *ctx, size_t bytes);            // records TT_ENOMEM
void *tti_calloc(tt_ctx *ctx, size_t n, size_t bytes); // zeroed, overflow-checked
// Grows an array to hold n elements at least, doubling; *cap is updated. false: TT_ENOMEM recorded.
bool tti_grow(tt_ctx *ctx, void *array, int64_t *cap, int64_t n, size_t bytes) TTI_CHECKED;
void *tti_realloc(tt_ctx *ctx, void *p, size_t bytes);
char *tti_strdup(tt_ctx *ctx, const char *s);
void tti_free(tt_ctx *ctx, void *p); // NULL is fine
// a * b and a + b; false on overflow.
bool tti_mul_size(size_t a, size_t b, size_t *out) TTI_CHECKED;
bool tti_mul_i64(int64_t a, int64_t b, int64_t *out) TTI_CHECKED;

// ---- text: a string that grows; an allocation failure sticks and gives NULL at the end -------

typedef struct tti_text {
    tt_ctx *ctx;
    char *s;
    int64_t n, cap;
    bool failed;
} tti_text;
void tti_text_add(tti_text *t, const char *fmt, ...) TT_PRINTF(2, 3);
void tti_text_put(tti_text *t, const char *s, size_t n);
void tti_text_json(tti_text *t, const char *s); // quoted and escaped
char *tti_text_take(tti_text *t);               // NULL on failure; free with tti_free()
void tti_text_free(tti_text *t);
// Bytes of the UTF-8 character at s, which has room bytes or ends in a zero; 0: there is no valid
// one.
int tti_utf8_length(const char *s, size_t room);

// Bytes as people read them: "20.5 MiB".
void tti_size_text(double bytes, char out[32]);
/*
 * Adds names with commas between them, on lines of at most 96 columns; the first one begins at this
 * column, further lines are indented.
 */
void tti_text_names(tti_text *t, const char *const *names, int n, int column);
/*
 * Text that may be anybody's (a peer's, a file's, a file's name), for a terminal: line ends and
 * tabs stay, other control characters and invalid UTF-8 become "\x1b" and the like. Gives the
 * length of out, which ends in a zero; what has no room is cut off. With colours, those of
 * terminals stay, too.
 */
size_t tti_escape(char *out, size_t room, const char *s, size_t n, bool colours);

// The nearest of names (NULL at the end) to word, for "did you mean"; NULL if none is near.
const char *tti_nearest(const char *word, const char *const *names);
int tti_distance(const char *a, const char *b);
// Does name match one of "a.*, b?"? An empty or NULL list matches nothing.
bool tti_match(const char *patterns, const char *name);
// One pattern of n characters.
bool tti_match_one(const char *pattern, size_t n, const char *name);

// ---- numbers ---------------------------------------------------------------------------------

// XXH3, 64 and 128 bits.
uint64_t tti_hash64(const void *data, size_t bytes, uint64_t seed);
tt_hash tti_hash128(const void *data, size_t bytes);
// The 128-bit hash of several pieces, one after another; NULL: out of memory.
typedef struct tti_hasher tti_hasher;
tti_hasher *tti_hash_begin(tt_ctx *ctx);
void tti_hash_add(tti_hasher *h, const void *data, size_t bytes);
tt_hash tti_hash_now(const tti_hasher *h); // of all so far; more may be added
tt_hash tti_hash_end(tt_ctx *ctx, tti_hasher *h);

// Philox-4x32-10: four random words from a counter and a key. The same everywhere.
typedef struct tti_philox {
    uint32_t v[4];
} tti_philox;
tti_philox tti_philox4(uint64_t key, uint64_t counter_low, uint64_t counter_high);
// A permutation of 0..n-1 by key: where element i goes. No table; n up to 2^62.
uint64_t tti_permute(uint64_t i, uint64_t n, uint64_t key);
// Each of count elements in place; side by side they take less than half of the time.
void tti_permute_some(uint64_t *i, int64_t count, uint64_t n, uint64_t key);

// Half types; rounding is to nearest even.
uint16_t tti_to_bf16(float f);
float tti_from_bf16(uint16_t h);
uint16_t tti_to_f16(float f);
float tti_from_f16(uint16_t h);

// Monotonic time.
int64_t tti_now_ns(void);

// Tensor arithmetic flushes subnormals: enter before computing on a thread, leave with the result.
unsigned tti_fp_enter(void);
void tti_fp_leave(unsigned saved);

// ---- options of keyword calls: opts_size -----------------------------------------------------

/*
 * The caller's options, whose first member is opts_size, as this library knows them: what a shorter
 * struct of an older caller does not have is zero, so default; a longer one of a newer caller may
 * be zero only in what is not known here. Fails, too, with NULL and with a size that is none.
 */
tt_status tti_opts_copy(tt_ctx *ctx, const char *who, const void *opts, void *own,
                        size_t size) TTI_CHECKED;
#define TTI_OPTS_COPY(ctx, who, opts, own) \
    tti_opts_copy((ctx), (who), (opts), (own), sizeof(*(own)))
// The same at the start of a function: opts then is a copy in a variable of its own; NULL after an
// error.
const void *tti_opts_own(tt_ctx *ctx, const char *who, const void *opts, void *own, size_t size);
#define TTI_OPTS_OWN(ctx, who, type, opts) \
    type opts##_own;                       \
    opts = tti_opts_own((ctx), (who), (opts), &opts##_own, sizeof(opts##_own))

// Has the caller's struct this member? For what is done before the options are read in full, as
// clearing what a call that fails leaves. NULL has none.
bool tti_opts_has(const void *opts, size_t end);
#define TTI_OPTS_HAS(type, opts, member) \
    tti_opts_has((opts), offsetof(type, member) + sizeof(((type *)0)->member))

/*
 * A struct that options point to, copied in the same way; NULL: all of it is default. who says
 * where it stands: "fit: early_stop".
 */
tt_status tti_opts_part(tt_ctx *ctx, const char *who, const void *part, void *own,
                        size_t size) TTI_CHECKED;
#define TTI_OPTS_PART(ctx, who, part, own) \
    tti_opts_part((ctx), (who), (part), (own), sizeof(*(1 ? (own) : (part))))
/*
 * Those of an array of pointers that ends with the first NULL, copied to an array of structs, which
 * the pointers then lead to; *n: how many.
 */
tt_status tti_opts_list(tt_ctx *ctx, const char *who, void *list, int max, void *own, size_t size,
                        int *n) TTI_CHECKED;
#define TTI_OPTS_LIST(ctx, who, list, own, n)                   \
    tti_opts_list((ctx), (who), (list), TTI_COUNT(list), (own), \
                  sizeof(*(1 ? &(own)[0] : (list)[0])), (n))

// Gives a caller the struct that it asked for, as long as its own is; what it knows more is zero.
void tti_out_copy(void *out, size_t size, const void *from, size_t known);

// ---- options (rows): fill, set, print, help --------------------------------------------------

tt_status tti_options_default(tt_ctx *ctx, const tt_option *rows, void *out);
// Copies what rows describe; equal values become equal bytes, and other bytes of to stay.
void tti_options_copy(const tt_option *rows, void *to, const void *from);
// A program's options: zero fields get their defaults, then bounds are checked. where: "dense".
tt_status tti_options_fill(tt_ctx *ctx, const tt_option *rows, void *opts, const char *where);
// Zeros of double rows with another default become TT_ZERO, or with is_given false 0 again.
void tti_options_zeros(const tt_option *rows, void *opts, bool is_given);
// A double of a program's options: 0 means otherwise, TT_ZERO means 0.
static inline double tti_or_default(double value, double otherwise)
{
    return value != 0 ? value : __builtin_signbit(value) ? 0 : otherwise;
}
// Bounds and words alone, of options where zero means zero.
tt_status tti_options_check(tt_ctx *ctx, const tt_option *rows, const void *opts,
                            const char *where);
// Sets one row from text; unknown names suggest the nearest. where names the section for messages.
tt_status tti_option_set(tt_ctx *ctx, const tt_option *rows, void *out, const char *where,
                         const char *name, const char *value);
// Reads TUTTI_<WHERE>_<NAME> for every row; the only place that reads the environment.
tt_status tti_options_env(tt_ctx *ctx, const tt_option *rows, void *out, const char *where);
const char *tti_env(const char *name); // one variable; NULL if unset
void tti_option_print(tti_text *t, const tt_option *row, const void *from); // value as text
bool tti_option_is_default(const tt_option *row, const void *from);
void tti_options_help(tti_text *t, const tt_option *rows);
const char *tti_option_type(tt_opt_type type); // the word for it: "int", "dtype"
tt_status tti_parse_size(tt_ctx *ctx, const char *text, size_t *out); // "512MiB"
tt_status tti_parse_dtype(tt_ctx *ctx, const char *text, tt_dtype *out);

// ---- the context -----------------------------------------------------------------------------

typedef struct tti_device tti_device;
struct tti_hooks { // what upper folders hang on the context; freed in this order by tt_close()
    void *owner;
    void (*free_fn)(void *owner);
    struct tti_hooks *next;
};

// Has tt_close() call free_fn(owner); later ones first. The link is part of owner.
void tti_own(tt_ctx *ctx, struct tti_hooks *link, void *owner, void (*free_fn)(void *));
void tti_disown(tt_ctx *ctx, struct tti_hooks *link);

#endif
