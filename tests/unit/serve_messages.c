/*
 * serve_messages.c - what a server makes of messages, without sockets: versions, parts, bodies that
 * are none, limits; and cluster files.
 */
#include "serve/frame.h"
#include "test.h"
#include <stdio.h>

static void make_host(tt_ctx *ctx, tti_host *h)
{
    *h = (tti_host){.spec.self = -1, .threads = 1, .key.file.fd = -1};
    h->bounds = (tti_bounds){.clients = 4,
                             .queues = 2,
                             .memory = 1 << 16,
                             .graph = 1000,
                             .variables = 1 << 16,
                             .run_ms = 1000};
    CHECK_OK(tti_spec_add(ctx, &h->spec, "worker", "127.0.0.1:1"));
    strcpy(h->task, "/job:worker/task:0");
    strcpy(h->devices, "cpu:0");
    CHECK_OK(tti_host_init(ctx, h));
}

static tt_status ask(tti_client *c, uint32_t kind, tti_text *body, tti_text *out)
{
    out->n = 0;
    tt_status st = tti_client_handle(c, kind, body->s, (size_t)body->n, out);
    tti_text_add(out, "%s", ""); // ends it
    body->n = 0;
    return st;
}

TEST(serve_messages_of_another_version_are_refused)
{
    tt_ctx *ctx = test_ctx();
    tti_host h;
    make_host(ctx, &h);
    tti_client *c = tti_client_new(&h, "test");
    tti_text t = {.ctx = ctx}, out = {.ctx = ctx};
    tti_put_u32(&t, TTI_SERVE_PROTOCOL);
    tti_put_u32(&t, TT_ARITHMETIC);
    tti_put_text(&t, "9.9.9");
    tti_put_text(&t, "me");
    CHECK_INT(ask(c, TTI_ASK_HELLO, &t, &out), TT_EUNSUPPORTED);
    CHECK(strstr(out.s, "runs Tutti " TT_VERSION) != NULL && strstr(out.s, "9.9.9") != NULL);
    tti_put_u32(&t, TTI_SERVE_PROTOCOL + 1); // whatever follows
    CHECK_INT(ask(c, TTI_ASK_HELLO, &t, &out), TT_EUNSUPPORTED);
    tti_put_u32(&t, TTI_SERVE_PROTOCOL);
    tti_put_u32(&t, TT_ARITHMETIC);
    tti_put_text(&t, TT_VERSION);
    tti_put_text(&t, "me\x1b[31m");
    CHECK_INT(ask(c, TTI_ASK_HELLO, &t, &out), TT_OK);
    CHECK(strchr(c->name, 0x1b) == NULL); // nothing for a terminal

    tti_put_u32(&t, 1);
    CHECK_INT(ask(c, 99, &t, &out), TT_EPARSE);
    CHECK_INT(ask(c, TTI_ASK_RUN, &t, &out), TT_EINVAL); // no graph
    tti_put_u32(&t, 7);
    CHECK_INT(ask(c, TTI_ASK_GRAPH, &t, &out), TT_EPARSE);
    CHECK_INT(ask(c, TTI_ASK_LIST, &t, &out), TT_EPARSE);
    CHECK_INT(ask(c, TTI_DEQUEUE, &t, &out), TT_EINVAL);

    tti_put_text(&t, ""); // a variable of more than was sent
    tti_put_text(&t, "v");
    tti_put_u32(&t, TT_F32);
    tti_put_shape(&t, &TT_SHAPE(1 << 20, 1 << 10));
    tti_put_align(&t);
    CHECK_INT(ask(c, TTI_ASK_WRITE, &t, &out), TT_ESHAPE);
    CHECK(strstr(out.s, "but 0 were sent") != NULL);
    tti_text_free(&t);
    tti_text_free(&out);
    tti_client_free(c);
    tti_host_deinit(ctx, &h);
    CHECK_OK(tt_close(ctx));
}

static tti_assembled add(tti_assembly *a, uint64_t number, uint64_t total, uint64_t offset, int n)
{
    char part[sizeof(tti_frame_head) + 64] = {0};
    tti_frame_head h = {.magic = TTI_FRAME_MAGIC,
                        .type = TTI_FRAME_REQUEST,
                        .number = number,
                        .total = total,
                        .offset = offset,
                        .kind = TTI_ASK_RUN};
    memcpy(part, &h, sizeof(h));
    memset(part + sizeof(h), 'a' + (int)offset, (size_t)n);
    return tti_assembly_add(a, TTI_FRAME_REQUEST, part, sizeof(h) + (size_t)n, 100);
}

TEST(serve_messages_come_in_parts)
{
    tti_assembly a = {.body = NULL};
    CHECK_INT(add(&a, 1, 5, 0, 3), TTI_PART);
    CHECK_INT(add(&a, 1, 5, 3, 2), TTI_WHOLE);
    CHECK(a.got == 5 && memcmp(a.body, "aaadd", 5) == 0);
    CHECK_INT(add(&a, 2, 0, 0, 0), TTI_WHOLE);
    CHECK_INT(add(&a, 3, 101, 0, 50), TTI_TOO_LARGE);
    CHECK_INT(add(&a, 3, 101, 50, 50), TTI_IGNORED); // the rest of what was refused
    CHECK_INT(add(&a, 4, 10, 0, 5), TTI_PART);
    CHECK_INT(add(&a, 4, 10, 6, 4), TTI_BROKEN);
    tti_assembly_free(&a);
    a = (tti_assembly){.body = NULL};
    CHECK_INT(add(&a, 4, 10, 0, 11), TTI_BROKEN);
    CHECK_INT(tti_assembly_add(&a, TTI_FRAME_REQUEST, "short", 5, 100), TTI_BROKEN);
    tti_assembly_free(&a);
}

static void bad_spec(const char *text, const char *words)
{
    tt_ctx *ctx = test_ctx();
    tti_spec s;
    CHECK(tti_spec_parse(ctx, "c.yaml", text, strlen(text), &s) != TT_OK);
    CHECK_MESSAGE(ctx, words);
    tti_spec_free(ctx, &s);
    CHECK(tt_close(ctx) != TT_OK);
}

TEST(serve_cluster_files)
{
    test_need_yaml();
    static const char tf[] = "{\"cluster\": {\"worker\": [\"a:1\", \"b:1\"], \"ps\": [\"c:1\"]}, "
                             "\"task\": {\"type\": \"worker\", \"index\": 1}}";
    static const char file[] = "jobs:\n  ps: c:1\n  worker:\n    - a:1\n"
                               "    - {address: 'b:1', devices: 'cpu:0*2'}\n"
                               "devices: cpu:0\nkey: k\n";
    tt_ctx *ctx = test_ctx();
    tti_spec s;
    CHECK_OK(tti_spec_parse(ctx, "TF_CONFIG", tf, strlen(tf), &s));
    CHECK(s.n == 3 && s.self == 1 && strcmp(s.tasks[1].address, "b:1") == 0);
    tti_spec_free(ctx, &s);
    CHECK_OK(tti_spec_parse(ctx, "x/c.yaml", file, strlen(file), &s));
    CHECK(s.n == 3 && s.self == -1);
    CHECK_STR(s.key, "x/k");
    CHECK_STR(s.tasks[0].devices, "cpu:0");
    CHECK_STR(s.tasks[2].devices, "cpu:0*2");
    CHECK(s.tasks[2].index == 1);
    tti_spec_free(ctx, &s);
    CHECK_OK(tt_close(ctx));
    bad_spec("jobs: {worker: [nohost]}\n", "c.yaml:1:17: cluster: job worker: 'nohost'");
    bad_spec("jobs: {'a b': [h:1]}\n", "job 'a b'");
    bad_spec("jobs: {}\n", "jobs");
    bad_spec("{\"cluster\": {\"worker\": 3}}", "worker is not a list");
    bad_spec("{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\": \"ps\", \"index\": 0}}",
             "has no task 'ps:0'; it has worker:0");
}
