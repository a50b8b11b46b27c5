/*
 * wire_files.c - descriptors that a job's connections need. ZeroMQ ends the process when it gets
 * none at some places, so it is made sure of them before.
 */
#include "net/wire.h"

#ifdef TUTTI_HAVE_ZMQ
#include "net/wire_own.h"
#include <dirent.h>
#include <sys/resource.h>

#define OF_A_RANK 14  // sockets, what watches them, connections to and from it, its process
#define OF_ALL    64  // what listens, ZeroMQ's threads, and files that are opened later
#define STRANGERS 512 // at both listeners

static int count_open(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    while (d != NULL && readdir(d) != NULL)
        n++;
    if (d != NULL)
        closedir(d);
    return n > 3 ? n - 3 : 16; // ".", ".." and the folder itself
}

tt_status tti_wire_check_files(tt_ctx *ctx, int n)
{
    struct rlimit limit;
    int open = count_open();
    rlim_t needs = (rlim_t)(open + OF_ALL + OF_A_RANK * n), likes = needs + STRANGERS;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= likes)
        return TT_OK;
    rlim_t had = limit.rlim_cur;
    limit.rlim_cur = TTI_MIN(likes, limit.rlim_max); // RLIM_INFINITY is the largest
    if (limit.rlim_cur > had)
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < needs)
        return TT_FAIL(
            ctx, TT_EIO,
            "%d processes need %llu open files in each, %d of them open now, but this "
            "process may have %llu (ulimit -n; hard limit %llu): raise the limit to %llu",
            n, (unsigned long long)needs, open, (unsigned long long)limit.rlim_cur,
            (unsigned long long)limit.rlim_max, (unsigned long long)needs);
    return TT_OK;
}

#endif
