/*
 * cli_threads.c - a system that gives no threads is nobody's mistake: the code is 1.
 */
#include "../command.h"
#include "base/base.h"
#include <sys/resource.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true // they need more addresses than are given here
#else
#define IS_SANITIZED false
#endif

TEST(threads_that_cannot_be_started_end_with_code_1)
{
    static const char *const lines[] = {"train small.yaml", "train small.yaml --devices cpu:0*2",
                                        "devices --devices cpu:0*2", "summary small.yaml"};
    if (IS_SANITIZED)
        test_skip("sanitizers need more addresses than the test leaves");
    command_write("small.yaml", command_small_job);
    // Stacks of threads are as large as this says, and there is no room for one.
    struct rlimit stack, room;
    CHECK(getrlimit(RLIMIT_STACK, &stack) == 0 && getrlimit(RLIMIT_AS, &room) == 0);
    stack.rlim_cur = (rlim_t)16 << 30;
    room.rlim_cur = (rlim_t)8 << 30;
    if (setrlimit(RLIMIT_STACK, &stack) != 0 || setrlimit(RLIMIT_AS, &room) != 0)
        test_skip("the limits cannot be set");
    for (int i = 0; i < TTI_COUNT(lines); i++) {
        int code = command_run(lines[i]);
        ck_assert_msg(code == 1, "%s: exit code %d: %s", lines[i], code, command_err);
        CHECK_HAS(command_err, "cannot start thread '");
    }
}
