/*
 * base.c - errors, log, memory, text, nearest words, hashes, the clock, floating point modes.
 */
#include "../test.h"
#include "base/ctx.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- errors ----------------------------------------------------------------------------------

TEST(status_has_names_and_texts)
{
    CHECK_STR(tt_status_name(TT_OK), "TT_OK");
    CHECK_STR(tt_status_name(TT_ESHAPE), "TT_ESHAPE");
    CHECK_STR(tt_status_text(TT_ENOMEM), "out of memory");
    CHECK_STR(tt_status_name((tt_status)99), "TT_UNKNOWN");
    CHECK_STR(tt_status_name((tt_status)-1), "TT_UNKNOWN");
    CHECK_STR(tt_status_text((tt_status)99), "unknown status");
}

TEST(first_error_wins)
{
    tt_ctx *ctx = test_ctx();
    CHECK(!tti_is_stuck(ctx));
    CHECK_INT(tt_last_error(ctx).status, TT_OK);
    CHECK_STR(tt_last_error(ctx).message, "");

    CHECK_INT(TT_FAIL(ctx, TT_ESHAPE, "x is %d", 3), TT_ESHAPE);
    CHECK_INT(TT_FAIL(ctx, TT_EIO, "later"), TT_EIO);
    CHECK(tti_is_stuck(ctx));
    tt_error e = tt_last_error(ctx);
    CHECK_INT(e.status, TT_ESHAPE);
    CHECK_STR(e.message, "x is 3");
    CHECK(e.line > 0 && e.file != NULL);

    tt_clear_error(ctx);
    CHECK_INT(tt_status_of(ctx), TT_OK);
    CHECK_INT(TT_FAIL(ctx, TT_EIO, "again"), TT_EIO);
    CHECK_STR(tt_last_error(ctx).message, "again");
    CHECK_INT(tt_close(ctx), TT_EIO);
}

TEST(null_context_is_an_error_and_no_crash)
{
    CHECK(tti_is_stuck(NULL));
    CHECK_INT(tt_status_of(NULL), TT_EINVAL);
    CHECK_INT(tt_last_error(NULL).status, TT_EINVAL);
    CHECK_INT(TT_FAIL(NULL, TT_EIO, "nobody hears"), TT_EIO);
    tt_clear_error(NULL);
    tt_request_stop(NULL);
    tti_log(NULL, TT_ERROR, "nobody hears");
    CHECK_INT(tt_alloc_stats_get(NULL).blocks, 0);
    CHECK_INT(tt_close(NULL), TT_EINVAL);
}

TEST(long_messages_are_cut)
{
    tt_ctx *ctx = test_ctx();
    char text[TTI_MESSAGE_MAX + 1000];
    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    TT_FAIL(ctx, TT_EIO, "%s", text);
    CHECK_INT(strlen(tt_last_error(ctx).message), TTI_MESSAGE_MAX - 1);
    tt_clear_error(ctx);
    tti_fail_where(ctx, "line 7: ");
    TT_FAIL(ctx, TT_EIO, "%s", text);
    tti_fail_where(ctx, NULL);
    CHECK_MESSAGE(ctx, "line 7: aaaa");
    CHECK_INT(tt_close(ctx), TT_EIO);
}

static void *fail_many(void *arg)
{
    for (int i = 0; i < 1000; i++) {
        TT_FAIL((tt_ctx *)arg, TT_EIO, "from a thread");
        CHECK(tt_last_error(arg).message[0] == 'f');
    }
    return NULL;
}

TEST(errors_from_many_threads_land_in_one_slot)
{
    tt_ctx *ctx = test_ctx();
    pthread_t id[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&id[i], NULL, fail_many, ctx);
    for (int i = 0; i < 4; i++)
        pthread_join(id[i], NULL);
    CHECK_STR(tt_last_error(ctx).message, "from a thread");
    CHECK_INT(tt_close(ctx), TT_EIO);
}

// ---- log -------------------------------------------------------------------------------------

typedef struct seen {
    tt_ctx *ctx;
    char text[1000];
    int n;
} seen;

static void remember(void *user, const tt_event *ev)
{
    seen *s = user;
    s->n++;
    size_t n = strlen(s->text);
    snprintf(s->text + n, sizeof(s->text) - n, "%s %d %s|", ev->kind, (int)ev->level, ev->text);
    if (s->ctx != NULL && s->n == 1) // the owner's function may call the library
        TT_FAIL(s->ctx, TT_EIO, "inside");
}

TEST(events_go_to_the_owner)
{
    seen s = {0};
    tt_ctx *ctx = tt_open(.on_event = remember, .user = &s, .level = TT_INFO);
    s = (seen){0};
    TT_LOG(ctx, TT_INFO, "port %d", 7070);
    TT_LOG(ctx, TT_DEBUG, "not this");
    TT_FAIL(ctx, TT_EIO, "bad");
    TT_FAIL(ctx, TT_EIO, "a consequence");
    CHECK_STR(s.text, "log 3 port 7070|log 1 bad|");
    CHECK_INT(tt_close(ctx), TT_EIO);
}

TEST(an_event_function_may_call_the_library)
{
    seen s = {0};
    tt_ctx *ctx = tt_open(.on_event = remember, .user = &s);
    s = (seen){.ctx = ctx};
    TT_LOG(ctx, TT_WARN, "outside");
    CHECK_INT(s.n, 2);
    CHECK_INT(tt_close(ctx), TT_EIO);
}

// What fn writes to stderr.
static void read_stderr(void (*fn)(tt_ctx *), tt_ctx *ctx, char *out, size_t room)
{
    int ends[2], old = dup(2);
    CHECK(pipe(ends) == 0);
    dup2(ends[1], 2);
    fn(ctx);
    dup2(old, 2);
    close(ends[1]);
    ssize_t n = read(ends[0], out, room - 1);
    out[n > 0 ? n : 0] = '\0';
    close(ends[0]);
    close(old);
}

static void log_all(tt_ctx *ctx)
{
    TT_LOG(ctx, TT_WARN, "slow");
    TT_LOG(ctx, TT_INFO, "hidden");
    TT_FAIL(ctx, TT_EIO, "broken");
    tti_emit(ctx, &(tt_event){.kind = "print", .text = "x = 1"});
    tti_emit(ctx, &(tt_event){.kind = "run", .text = "{}"});
}

TEST(default_sink_is_stderr_from_warn_up)
{
    char text[1000];
    tt_ctx *ctx = tt_open(.threads = 1);
    read_stderr(log_all, ctx, text, sizeof(text));
    CHECK_STR(text, "tutti: warn: slow\ntutti: error: broken\ntutti: print: x = 1\n");
    CHECK_INT(tt_close(ctx), TT_EIO);
}

// ---- memory ----------------------------------------------------------------------------------

TEST(memory_is_counted)
{
    tt_ctx *ctx = test_ctx();
    tt_alloc_stats before = tt_alloc_stats_get(ctx);
    char *a = tti_alloc(ctx, 100);
    int *b = tti_calloc(ctx, 10, sizeof(int));
    for (int i = 0; i < 10; i++)
        CHECK_INT(b[i], 0);
    CHECK((uintptr_t)a % 16 == 0 && (uintptr_t)b % 16 == 0);
    memset(a, 'x', 100);
    a = tti_realloc(ctx, a, 1000);
    CHECK(a[99] == 'x');
    char *s = tti_strdup(ctx, "words");
    CHECK_STR(s, "words");
    tt_alloc_stats now = tt_alloc_stats_get(ctx);
    CHECK_INT(now.calls - before.calls, 4);
    CHECK_INT(now.blocks - before.blocks, 3);
    CHECK_INT(now.bytes - before.bytes, 1000 + 40 + 6);
    tti_free(ctx, a);
    tti_free(ctx, b);
    tti_free(ctx, s);
    tti_free(ctx, NULL);
    now = tt_alloc_stats_get(ctx);
    CHECK_INT(now.blocks, before.blocks);
    CHECK_INT(now.bytes, before.bytes);
    CHECK_OK(tt_close(ctx));
}

TEST(the_nth_allocation_fails)
{
    tt_ctx *ctx = test_ctx();
    tti_fail_alloc_at(ctx, 3);
    void *a = tti_alloc(ctx, 1), *b = tti_alloc(ctx, 1);
    CHECK(a != NULL && b != NULL);
    CHECK(tti_realloc(ctx, a, 77) == NULL); // a stays
    CHECK_MESSAGE(ctx, "77 bytes");
    CHECK_INT(tt_status_of(ctx), TT_ENOMEM);
    void *c = tti_alloc(ctx, 1);
    CHECK(c != NULL);
    tti_free(ctx, a);
    tti_free(ctx, b);
    tti_free(ctx, c);
    tt_clear_error(ctx);
    CHECK_OK(tt_close(ctx));
}

TEST(sizes_that_overflow_are_refused)
{
    tt_ctx *ctx = test_ctx();
    size_t s;
    int64_t i;
    CHECK(!tti_mul_size(SIZE_MAX, 2, &s) && tti_mul_size(3, 5, &s) && s == 15);
    CHECK(!tti_mul_i64(INT64_MAX, 2, &i) && tti_mul_i64(-3, 5, &i) && i == -15);
    CHECK(tti_calloc(ctx, SIZE_MAX / 2, 3) == NULL);
    CHECK(tti_alloc(ctx, SIZE_MAX) == NULL);
    CHECK(tti_alloc(ctx, SIZE_MAX / 2) == NULL);
    CHECK_INT(tt_close(ctx), TT_ENOMEM);
}

TEST(arrays_grow)
{
    tt_ctx *ctx = test_ctx();
    int64_t *a = NULL, cap = 0;
    for (int64_t i = 0; i < 1000; i++) {
        CHECK(tti_grow(ctx, &a, &cap, i + 1, sizeof(*a)));
        a[i] = i;
    }
    for (int64_t i = 0; i < 1000; i++)
        CHECK_INT(a[i], i);
    CHECK(cap >= 1000 && cap < 3000);
    int64_t was = cap;
    CHECK(!tti_grow(ctx, &a, &cap, INT64_MAX, sizeof(*a)));
    CHECK_INT(cap, was);
    tti_free(ctx, a);
    CHECK_INT(tt_close(ctx), TT_ENOMEM);
}

static int order[3], n_order;
static void note(void *owner)
{
    order[n_order++] = *(int *)owner;
}

TEST(what_a_context_owns_goes_last_first)
{
    tt_ctx *ctx = test_ctx();
    struct tti_hooks link[3];
    int id[3] = {0, 1, 2};
    for (int i = 0; i < 3; i++)
        tti_own(ctx, &link[i], &id[i], note);
    tti_disown(ctx, &link[1]);
    tti_disown(ctx, &link[1]); // twice is fine
    CHECK_OK(tt_close(ctx));
    CHECK_INT(n_order, 2);
    CHECK_INT(order[0], 2);
    CHECK_INT(order[1], 0);
}

// ---- text ------------------------------------------------------------------------------------

TEST(text_grows)
{
    tt_ctx *ctx = test_ctx();
    tti_text t = {.ctx = ctx};
    for (int i = 0; i < 1000; i++)
        tti_text_add(&t, "%d,", i);
    tti_text_add(&t, "%01000d", 7);
    char *s = tti_text_take(&t);
    CHECK_INT(strlen(s), 10 * 2 + 90 * 3 + 900 * 4 + 1000);
    CHECK(strncmp(s, "0,1,2,", 6) == 0);
    tt_string_free(ctx, s);
    s = tti_text_take(&(tti_text){.ctx = ctx});
    CHECK_STR(s, "");
    tt_string_free(ctx, s);
    CHECK_OK(tt_close(ctx));
}

TEST(text_that_finds_no_memory_is_null)
{
    tt_ctx *ctx = test_ctx();
    tti_text t = {.ctx = ctx};
    tti_text_add(&t, "before");
    tti_fail_alloc_at(ctx, 1);
    for (int i = 0; i < 100; i++)
        tti_text_add(&t, "more and more");
    CHECK(tti_text_take(&t) == NULL);
    CHECK_INT(tt_close(ctx), TT_ENOMEM);
}

TEST(json_is_escaped)
{
    tt_ctx *ctx = test_ctx();
    tti_text t = {.ctx = ctx};
    tti_text_json(&t,
                  "a\"b\\c\n\x01 \xc3\xa9 \xff \xe2\x82 \xf0\x9f\x8e\xb5 \xc0\x80 \xed\xa0\x80");
    char *s = tti_text_take(&t);
    CHECK_STR(s, "\"a\\\"b\\\\c\\n\\u0001 \xc3\xa9 \\ufffd \\ufffd\\ufffd \xf0\x9f\x8e\xb5 "
                 "\\ufffd\\ufffd \\ufffd\\ufffd\\ufffd\"");
    tt_string_free(ctx, s);
    CHECK_OK(tt_close(ctx));
}

TEST(nearest_word)
{
    static const char *const names[] = {"matmul", "maximum", "minimum", "add", "mul", "sub", NULL};
    CHECK_INT(tti_distance("kitten", "sitting"), 3);
    CHECK_INT(tti_distance("ab", "ba"), 1);
    CHECK_INT(tti_distance("", "abc"), 3);
    CHECK_STR(tti_nearest("matmull", names), "matmul");
    CHECK_STR(tti_nearest("mamtul", names), "matmul");
    CHECK_STR(tti_nearest("maxmum", names), "maximum");
    CHECK_STR(tti_nearest("adt", names), "add");
    CHECK(tti_nearest("convolution", names) == NULL);
    CHECK(tti_nearest("xyz", names) == NULL);
    CHECK(tti_nearest("", names) == NULL);
    char word[300];
    memset(word, 'a', sizeof(word));
    word[299] = '\0';
    CHECK(tti_nearest(word, names) == NULL);
}

// ---- numbers ---------------------------------------------------------------------------------

TEST(hashes_are_xxh3)
{
    // The values of an empty input are in xxHash's own documentation and test suite.
    CHECK(tti_hash64("", 0, 0) == 0x2D06800538D394C2u);
    tt_hash h = tti_hash128("", 0);
    CHECK(h.low == 0x6001C324468D497Fu && h.high == 0x99AA06D3014798D8u);
    CHECK(tti_hash64("a", 1, 0) != tti_hash64("a", 1, 1));
}

TEST(time_moves_forward)
{
    int64_t a = tti_now_ns();
    usleep(1000);
    CHECK(tti_now_ns() - a >= 1000000);
}

TEST(subnormals_are_flushed_inside_only)
{
    volatile float tiny = 1e-39f, zero = 0;
    CHECK(tiny + zero != 0);
    unsigned saved = tti_fp_enter();
    float inside = tiny + zero;
    tti_fp_leave(saved);
    CHECK(tiny + zero != 0);
#if defined(__x86_64__)
    CHECK(inside == 0);
#else
    (void)inside;
#endif
}

TEST(element_types)
{
    tt_ctx *ctx = test_ctx();
    size_t bytes[] = {4, 8, 2, 2, 4, 8, 1, 1};
    for (int i = 0; i < TT_N_DTYPES; i++) {
        tt_dtype back;
        CHECK_INT(tt_dtype_bytes((tt_dtype)i), bytes[i]);
        CHECK_OK(tti_parse_dtype(ctx, tt_dtype_name((tt_dtype)i), &back));
        CHECK_INT(back, i);
    }
    CHECK_STR(tt_dtype_name((tt_dtype)99), "?");
    CHECK_INT(tt_dtype_bytes((tt_dtype)-1), 0);
    tt_dtype t;
    CHECK_INT(tti_parse_dtype(ctx, "float", &t), TT_EPARSE);
    CHECK_MESSAGE(ctx, "'float' is not an element type");
    CHECK_INT(tt_close(ctx), TT_EPARSE);
}

TEST(version_tells_what_is_in)
{
    const char *s = tt_version_text();
    CHECK(strstr(s, "tutti: " TT_VERSION "\n") == s);
    CHECK(strstr(s, "\narithmetic: ") && strstr(s, "\nxxhash: yes\n"));
    CHECK(strstr(s, "\ninstruction sets: plain"));
}

TEST(attempts_keep_their_errors)
{
    tt_ctx *ctx = tt_open();
    tti_attempt outer, inner;
    tti_attempt_begin(ctx, &outer);
    tti_attempt_begin(ctx, &inner);
    CHECK(TT_FAIL(ctx, TT_ESHAPE, "x is %d", 3) == TT_ESHAPE);
    CHECK(TT_FAIL(ctx, TT_EIO, "follows from it") == TT_EIO);
    CHECK(tt_status_of(ctx) == TT_ESHAPE);
    CHECK(tti_attempt_end(ctx, &inner) == TT_ESHAPE); // the first
    CHECK_STR(inner.message, "x is 3");
    CHECK_OK(tt_status_of(ctx));
    CHECK_OK(tti_attempt_end(ctx, &outer));
    CHECK_STR(outer.message, "");
    CHECK(tti_attempt_raise(ctx, &inner) == TT_ESHAPE);
    CHECK_STR(tt_last_error(ctx).message, "x is 3");
    CHECK(tt_close(ctx) == TT_ESHAPE);
}
