/*
 * devices.c - tutti devices: the devices of this machine, or of a list of devices.
 */
#include "cli/progress.h"
#include <stdio.h>

static const char help[] =
    "Lists the devices of this machine, or with --devices what that list would give.\n"
    "\n"
    "A device is written as type and number:\n"
    "  cpu:0             the processor, all its cores\n"
    "  cpu:0*2           two logical devices, cpu:0 and cpu:1, each with half of the cores\n"
    "  cpu:0*2@512MiB    the same, each of them limited to 512 MiB\n"
    "  all               in this version cpu:0\n"
    "This version has no other kind of device than cpu.\n"
    "\n"
    "Nodes of a graph are pinned by names in short or in full; fields that are missing fit any:\n"
    "  cpu:0    /device:CPU:0    /job:localhost/replica:0/task:0/device:CPU:1\n";

static void print_json(tti_text *t, const tt_device_info *d)
{
    tti_text_add(t, "{\"name\": ");
    tti_text_json(t, d->name);
    tti_text_add(t, ", \"physical\": ");
    tti_text_json(t, d->physical);
    tti_text_add(t, ", \"model\": ");
    tti_text_json(t, d->model);
    tti_text_add(t, ", \"threads\": %d, \"limit\": %zu}", d->threads, d->limit);
}

static int run(const cli_args *args)
{
    tt_ctx *ctx = cli_open(args, "all");
    if (ctx == NULL)
        return cli_open_code(args, CLI_FAILED);
    tti_text t = {.ctx = ctx};
    if (!args->json)
        tti_text_add(&t, "%-8s %-8s %7s %10s  %s\n", "device", "part of", "threads", "limit",
                     "model");
    for (int i = 0; i < tt_device_count(ctx); i++) {
        tt_device_info d;
        char limit[32] = "none";
        if (tt_device_get(ctx, i, &d) != TT_OK)
            break;
        if (args->json) {
            tti_text_add(&t, i == 0 ? "[" : ",\n ");
            print_json(&t, &d);
            continue;
        }
        if (d.limit > 0)
            cli_size_text((double)d.limit, limit);
        tti_text_add(&t, "%-8s %-8s %7d %10s  %s\n", d.name, d.physical, d.threads, limit, d.model);
    }
    if (args->json)
        tti_text_add(&t, "]\n");
    char *s = tti_text_take(&t);
    cli_print(s);
    tt_string_free(ctx, s);
    return cli_close(ctx, NULL);
}

const cli_verb cli_devices = {
    .name = "devices",
    .summary = "the devices of this machine, and how they are written",
    .help = help,
    .flags = "json devices threads",
    .run = run,
};
