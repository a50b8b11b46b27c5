/*
 * peer.c - fuzzes what a rank of the job may send: hellos, control messages, chunks of messages. An
 * input is a row of messages: what it is, from whom, whether its head is put right, its length (two
 * bytes), its bytes. Whatever comes, messages stay within their bytes, a verdict has words, and all
 * memory is given back.
 */
#include "fuzz.h"
#include "net/world_own.h"

#define RANKS 3
#define HEAD  5

#define WORLD_BYTES (sizeof(tti_world) + RANKS * sizeof(tti_peer))

static void open_world(tt_ctx *ctx, tti_wire *wire, tti_world *w)
{
    memset(w, 0, WORLD_BYTES);
    w->ctx = ctx;
    w->n = RANKS;
    w->wire = wire;
    w->suspect = -1;
    w->loss_ms = 2000;
    w->heartbeat_ms = 250;
    pthread_mutex_init(&w->mu, NULL);
    pthread_cond_init(&w->changed, NULL);
    for (int i = 0; i < RANKS; i++) {
        w->peers[i].pid_fd = -1;
        w->peers[i].has_hello = i < 2; // rank 2 has not come yet
        w->peers[i].hello = (tti_hello){.magic = TTI_WIRE_MAGIC, .n = RANKS, .rank = i};
        w->peers[i].hello.incarnation = i < 2 ? 7 : 0;
    }
}

static void close_world(tti_world *w)
{
    tti_messages_free(w);
    pthread_mutex_destroy(&w->mu);
    pthread_cond_destroy(&w->changed);
}

// A message's reader, who has no time to wait.
static void read_message(tti_world *w, int from, const tti_chunk *c)
{
    char *room = malloc(64);
    expect(room != NULL);
    tti_message l = c->message;
    l.bytes = 64;
    tt_status st = tti_world_receive(w, from, &l, room, 0);
    expect(st == TT_OK || st == TT_ETIMEOUT || st == TT_EINVAL || st == TT_EPEER);
    free(room);
}

static void send_data(tti_world *w, int from, bool is_right, char *m, size_t bytes)
{
    tti_chunk c = {.magic = 0};
    memcpy(&c, m, TTI_MIN(bytes, sizeof(c)));
    if (is_right) {
        c.magic = TTI_WIRE_MAGIC;
        c.incarnation = 7;
        c.n = w->peers[from].n_in;
    }
    if (c.message.bytes >> 40 == 0) // else it is too much
        c.message.bytes %= 1 << 20;
    memcpy(m, &c, TTI_MIN(bytes, sizeof(c)));
    tti_messages_take(w, from, m, bytes);
    if (bytes >= sizeof(c) && c.message.run % 4 == 0)
        read_message(w, from, &c);
}

static void send_control(tti_world *w, int from, bool is_right, char *m, size_t bytes)
{
    tti_control_message head = {.magic = TTI_WIRE_MAGIC, .incarnation = 7};
    if (is_right && bytes >= 16) {
        memcpy(m, &head.magic, sizeof(head.magic));
        memcpy(m + offsetof(tti_control_message, incarnation), &head.incarnation,
               sizeof(head.incarnation));
    }
    tti_world_take(w, from, m, bytes);
}

static void check(tti_world *w)
{
    size_t bytes = 0;
    for (const tti_inbox *e = w->inbox; e != NULL; e = e->next) {
        expect(!e->is_filling && e->arrived <= TTI_MAX(e->message.bytes, (uint64_t)1));
        bytes += e->capacity > 0 ? e->message.bytes : 0;
    }
    expect(bytes == w->inbox_bytes);
    expect(!w->has_failed || tt_status_of(w->ctx) != TT_OK);
    tt_status st = tti_hello_check_all(w);
    expect(st == TT_OK || tt_last_error(w->ctx).message[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_ctx *ctx = fuzz_ctx();
    static tti_wire *wire; // listens, and is connected to nobody
    static _Alignas(64) char room[WORLD_BYTES];
    tti_world *w = (tti_world *)(void *)room;
    static const uint8_t secret[TT_SECRET_BYTES];
    tti_wire_opts opts = {RANKS, 0, "127.0.0.1:0", secret, false};
    if (wire == NULL && tti_wire_open(ctx, &opts, &wire) != TT_OK)
        exit(0); // this build has none
    int64_t blocks = tt_alloc_stats_get(ctx).blocks;
    open_world(ctx, wire, w);
    while (size >= HEAD) {
        int from = 1 + data[1] % (RANKS - 1);
        size_t bytes = TTI_MIN((size_t)(data[3] | data[4] << 8), size - HEAD);
        char *m = malloc(bytes + (bytes == 0)); // of its own size
        expect(m != NULL);
        memcpy(m, data + HEAD, bytes);
        if (data[0] % 2 == 0)
            send_control(w, from, data[2] % 2 == 0, m, bytes);
        else
            send_data(w, from, data[2] % 2 == 0, m, bytes);
        free(m);
        data += HEAD + bytes;
        size -= HEAD + bytes;
    }
    check(w);
    close_world(w);
    tt_clear_error(ctx);
    expect(tt_alloc_stats_get(ctx).blocks == blocks);
    return 0;
}
