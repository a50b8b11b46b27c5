/*
 * stranger.c - a program that is not of the job and tries to speak as one of its ranks. It knows
 * all that is public: addresses, number of ranks, the user's number, and the source. The job was
 * started without a secret, by the environment, on one machine.
 */
#include "../ranks.h"
#include "net/keys.h"
#include "net/world_own.h"
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS "words of a stranger"

static void ignore(void *user, int from, const void *message, size_t bytes)
{
    (void)user, (void)from, (void)message, (void)bytes;
}

// Says as rank 1, for some seconds, that rank 0 is refused; bind is where it listens itself.
static void speak_as_rank_1(const unsigned char key[TT_SECRET_BYTES], const char *bind,
                            const char *address, int seconds)
{
    tt_ctx *ctx = tt_open(.threads = 1, .on_event = test_ignore_event);
    tti_wire *wire = NULL;
    tti_control_message note = {.magic = TTI_WIRE_MAGIC, .kind = TTI_REFUSED, .text = WORDS};
    tti_wire_calls calls = {ignore, ignore, NULL};
    if (tti_wire_open(ctx, &(tti_wire_opts){.n = 2, .self = 1, .bind = bind, .secret = key},
                      &wire) != TT_OK ||
        tti_wire_connect(wire, 0, address) != TT_OK)
        _exit(1);
    for (int i = 0; i < 50 * seconds; i++) {
        tti_wire_tell(wire, 0, &note, sizeof(note));
        tti_wire_serve(wire, 20, &calls);
    }
    bool is_in = tti_wire_state_of(wire, 0) == TTI_WIRE_READY;
    tti_wire_close(wire, 0);
    (void)tt_close(ctx);
    _exit(is_in ? 42 : 0);
}

// Keys that anybody can make: what jobs without a secret have used, and some that are no keys.
static void public_key(int which, unsigned char key[TT_SECRET_BYTES])
{
    char text[64] = "";
    memset(key, 0, TT_SECRET_BYTES);
    if (which == 0)
        snprintf(text, sizeof(text), "tutti loopback %u", (unsigned)getuid());
    else if (which == 1)
        snprintf(text, sizeof(text), "tutti");
    else
        return; // all zero
    tti_digest d = tti_sha256(text, strlen(text));
    memcpy(key, d.byte, TT_SECRET_BYTES);
}

static void wait_for(pid_t pid, int code)
{
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == code,
                  "the stranger ended with %x; 42 is: it was let in", status);
}

TEST(a_stranger_on_this_machine_cannot_speak)
{
    ranks_need();
    command_write("small.yaml", command_small_job);
    for (int which = 0; which < 3; which++) {
        static ranks r;
        static char text[3][64];
        char address[32], own[32];
        unsigned char key[TT_SECRET_BYTES];
        int port[2] = {ranks_port(), ranks_port()};
        r = (ranks){.n = 0};
        snprintf(text[0], 64, "TUTTI_TASKS=127.0.0.1:%d,127.0.0.1:%d", port[0], port[1]);
        snprintf(text[1], 64, "TUTTI_RANK=0");
        snprintf(text[2], 64, "TUTTI_RENDEZVOUS_MS=1500");
        ranks_start(&r, "train small.yaml", (const char *const[]){text[0], text[1], text[2], NULL});
        public_key(which, key);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            snprintf(address, sizeof(address), "127.0.0.1:%d", port[0]);
            snprintf(own, sizeof(own), "127.0.0.1:%d", port[1]);
            speak_as_rank_1(key, own, address, 2);
        }
        wait_for(pid, 0);
        ranks_join(&r, 20);
        ck_assert_msg(strstr(r.err[0], WORDS) == NULL, "it has spoken: %s", r.err[0]);
        CHECK_INT(r.code[0], 76);
        CHECK_HAS(r.err[0], "rank 1 (/job:worker/task:1)");
    }
}

// ---- from another machine --------------------------------------------------------------------

static bool shell(const char *line)
{
    int rc = system(line);
    return rc != -1 && WIFEXITED(rc) && WEXITSTATUS(rc) == 0;
}

// A machine of its own, joined by a cable to the one of the test; ready writes when it is there.
static void other_machine(int ready, const unsigned char *key, const char *address)
{
    char line[160], go;
    if (unshare(CLONE_NEWNET) != 0 || write(ready, "u", 1) != 1 || read(ready, &go, 1) != 1)
        _exit(2);
    snprintf(line, sizeof(line),
             "ip addr add 10.79.0.2/24 dev there && ip link set there up && ip link set lo up");
    if (!shell(line) || write(ready, "r", 1) != 1 || read(ready, &go, 1) != 1)
        _exit(2);
    speak_as_rank_1(key, "10.79.0.2:4001", address, 2);
}

// Rank 0 listens at all of its machine's addresses; what it ends with.
static void rank_0_for_all(ranks *r, const char *secret)
{
    const char *env[] = {"TUTTI_TASKS=127.0.0.1:4000,127.0.0.1:4001",
                         "TUTTI_RANK=0",
                         "TUTTI_RENDEZVOUS_MS=1500",
                         "TUTTI_BIND=0.0.0.0",
                         secret,
                         NULL};
    *r = (ranks){.n = 0};
    ranks_start(r, "train small.yaml", env);
}

static bool connect_machines(pid_t other)
{
    char line[200];
    (void)shell("ip link del here 2>/dev/null"); // of the machine before
    snprintf(line, sizeof(line),
             "ip link set lo up && ip link add here type veth peer name there netns %d && ip addr "
             "add 10.79.0.1/24 dev here && ip link set here up",
             (int)other);
    return shell(line);
}

TEST(a_stranger_on_another_machine_cannot_speak)
{
    static ranks r;
    int ends[2];
    unsigned char key[TT_SECRET_BYTES];
    char byte;
    ranks_need();
    if (geteuid() != 0 || !shell("command -v ip >/dev/null") || unshare(CLONE_NEWNET) != 0)
        test_skip("network namespaces need root and ip");
    command_write("small.yaml", command_small_job);
    for (int has_secret = 0; has_secret < 2; has_secret++) {
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
        public_key(0, key);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
            other_machine(ends[1], key, "10.79.0.1:4000");
        CHECK(read(ends[0], &byte, 1) == 1);
        if (!connect_machines(pid)) {
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            test_skip("veth links cannot be made here");
        }
        CHECK(write(ends[0], "g", 1) == 1 && read(ends[0], &byte, 1) == 1);
        rank_0_for_all(&r, has_secret ? "TUTTI_SECRET=00112233445566778899aabbccddeeff0011223344556"
                                        "6778899aabbccddeeff"
                                      : NULL);
        CHECK(write(ends[0], "g", 1) == 1);
        wait_for(pid, 0); // its end of the cable goes with it
        ranks_join(&r, 20);
        ck_assert_msg(strstr(r.err[0], WORDS) == NULL, "it has spoken: %s", r.err[0]);
        CHECK_INT(r.code[0], has_secret ? 76 : 3);
        if (!has_secret)
            CHECK_HAS(r.err[0], "TUTTI_BIND=0.0.0.0");
        close(ends[0]);
        close(ends[1]);
    }
}
