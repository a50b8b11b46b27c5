/*
 * shards.c - the shard list of a variable, made by hand: which ranges are fresh, where others get
 * them, any number of shards.
 */
#include "run/store.h"
#include "test.h"
#include <stdio.h>

#define BYTES 1024

typedef struct made {
    tt_ctx *ctx;
    tti_variable v;
} made;

static void begin(made *m)
{
    m->ctx = test_ctx();
    m->v = (tti_variable){.name = "w", .dtype = TT_U8, .bytes = BYTES, .store = m->ctx->store};
}

static void end(made *m)
{
    tti_variable_drop(&m->v);
    CHECK_OK(tt_close(m->ctx));
}

// Memory of its own, or in that of another.
static tti_shard *add(made *m, size_t begin_at, size_t bytes, tti_shard *in)
{
    tti_shard like = {.begin = begin_at, .bytes = bytes, .in = in, .device = "cpu:0"};
    tti_shard *s = tti_shard_add(&m->v, &like);
    CHECK(s != NULL && !tti_shard_is_fresh(&m->v, s));
    if (in == NULL)
        CHECK_OK(tti_shard_alloc(m->ctx, &m->v, s));
    else
        s->data = (char *)in->data + (begin_at - in->begin);
    return s;
}

static void write(made *m, tti_shard *s, int value)
{
    memset(s->data, value, s->bytes);
    s->version = atomic_load(&m->v.version);
}

TEST(shards_of_any_number_make_one_value)
{
    made m;
    unsigned char out[BYTES];
    tti_shard *piece[256];
    begin(&m);
    for (int i = 0; i < 256; i++) {
        piece[i] = add(&m, (size_t)i * 4, 4, NULL);
        CHECK(!tti_variable_covers(&m.v, m.ctx, true));
        write(&m, piece[i], i);
    }
    CHECK(tti_variable_covers(&m.v, m.ctx, true));
    CHECK_OK(tti_variable_fetch(&m.v, m.ctx, out));
    for (int i = 0; i < BYTES; i++)
        CHECK_INT(out[i], i / 4);
    tti_shard *whole = add(&m, 0, BYTES, NULL);
    CHECK_OK(tti_shards_fill(&m.v, m.ctx, &whole, 1));
    CHECK(tti_shard_is_fresh(&m.v, whole) && memcmp(whole->data, out, BYTES) == 0);
    CHECK(tti_variable_here(&m.v) == whole->data);
    end(&m);
}

// Pieces in the memory of a whole one: once they have all of it, it is fresh too.
TEST(shards_in_the_memory_of_another_make_it_fresh)
{
    made m;
    begin(&m);
    tti_shard *whole = add(&m, 0, BYTES, NULL), *other = add(&m, 0, BYTES, NULL);
    tti_shard *low = add(&m, 0, 600, whole), *high = add(&m, 600, BYTES - 600, whole);
    tti_shard *across = add(&m, 500, 200, whole), *apart = add(&m, 500, 200, NULL);
    write(&m, whole, 1);
    CHECK_OK(tti_shards_fill(&m.v, m.ctx, &other, 1));
    CHECK(tti_shard_is_fresh(&m.v, low) && tti_shard_is_fresh(&m.v, across));
    CHECK(!tti_shard_is_fresh(&m.v, apart));

    atomic_store(&m.v.version, 1); // a run that writes the pieces
    write(&m, low, 2);
    CHECK(tti_shard_is_fresh(&m.v, low) && !tti_shard_is_fresh(&m.v, whole));
    CHECK(!tti_shard_is_fresh(&m.v, across) && !tti_variable_covers(&m.v, m.ctx, true));
    write(&m, high, 3);
    CHECK(tti_shard_is_fresh(&m.v, whole) && tti_shard_is_fresh(&m.v, across));
    CHECK(!tti_shard_is_fresh(&m.v, other));

    tti_shard *stale[] = {other, apart, across};
    CHECK_OK(tti_shards_fill(&m.v, m.ctx, stale, 3));
    const unsigned char *a = other->data, *b = apart->data;
    CHECK_INT(a[0], 2);
    CHECK_INT(a[599], 2);
    CHECK_INT(a[600], 3);
    CHECK_INT(a[BYTES - 1], 3);
    CHECK_INT(b[99], 2);
    CHECK_INT(b[100], 3);
    for (tti_shard *s = m.v.shards; s != NULL; s = s->next)
        CHECK(!s->is_filled);
    end(&m);
}

TEST(shards_that_lack_bytes_are_an_error)
{
    made m;
    unsigned char out[BYTES];
    begin(&m);
    write(&m, add(&m, 0, 100, NULL), 1);
    write(&m, add(&m, 101, BYTES - 101, NULL), 1);
    CHECK(!tti_variable_covers(&m.v, m.ctx, false));
    CHECK_INT(tti_variable_fetch(&m.v, m.ctx, out), TT_EINVAL);
    CHECK_MESSAGE(m.ctx, "variable 'w' has no value at byte 100");
    tti_variable_drop(&m.v);
    CHECK_INT(tt_close(m.ctx), TT_EINVAL);
}
