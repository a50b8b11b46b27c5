/*
 * launch.c - tutti run with real processes: the bits and the files of one process, one progress
 * line, a log of each rank, hosts reached by a command, options that differ by process.
 */
#include "../ranks.h"
#include "base/base.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void same_file(const char *a, const char *b)
{
    static char x[1 << 18], y[1 << 18];
    char path[500];
    size_t n[2];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%s", test_folder(), i == 0 ? a : b);
        FILE *f = fopen(path, "rb");
        ck_assert_msg(f != NULL, "%s is not there", path);
        n[i] = fread(i == 0 ? x : y, 1, sizeof(x), f);
        fclose(f);
    }
    ck_assert_msg(n[0] == n[1] && n[0] > 0 && memcmp(x, y, n[0]) == 0, "%s and %s differ", a, b);
}

TEST(run_gives_the_bits_and_files_of_one_process)
{
    static const char *const files[] = {"weights.safetensors", "optimizer.safetensors",
                                        "manifest.json"};
    char hash[64], same[64], line[256], a[256], b[256];
    ranks_need();
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --json --run one");
    command_hash(command_out, hash);
    for (int n = 1; n <= 4; n++) {
        snprintf(line, sizeof(line), "run -n %d small.yaml --strategy mirrored --json --run n%d", n,
                 n);
        command_ok(line);
        ranks_nothing_left();
        command_hash(command_out, same);
        CHECK_STR(same, hash);
        CHECK_STR(command_err, "");
        CHECK_INT(command_count(command_out, "\"event\": \"epoch\""), 3);
        CHECK_INT(command_count(command_out, "\"event\": \"ranks\""), n > 1);
        CHECK_INT(command_count(command_out, "\"transport\": \"shm\""), n * (n - 1) / 2);
        for (int f = 0; f < 3; f++) {
            snprintf(a, sizeof(a), "one/checkpoints/step-30/%s", files[f]);
            snprintf(b, sizeof(b), "n%d/checkpoints/step-30/%s", n, files[f]);
            same_file(a, b);
        }
        for (int i = 0; n > 1 && i <= n; i++) {
            snprintf(a, sizeof(a), "n%d/logs/rank-%d.log", n, i);
            CHECK(command_left(a) == (i < n));
        }
    }
    CHECK_INT(command_run("run -n 2 small.yaml --quiet --run n2"), 1);
    CHECK_HAS(command_err, "'n2' already holds a run; add --resume to continue it\n");
    CHECK_INT(command_count(command_err, "holds a run"), 1);
    command_read("n3/logs/rank-2.log", command_out, sizeof(command_out));
    CHECK_HAS(command_out, " open rank 2, process ");
    CHECK_HAS(command_out, " end {\"event\": \"end\", ");
}

// A pipe that got the number of a closed standard file would be closed in the child.
TEST(run_works_with_standard_files_closed)
{
    static const char *const closed[] = {"<&-", "</dev/null 2>&-", "<&- 2>&-"};
    char line[128];
    ranks_need();
    command_write("small.yaml", command_small_job);
    for (int i = 0; i < 3; i++) {
        snprintf(line, sizeof(line), "$TUTTI run -n 2 small.yaml --strategy mirrored %s",
                 closed[i]);
        int code = command_shell(line);
        ck_assert_msg(code == 0, "%s: exit code %d: %s", closed[i], code, command_err);
        CHECK_HAS(command_out, "epoch 3/3");
        ranks_nothing_left();
    }
}

TEST(run_has_the_hashes_of_one_process)
{
    ranks_need();
    command_write("small.yaml", command_small_job);
    command_ok("train small.yaml --quiet --run one --hashes a");
    command_ok("run -n 3 small.yaml --strategy mirrored --quiet --run n3 --hashes b");
    command_ok("diff a b");
    command_ok("run -n 2 small.yaml --strategy pipeline --quiet --run pipe --trace 3");
    CHECK(command_left("pipe/trace.json"));
    command_ok("run -n 2 small.yaml --strategy mirrored --dry-run");
    CHECK_INT(command_count(command_out, "2 processes\n"), 1);
    ranks_nothing_left();
}

TEST(run_tells_ranks_and_links)
{
    ranks_need();
    command_write("small.yaml", command_small_job);
    setenv("TUTTI_TRANSPORT", "wire", 1);
    command_ok("run -n 2 small.yaml --devices cpu:0*2;cpu:0 --strategy mirrored");
    unsetenv("TUTTI_TRANSPORT");
    CHECK_HAS(command_out, "2 processes\n");
    CHECK_HAS(command_out, "/job:worker/task:1 ");
    CHECK_HAS(command_out, "  cpu:0*2\n");
    CHECK_HAS(command_out, "\n  0-1       wire ");
    CHECK_INT(command_count(command_out, "epoch 3/3"), 1);
    ranks_nothing_left();
}

TEST(run_starts_many_processes_on_few_cores)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    test_skip("a sanitizer makes each of them ten times as slow");
#endif
    ranks_need();
    command_write("small.yaml", command_small_job);
    command_ok("run -n 48 small.yaml --dry-run --quiet --devices cpu:0");
    ranks_nothing_left();
}

// A command that reaches hosts runs the words of its last argument, as ssh does.
TEST(run_reaches_hosts_by_a_command)
{
    char hash[64], same[64], path[400], seen[4096];
    ranks_need();
    command_write("small.yaml", command_small_job);
    command_write("reach", "#!/bin/sh\necho \"$@\" >>reached\nexec sh -c \"$2\"\n");
    snprintf(path, sizeof(path), "%s/reach", test_folder());
    CHECK(chmod(path, 0700) == 0);
    command_ok("train small.yaml --json --run one");
    command_hash(command_out, hash);
    command_ok("run -H 127.0.0.1:2 --ssh ./reach small.yaml --strategy mirrored --json");
    command_hash(command_out, same);
    CHECK_STR(same, hash);
    ranks_nothing_left();
    command_read("reached", seen, sizeof(seen));
    CHECK_INT(command_count(seen, "127.0.0.1 exec sh -c 'cd "), 2);
    CHECK_HAS(seen, "TUTTI_RANK=1");
    CHECK_HAS(seen, "TUTTI_SECRET_FILE=-");
    command_write("hosts", "127.0.0.1 slots=2 # both here\n");
    command_ok("run --hosts hosts small.yaml --strategy mirrored --json");
    command_hash(command_out, same);
    CHECK_STR(same, hash);
    CHECK_INT(command_run("run -H 127.0.0.1:2 --ssh ./not-there small.yaml"), 1);
    CHECK_HAS(command_err, "cannot start './not-there'");
    ranks_nothing_left();
}

// A folder or command that a host lacks is told with the host and the rank, in any shell.
TEST(run_names_the_host_that_lacks_something)
{
    static const struct {
        const char *flags, *message;
    } rows[] = {
        {"--dir /nowhere", "tutti: error: rank 0 on 127.0.0.1: cannot enter the folder '/nowhere'; "
                           "--dir gives the working directory on the hosts\n"},
        {"--dir /it's", "rank 1 on 127.0.0.1: cannot enter the folder '/it's'; --dir"},
        {"--command /nowhere/tutti",
         "tutti: error: rank 0 on 127.0.0.1: cannot find the command '/nowhere/tutti'; --command "
         "gives the path of tutti on the hosts\n"},
        {"--command nowhere", "cannot find the command 'nowhere'"},
    };
    char path[400], line[200];
    ranks_need();
    command_write("small.yaml", command_small_job);
    command_write("reach", "#!/bin/sh\nexec sh -c \"$2\"\n");
    snprintf(path, sizeof(path), "%s/reach", test_folder());
    CHECK(chmod(path, 0700) == 0);
    for (int i = 0; i < 4; i++) {
        snprintf(line, sizeof(line), "run -H 127.0.0.1:2 --ssh ./reach %s small.yaml",
                 rows[i].flags);
        CHECK_INT(command_run(line), 1);
        CHECK_HAS(command_err, rows[i].message);
        CHECK(!command_left("runs"));
    }
    ranks_nothing_left();
}

// What comes from other hosts is shown without what a terminal would obey.
TEST(run_shows_words_of_other_hosts_without_control_characters)
{
    char path[400];
    ranks_need();
    command_write("small.yaml", command_small_job);
    command_write("reach", "#!/bin/sh\nprintf 'first \\303' >&2\nsleep 0.2\n" // a whole one later
                           "printf '\\251 \\033]0;owned\\007\\033[2J\\n' >&2\nexit 9\n");
    snprintf(path, sizeof(path), "%s/reach", test_folder());
    CHECK(chmod(path, 0700) == 0);
    CHECK_INT(command_run("run -H 127.0.0.1:2 --ssh ./reach small.yaml"), 9);
    CHECK_HAS(command_err, "first \303\251 \\x1b]0;owned\\x07\\x1b[2J\n");
    CHECK(strpbrk(command_err, "\033\007") == NULL);
    ranks_nothing_left();
}

// What stands behind a program is its own: flags, too.
TEST(run_starts_a_program_with_its_words)
{
    ranks_need();
    command_write("p.sh",
                  "#!/bin/sh\nread secret\n"
                  "echo rank $TUTTI_RANK of $TUTTI_LOCAL, ${#secret}: $* > rank-$TUTTI_RANK\n"
                  "cat rank-$TUTTI_RANK\n");
    CHECK_INT(command_shell("chmod +x p.sh && $TUTTI run -n 2 ./p.sh --epochs 3 -n -- x"), 0);
    CHECK_STR(command_out, "rank 0 of 0/2, 64: --epochs 3 -n -- x\n");
    command_read("rank-1", command_out, sizeof(command_out));
    CHECK_STR(command_out, "rank 1 of 1/2, 64: --epochs 3 -n -- x\n");
    CHECK_INT(command_shell("$TUTTI run -n 2 sh -c 'exit 7'"), 7);
    ranks_nothing_left();
}

// A rank that only lost another may end before it: the job has the code of the cause.
TEST(run_has_the_code_of_the_cause)
{
    static const struct {
        const char *first, *other;
        int code;
        const char *text;
    } cases[] = {
        {"76", "exit 1", 1, NULL},
        {"3", "exit 1", 3, NULL},
        {"76", "exit 76", 76, NULL},
        {"76", "exit 0", 76, NULL},
        {"76", "kill -9 $$", 76, "rank 1 was killed by signal 9"},
    };
    ranks_need();
    for (int i = 0; i < TTI_COUNT(cases); i++) {
        char line[512];
        snprintf(line, sizeof(line),
                 "rm -f first; $TUTTI run -n 2 sh -c 'if [ $TUTTI_RANK = 0 ]; then echo $$ > pid; "
                 "mv pid first; exit %s; fi; while [ ! -e first ] || kill -0 $(cat first); "
                 "do sleep 0.02; done; %s'",
                 cases[i].first, cases[i].other);
        CHECK_INT(command_shell(line), cases[i].code);
        CHECK(cases[i].text == NULL || strstr(command_err, cases[i].text) != NULL);
    }
    ranks_nothing_left();
}

TEST(run_says_what_is_wrong_with_its_words)
{
    static const struct {
        const char *line, *says;
    } bad[] = {
        {"run small.yaml", "needs one of -n N, -H HOSTS and --hosts FILE"},
        {"run -n 2 -H a small.yaml", "needs one of -n N, -H HOSTS and --hosts FILE, not several"},
        {"run -n 0 small.yaml", "--processes: 0 is not between 1 and 64"},
        {"run -n small.yaml", "'small.yaml' is not an integer"},
        {"run -n 2", "tutti run needs JOB"},
        {"run -n 2 --dir /x small.yaml", "apply to other hosts only"},
        {"run -H a:0 small.yaml", "'0' is not a number of processes from 1 to 1024"},
        {"run -H a:x,b small.yaml", "'x' is not a number of processes"},
        {"run -H a,,b small.yaml", "worker 1: address '-'"},
        {"run -H a,a small.yaml", "is already used by worker 0"},
        {"run -H a:600,b:600 small.yaml", "there are more than 1024 tasks or processes"},
        {"run -H localhost,other small.yaml", "the first host is localhost, which the other hosts"},
        {"run --hosts not-there small.yaml", "not-there"},
        {"run -n 3 --devices cpu:0;cpu:0 small.yaml",
         "lists devices for 2 processes, but there are 3"},
        {"run -n 2 --epochs 3 sh -c true", "--epochs=3 applies to job files"},
        {"run -n 2 small.yaml more.yaml", "unexpected argument 'more.yaml': 'small.yaml' is not"},
        {"train -n 2 small.yaml", "unknown flag -n"},
        {"key small", "unknown argument 'small'"},
    };
    ranks_need();
    command_write("small.yaml", command_small_job);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_msg(command_run(bad[i].line) == 2, "%s: %s", bad[i].line, command_err);
        CHECK_HAS(command_err, bad[i].says);
        CHECK_STR(command_out, "");
    }
}

TEST(keys_are_their_owners_alone)
{
    struct stat s;
    char path[400], first[256];
    command_ok("key new");
    CHECK_INT(strlen(command_out), 65);
    snprintf(first, sizeof(first), "%.200s", command_out);
    command_ok("key new secret");
    CHECK_STR(command_out, "");
    command_read("secret", command_out, sizeof(command_out));
    CHECK_INT(strlen(command_out), 65);
    CHECK(strcmp(command_out, first) != 0);
    snprintf(path, sizeof(path), "%s/secret", test_folder());
    CHECK(stat(path, &s) == 0 && (s.st_mode & 0777) == 0600);
    CHECK_INT(command_run("key new secret"), 1); // one that is there is not overwritten
    CHECK_HAS(command_err, "cannot make 'secret': File exists");
}
