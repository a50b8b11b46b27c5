/*
 * devices.c - tutti devices: the devices of this machine, or of a list of devices.
 */
#include "base/ctx.h"
#include "cli/progress.h"
#include "device/device.h"
#include <stdio.h>

static const char help[] =
    "Lists the devices of this machine; with --devices, the devices that this list opens.\n"
    "Without --devices, GPUs are listed but not opened.\n"
    "\n"
    "A device is written as its type and number:\n"
    "  cpu:0             the processor with all its cores\n"
    "  cpu:0*2           two logical devices, cpu:0 and cpu:1, each with half of the cores\n"
    "  cpu:0*2@512MiB    the same, with a memory limit of 512 MiB each\n"
    "  gpu:0             the first NVIDIA GPU\n"
    "  gpu:0*2@40%       two logical devices on it, each limited to 40 % of its memory\n"
    "  cpu:0,gpu:1       a list; the devices are then numbered by type: cpu:0 and gpu:0\n"
    "  all               all GPUs, or cpu:0 if there are none\n"
    "\n"
    "A node of a graph is pinned by a short or full device name; a missing field matches "
    "anything:\n"
    "  cpu:0    /device:CPU:0    /job:localhost/replica:0/task:0/device:CPU:1\n";

typedef struct listing {
    tti_text text;
    bool json;
    int n;
} listing;

static void add_json(tti_text *t, const tt_device_info *d, const tti_facts *f)
{
    tti_text_add(t, "{\"name\": ");
    tti_text_json(t, d->name);
    tti_text_add(t, ", \"physical\": ");
    tti_text_json(t, d->physical);
    tti_text_add(t, ", \"model\": ");
    tti_text_json(t, f->model);
    tti_text_add(t, ", \"threads\": %d, \"limit\": %zu, \"memory\": %zu", d->threads, d->limit,
                 f->memory);
    if (f->memory_free > 0)
        tti_text_add(t, ", \"free\": %zu", f->memory_free);
    if (f->major > 0)
        tti_text_add(t, ", \"capability\": \"%d.%d\"", f->major, f->minor);
    if (f->bus[0] != '\0') {
        tti_text_add(t, ", \"bus\": ");
        tti_text_json(t, f->bus);
    }
}

// "reaches": the other cards whose memory it reads and writes without the host.
static void add_json_links(tti_text *t, const tti_backend *b, int card)
{
    char why[256];
    int n = b->reaches == NULL ? 0 : b->count(why, sizeof(why)), found = 0;
    for (int i = 0; i < n; i++)
        if (i != card && b->reaches(card, i))
            tti_text_add(t, "%s\"%s:%d\"", found++ == 0 ? ", \"reaches\": [" : ", ", b->name, i);
    tti_text_add(t, found > 0 ? "]" : "");
}

// card is the number of the backend's.
static void add(listing *l, const tt_device_info *d, const tti_backend *b, int card)
{
    tti_facts facts, *f = &facts;
    b->facts(card, f);
    char limit[32] = "none", memory[32] = "-", left[32] = "-";
    if (l->json) {
        tti_text_add(&l->text, l->n++ == 0 ? "[" : ",\n ");
        add_json(&l->text, d, f);
        add_json_links(&l->text, b, card);
        tti_text_add(&l->text, "}");
        return;
    }
    if (l->n++ == 0)
        tti_text_add(&l->text, "%-8s %-8s %7s %10s %10s %10s  %s\n", "device", "part of", "threads",
                     "limit", "memory", "free", "model");
    if (d->limit > 0)
        tti_size_text((double)d->limit, limit);
    if (f->memory > 0)
        tti_size_text((double)f->memory, memory);
    if (f->memory_free > 0)
        tti_size_text((double)f->memory_free, left);
    tti_text_add(&l->text, "%-8s %-8s %7d %10s %10s %10s  %s", d->name, d->physical, d->threads,
                 limit, memory, left, f->model);
    if (f->major > 0)
        tti_text_add(&l->text, ", compute capability %d.%d, %s", f->major, f->minor, f->bus);
    tti_text_add(&l->text, "\n");
}

static void add_devices(listing *l, tt_ctx *ctx)
{
    for (int i = 0; i < tt_device_count(ctx); i++) {
        tt_device_info d;
        if (tt_device_get(ctx, i, &d) != TT_OK)
            break;
        add(l, &d, ctx->top.devices[i]->backend, ctx->top.devices[i]->card);
    }
}

// Which cards copy to each other without the host.
static void add_links(listing *l, const tti_backend *b, int n)
{
    static const char *const words[] = {"copy through the host", "reach each other's memory"};
    bool first = b->reaches(0, 1), all = true;
    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n; k++)
            all &= b->reaches(i, k) == first;
    if (all && n > 2) {
        tti_text_add(&l->text, "%s:0 to %s:%d %s\n", b->name, b->name, n - 1, words[first]);
        return;
    }
    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n; k++)
            tti_text_add(&l->text, "%s:%d and %s:%d %s\n", b->name, i, b->name, k,
                         words[b->reaches(i, k)]);
}

// GPUs that were not asked for stay closed.
static void add_cards(listing *l, const tti_backend *b)
{
    char why[256] = "";
    int n = b->count(why, sizeof(why));
    for (int i = 0; i < n; i++) {
        tt_device_info d = {.threads = 1};
        snprintf(d.name, sizeof(d.name), "%s:%d", b->name, i);
        snprintf(d.physical, sizeof(d.physical), "%s", d.name);
        add(l, &d, b, i);
    }
    if (!l->json && why[0] != '\0')
        tti_text_add(&l->text, "%s: %s\n", n == 0 ? "no gpu" : "left out", why);
    if (!l->json && n > 1)
        add_links(l, b, n);
}

static int run(const cli_args *args)
{
    tt_ctx *ctx = cli_open(args, "cpu:0");
    if (ctx == NULL)
        return cli_open_code(args, NULL);
    listing l = {.text = {.ctx = ctx}, .json = args->json};
    add_devices(&l, ctx);
    if (args->devices == NULL)
        add_cards(&l, &tti_backend_cuda);
    if (args->json)
        tti_text_add(&l.text, "]\n");
    cli_print_text(&l.text);
    return cli_close(ctx, NULL);
}

const cli_verb cli_devices = {
    .name = "devices",
    .summary = "list the devices of this machine, and show how to name them",
    .help = help,
    .flags = "json devices threads",
    .run = run,
};
