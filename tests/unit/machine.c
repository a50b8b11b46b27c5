/*
 * machine.c - the memory of the machine, or of a control group: read from both versions' files, and
 * held against plans of CPUs that have no limit of their own.
 */
#include "../command.h"
#include "../jobs.h"
#include "base/ctx.h"
#include "device/device.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

// ---- control groups --------------------------------------------------------------------------

static void put(const char *path, const char *text)
{
    char line[1024];
    snprintf(line, sizeof(line), "mkdir -p \"$(dirname 'root%s')\" && printf '%s' > 'root%s'", path,
             text, path);
    CHECK_INT(command_shell(line), 0);
}

static size_t limit(void)
{
    char root[600];
    snprintf(root, sizeof(root), "%s/root", test_folder());
    return tti_cgroup_memory(root);
}

TEST(limits_of_control_groups_are_found)
{
    CHECK_INT(limit(), 0); // no such files at all
    put("/proc/self/cgroup", "0::/user.slice/job-7/step\\n");
    CHECK_INT(limit(), 0);
    put("/sys/fs/cgroup/user.slice/job-7/step/memory.max", "max\\n");
    CHECK_INT(limit(), 0);
    put("/sys/fs/cgroup/user.slice/job-7/memory.max", "3221225472\\n"); // of one above
    CHECK_INT(limit(), 3221225472);
    put("/sys/fs/cgroup/user.slice/job-7/step/memory.max", "1073741824\\n");
    CHECK_INT(limit(), 1073741824);
    put("/proc/self/cgroup", "0::/\\n"); // in a namespace of its own
    put("/sys/fs/cgroup/memory.max", "536870912\\n");
    CHECK_INT(limit(), 536870912);
}

TEST(limits_of_control_groups_of_version_1_are_found)
{
    put("/proc/self/cgroup", "5:cpu,cpuacct:/x\\n4:hugetlb,memory:/slurm/job_3\\n0::/\\n");
    put("/sys/fs/cgroup/memory/slurm/job_3/memory.limit_in_bytes", "9223372036854771712\\n");
    CHECK_INT(limit(), 0); // that is how it says none
    put("/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "2147483648\\n");
    CHECK_INT(limit(), 2147483648);
    put("/proc/self/cgroup", "4:memory:/docker/0123abc\\n"); // the host's path, not seen from here
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576\\n");
    CHECK_INT(limit(), 1048576);
    put("/proc/self/cgroup", "4:memoryx:/docker/0123abc\\nbroken\\n");
    CHECK_INT(limit(), 0);
}

TEST(the_machine_has_memory)
{
    bool is_group;
    size_t all = tti_machine_memory(&is_group);
    CHECK(all > (size_t)64 << 20);
    tt_ctx *ctx = test_ctx();
    CHECK(ctx->top.host_memory == all && ctx->top.is_host_group == is_group);
    CHECK_OK(tt_close(ctx));
}

// ---- jobs ------------------------------------------------------------------------------------

static const char job[] = "data: {train: {digits: {count: 64}}, validate: {digits: 64}}\n"
                          "model: [flatten, dense: {units: 500, act: relu}, dense: 10]\n"
                          "train: {batch: 64, loss: cross_entropy, optimizer: adam, epochs: 1}\n"
                          "distribute: {devices: \"%s\", strategy: %s}\n";

// Fits the job with so many bytes of the machine; message "": it must work.
static void fit(const char *devices, const char *strategy, size_t memory, const char *message)
{
    char text[1024];
    snprintf(text, sizeof(text), job, devices, strategy);
    job_built b = job_build_ok(text);
    b.ctx->top.host_memory = memory;
    tt_fit_opts o = *b.parts.fit;
    o.opts_size = sizeof(o);
    tt_status st = tt_fit_with(b.parts.model, b.parts.train, &o);
    if (message[0] == '\0') {
        ck_assert_msg(st == TT_OK, "%s", tt_last_error(b.ctx).message);
    } else {
        CHECK_INT(st, TT_ELIMIT);
        CHECK_MESSAGE(b.ctx, message);
        b.status = st;
    }
    job_close(&b);
}

TEST(a_fit_that_exceeds_the_machine_is_refused)
{
    fit("cpu:0", "single", 0, ""); // not known
    fit("cpu:0", "single", 64 << 20, "");
    fit("cpu:0", "single", 2 << 20, "of memory that this machine has; a limit per device");
    fit("cpu:0", "single", 2 << 20, "dense_1.weight f32 [784, 500] variable");
    fit("cpu:0@64MiB", "single", 2 << 20, ""); // a limit of one's own is meant
    fit("cpu:0@2MiB", "single", 64 << 20, "more than its limit of 2.0 MiB");
    // Two devices share the machine: what each needs would fit.
    fit("cpu:0*2", "mirrored", 9 << 20, "cpu:0, cpu:1: this plan needs ");
    fit("cpu:0*2", "mirrored", 64 << 20, "");
}

TEST(a_plan_of_a_graph_that_exceeds_the_machine_is_refused)
{
    tt_ctx *ctx = test_ctx();
    static float data[4 * 4096], y[4];
    ctx->top.host_memory = 1 << 10;
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *x = tt_feed(g, .shape = TT_SHAPE(TT_BATCH, 4096));
    tt_tensor *sum = tt_sum(g, tt_softmax(g, x), .axis = 1);
    tt_feed_value feed = {x, data, TT_SHAPE(4, 4096), TT_F32};
    tt_fetch fetch = {sum, y, sizeof(y)};
    CHECK(tt_run(tt_session_new(g), .feeds = &feed, .n_feeds = 1, .fetches = &fetch,
                 .n_fetches = 1) == TT_ELIMIT);
    CHECK_MESSAGE(ctx, "more than the 1.0 KiB (1024 bytes) of memory that this machine has");
    CHECK(tt_close(ctx) == TT_ELIMIT);
}

// No machine has the 4 TiB of one of these weights.
static const char huge[] = "name: huge\n"
                           "data: {train: {digits: {count: 64}}}\n"
                           "model: [flatten, dense: 1000000, dense: 1000000, dense: 10]\n"
                           "train: {batch: 8, loss: cross_entropy, optimizer: adam}\n";

TEST(a_job_that_exceeds_the_machine_is_refused_by_every_verb)
{
    static const char *const lines[] = {"train huge.yaml --dry-run",
                                        "train huge.yaml",
                                        "train huge.yaml --dry-run --json",
                                        "plan huge.yaml",
                                        "bench huge.yaml --steps 1",
                                        "train huge.yaml --devices cpu:0*2 --strategy mirrored"};
    test_need_yaml();
    command_write("huge.yaml", huge);
    for (int i = 0; i < 6; i++) {
        int code = command_run(lines[i]);
        ck_assert_msg(code == 3, "%s: exit code %d: %s", lines[i], code, command_err);
        CHECK_HAS(command_err, "this plan needs ");
        CHECK_HAS(command_err, "replaces that");
        CHECK_STR(command_out, "");
        CHECK(!command_left("runs"));
    }
    command_ok("train huge.yaml --dry-run --quiet --devices cpu:0@99999GiB"); // one's own word
    CHECK_INT(command_run("train huge.yaml --dry-run --quiet --devices cpu:0@99GiB"), 3);
    CHECK_HAS(command_err, "more than its limit of 99.0 GiB");
}
