/*
 * secrets.c - a job's secret is not in what a core dump of its processes would hold: all memory
 * that they can write to, but for what is marked to be left out.
 */
#include "../ranks.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIGITS "a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9a"
#define LONG   "train small.yaml --strategy mirrored --quiet --set train.epochs=100000"

// A sanitizer keeps copies of what it looks at, and of the environment.
static void need(void)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    test_skip("a sanitizer keeps copies of its own");
#endif
    ranks_need();
    command_write("small.yaml", command_small_job);
}

typedef struct needle {
    const char *name;
    unsigned char bytes[64];
    size_t n;
} needle;

// The secret as text and as bytes, also as HMAC pads its key.
static int make_needles(const char *hex, needle *out)
{
    static const int masks[] = {0, 0x36, 0x5c};
    out[0] = (needle){.name = "text", .n = 64};
    memcpy(out[0].bytes, hex, 64);
    for (int m = 0; m < 3; m++) {
        out[1 + m] = (needle){.name = m == 0 ? "bytes" : "key of HMAC", .n = 32};
        for (size_t i = 0; i < 32; i++) {
            unsigned v = 0;
            CHECK(sscanf(hex + 2 * i, "%2x", &v) == 1);
            out[1 + m].bytes[i] = (unsigned char)(v ^ (unsigned)masks[m]);
        }
    }
    return 4;
}

static void look(int mem, pid_t pid, unsigned long begin, unsigned long end, const char *line,
                 const needle *all, int n)
{
    static char room[1 << 20];
    for (unsigned long at = begin; at < end;) {
        size_t want = end - at < sizeof(room) ? end - at : sizeof(room);
        ssize_t got = pread(mem, room, want, (off_t)at);
        if (got <= 0)
            return;
        for (int i = 0; i < n; i++) {
            const char *found = memmem(room, (size_t)got, all[i].bytes, all[i].n);
            ck_assert_msg(found == NULL, "the secret (%s) of process %d is at %lx of %s",
                          all[i].name, (int)pid, at + (unsigned long)(found - room), line);
        }
        at += (size_t)got == want && end - at > want ? want - 64 : (size_t)got;
    }
}

// Fails the test where one of them is in memory of the process that a core dump takes.
static void search(pid_t pid, const char *hex)
{
    char path[64], line[600], head[600] = "";
    unsigned long begin = 0, end = 0;
    needle all[4];
    int n = make_needles(hex, all), maps = 0;
    snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid);
    FILE *f = fopen(path, "r");
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
    int mem = open(path, O_RDONLY | O_CLOEXEC);
    if (f == NULL || mem < 0)
        test_skip("the memory of another process cannot be read here");
    while (fgets(line, sizeof(line), f) != NULL) {
        unsigned long a, b;
        char mode[5];
        if (sscanf(line, "%lx-%lx %4s", &a, &b, mode) == 3) {
            begin = a;
            end = mode[0] == 'r' && mode[1] == 'w' ? b : a;
            snprintf(head, sizeof(head), "%s", line);
        }
        if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " dd") == NULL && end > begin) {
            look(mem, pid, begin, end, head, all, n);
            maps++;
        }
    }
    fclose(f);
    close(mem);
    CHECK(maps > 3);
}

static void wait_for_step(const char *run)
{
    char name[64];
    double deadline = ranks_now() + 20;
    snprintf(name, sizeof(name), "%s/events.jsonl", run);
    do {
        usleep(10000);
        command_read(name, command_out, sizeof(command_out));
    } while (strstr(command_out, "\"step\": ") == NULL && ranks_now() < deadline);
    CHECK_HAS(command_out, "\"step\": ");
}

static void search_ranks(const char *secret, const char *transport)
{
    static ranks r;
    char tasks[64], rank[2][32];
    int port[2] = {ranks_port(), ranks_port()};
    r = (ranks){.n = 0};
    snprintf(tasks, sizeof(tasks), "TUTTI_TASKS=127.0.0.1:%d,127.0.0.1:%d", port[0], port[1]);
    for (int i = 0; i < 2; i++) {
        snprintf(rank[i], sizeof(rank[i]), "TUTTI_RANK=%d", i);
        ranks_start(&r, LONG " --run a",
                    (const char *const[]){tasks, rank[i], secret, transport, NULL});
    }
    wait_for_step("a");
    for (int i = 0; i < 2; i++)
        search(r.pid[i], DIGITS);
    for (int i = 0; i < 2; i++)
        kill(r.pid[i], SIGKILL);
    ranks_join(&r, 10);
    CHECK(system("rm -rf a") == 0);
}

TEST(secrets_of_ranks_are_in_no_core_dump)
{
    char path[400];
    need();
    command_write("secret", DIGITS "\n");
    snprintf(path, sizeof(path), "%s/secret", test_folder());
    CHECK(chmod(path, 0600) == 0 && chdir(test_folder()) == 0);
    search_ranks("TUTTI_SECRET_FILE=secret", "TUTTI_TRANSPORT=wire");
    search_ranks("TUTTI_SECRET=" DIGITS, "TUTTI_ENCRYPTION=off");
}

// By a command in place of ssh, which writes the secret down as it passes it on.
TEST(secrets_of_launchers_are_in_no_core_dump)
{
    char path[400], hex[256];
    need();
    command_write("shell", "#!/bin/bash\nread -r line\necho \"$line\" >seen.$$\n"
                           "exec bash -c \"$2\" < <(echo \"$line\"; exec cat)\n");
    snprintf(path, sizeof(path), "%s/shell", test_folder());
    CHECK(chmod(path, 0700) == 0);
    pid_t child[2], pid = ranks_launch("run -H 127.0.0.1:2 --ssh ./shell small.yaml --run a "
                                       "--strategy mirrored --quiet --set train.epochs=100000",
                                       "a", 1, child, 2);
    snprintf(path, sizeof(path), "seen.%d", (int)child[0]);
    command_read(path, hex, sizeof(hex));
    CHECK_INT(strcspn(hex, "\n"), 64);
    search(pid, hex);
    for (int i = 0; i < 2; i++) // which the shells have become
        search(child[i], hex);
    CHECK(kill(pid, SIGTERM) == 0);
    CHECK_INT(command_wait(pid), 85);
    ranks_nothing_left();
}
