/*
 * mistakes.c - typical mistakes with several processes, as a table: the answer names the rank or
 * host, and the remedy. (Processes that die or hang: launch_fault.c, launch_env.c.)
 */
#include "../mistakes.h"
#include "../ranks.h"
#include "base/base.h"
#include <stdio.h>
#include <stdlib.h>

#define REACH    "printf '#!/bin/sh\\nexec sh -c \"$2\"\\n' > reach; chmod +x reach"
#define PORTS    "127.0.0.1:$P,127.0.0.1:$Q"
#define AS(rank) "TUTTI_SECRET_FILE=key TUTTI_TASKS=" PORTS " TUTTI_RANK=" #rank " "
#define KEY      "$TUTTI key new key"

static const mistake rows[] = {
    {"ssh with a wrong folder", "$TUTTI run -H 127.0.0.1:2 --ssh ./reach --dir /nowhere $J", 1,
     "rank 0 on 127.0.0.1: cannot enter the folder '/nowhere'", "--dir gives the working directory",
     REACH},
    {"ssh with a wrong command", "$TUTTI run -H 127.0.0.1:2 --ssh ./reach --command ttui $J", 1,
     "rank 0 on 127.0.0.1: cannot find the command 'ttui'", "--command gives the path of tutti",
     REACH},
    {"a host that cannot be reached", "$TUTTI run -H 127.0.0.1:2 --ssh ./gone $J", 1,
     ": cannot reach host 127.0.0.1", "./gone exited with code 255",
     "printf '#!/bin/sh\\nexit 255\\n' > gone; chmod +x gone"},
    {"neither -n nor -H", "$TUTTI run $J", 2, "tutti run needs one of -n N, -H HOSTS and --hosts",
     NULL, NULL},
    {"a rank that is not started",
     AS(0) "$TUTTI train $J --set distribute.deadline_ms=1000 --strategy mirrored", 76, "rank 1 ",
     "127.0.0.1:", KEY},
    {"another job on a rank",
     AS(1) "$TUTTI train $J --strategy mirrored --batch 64 2>/dev/null >&2 & " AS(
         0) "$TUTTI train $J --strategy mirrored",
     3, "rank 1 (/job:worker/task:1", "its line is '  batch: 64', on rank 0 it is '  batch: 32'",
     KEY},
    {"a port that another program has",
     AS(1) "$TUTTI train $J --strategy mirrored >one 2>&1 & p=$!; while ! grep -q \":$X "
           "00000000:0000 0A\" /proc/net/tcp && kill -0 $p; do sleep 0.02; done; " AS(
               1) "$TUTTI train $J --strategy mirrored; c=$?; kill $p; wait $p; exit $c",
     1, "cannot listen at 127.0.0.1:", "a port in a hosts file is Tutti's, not that of ssh", KEY},
};

TEST(mistakes_with_several_processes)
{
    char hex[16], port[16];
    ranks_need();
    int p = ranks_port(), q = ranks_port();
    snprintf(port, sizeof(port), "%d", p);
    setenv("P", port, 1);
    snprintf(port, sizeof(port), "%d", q);
    setenv("Q", port, 1);
    snprintf(hex, sizeof(hex), "%04X", q);
    setenv("X", hex, 1);
    mistakes_make(rows, TTI_COUNT(rows));
    ranks_nothing_left();
}
