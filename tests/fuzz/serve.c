/*
 * serve.c - fuzzes what clients send to a server: requests, each a kind, a length of two bytes and
 * a body, carried out one after the other for one connection; and their parts. Whatever comes, the
 * server answers, and the next client finds it as it should be.
 */
#include "fuzz.h"
#include "serve/frame.h"

static tti_host *host(void)
{
    static tti_host h;
    if (h.started_ns != 0)
        return &h;
    h.spec.self = -1;
    expect(tti_spec_add(fuzz_ctx(), &h.spec, "worker", "127.0.0.1:1") == TT_OK);
    h.bounds = (tti_bounds){.clients = 4,
                            .queues = 8,
                            .memory = 1 << 20,
                            .graph = 1 << 16,
                            .variables = 1 << 20,
                            .run_ms = 1000};
    h.threads = 1;
    h.key.file.fd = -1;
    strcpy(h.task, "/job:worker/task:0");
    strcpy(h.devices, "cpu:0@4MiB");
    expect(tti_host_init(fuzz_ctx(), &h) == TT_OK);
    return &h;
}

// Waits of queues end at once: the client counts as lost.
static void requests(const uint8_t *data, size_t size)
{
    tti_client *c = tti_client_new(host(), "fuzz");
    tti_text out = {.ctx = NULL};
    expect(c != NULL);
    for (size_t at = 0; at + 3 <= size;) {
        uint32_t kind = data[at];
        size_t n = (size_t)data[at + 1] | (size_t)data[at + 2] << 8;
        n = TTI_MIN(n, size - at - 3);
        char *body = malloc(n + (n == 0)); // of its own size
        expect(body != NULL);
        memcpy(body, data + at + 3, n);
        out.n = 0;
        if (kind == TTI_DEQUEUE || kind == TTI_ENQUEUE)
            atomic_store(&c->is_gone, 1);
        tt_status st = tti_client_handle(c, kind, body, n, &out);
        atomic_store(&c->is_gone, 0);
        expect(st >= TT_OK && st <= TT_ENAN);
        expect(c->ctx == NULL || tt_status_of(c->ctx) == TT_OK);
        free(body);
        at += 3 + n;
    }
    tti_text_free(&out);
    tti_client_free(c);
    (void)tti_containers_clear(host(), NULL, true);
}

static void parts(const uint8_t *data, size_t size)
{
    tti_assembly a = {.body = NULL};
    for (size_t at = 0; at < size;) {
        size_t n = TTI_MIN((size_t)data[at], size - at - 1);
        char *part = malloc(n + (n == 0));
        expect(part != NULL);
        memcpy(part, data + at + 1, n);
        tti_assembled got = tti_assembly_add(&a, TTI_FRAME_REQUEST, part, n, 4096);
        expect(a.got <= 4096 && (got != TTI_WHOLE || a.got == a.total));
        free(part);
        at += n + 1;
    }
    tti_assembly_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    requests(data, size);
    parts(data, size);
    return 0;
}
