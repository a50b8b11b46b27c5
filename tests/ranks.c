/*
 * ranks.c - the command in several processes (ranks.h).
 */
#include "ranks.h"
#include "cluster/cluster.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double ranks_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void ranks_need(void)
{
    if (strstr(tt_version_text(), "zeromq: yes") == NULL)
        test_skip("this build has no ZeroMQ");
    for (const char *const *v = tti_cluster_variables; *v != NULL; v++)
        unsetenv(*v);
    (void)command_path();
}

int ranks_port(void)
{
    int fd = -1, port = tti_port_hold("127.0.0.1", &fd);
    CHECK(port > 0);
    close(fd);
    return port;
}

static void become(int i, const char *line, const char *const *env)
{
    char words[2048], name[16], *argv[64] = {(char *)command_path()};
    int argc = 1;
    snprintf(words, sizeof(words), "%s", line);
    for (char *w = strtok(words, " "); w != NULL && argc < 63; w = strtok(NULL, " "))
        argv[argc++] = w;
    for (; env != NULL && *env != NULL; env++)
        putenv((char *)*env);
    if (chdir(test_folder()) != 0)
        _exit(99);
    int in = open("/dev/null", O_RDONLY);
    snprintf(name, sizeof(name), "out.%d", i);
    int out = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    snprintf(name, sizeof(name), "err.%d", i);
    int err = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
        _exit(99);
    execv(argv[0], argv);
    _exit(99);
}

void ranks_start(ranks *r, const char *line, const char *const *env)
{
    CHECK(r->n < RANKS_MOST);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        become(r->n, line, env);
    r->pid[r->n++] = pid;
}

void ranks_join(ranks *r, double seconds)
{
    double begin = ranks_now();
    int late = 0;
    for (int i = 0; i < r->n; i++) {
        int status = 0;
        pid_t got = 0;
        char name[16];
        while ((got = waitpid(r->pid[i], &status, WNOHANG)) == 0 && ranks_now() < begin + seconds)
            usleep(2000);
        if (got == 0) {
            late++;
            kill(r->pid[i], SIGKILL);
            waitpid(r->pid[i], &status, 0);
        }
        r->code[i] = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
        snprintf(name, sizeof(name), "out.%d", i);
        command_read(name, r->out[i], sizeof(r->out[i]));
        snprintf(name, sizeof(name), "err.%d", i);
        command_read(name, r->err[i], sizeof(r->err[i]));
    }
    r->seconds = ranks_now() - begin;
    ck_assert_msg(late == 0, "%d of %d did not end within %g s: %s", late, r->n, seconds,
                  r->err[0]);
    ranks_nothing_left();
}

static int processes_here(void)
{
    int n = 0;
    DIR *d = opendir("/proc");
    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[300], cwd[400], here[400];
        if (e->d_name[0] < '0' || e->d_name[0] > '9' || atoi(e->d_name) == getpid())
            continue;
        snprintf(path, sizeof(path), "/proc/%s/cwd", e->d_name);
        ssize_t length = readlink(path, cwd, sizeof(cwd) - 1);
        if (length <= 0 || realpath(test_folder(), here) == NULL)
            continue;
        cwd[length] = '\0';
        n += strcmp(cwd, here) == 0;
    }
    closedir(d);
    return n;
}

void ranks_nothing_left(void)
{
    double deadline = ranks_now() + 5; // one that was killed may take a moment
    while (processes_here() > 0 && ranks_now() < deadline)
        usleep(5000);
    CHECK_INT(processes_here(), 0);
    DIR *d = opendir("/dev/shm");
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        CHECK(strstr(e->d_name, "tutti") == NULL);
    if (d != NULL)
        closedir(d);
}

// Children of a process in the order in which they were started.
static int children_of(pid_t pid, pid_t *out, int most)
{
    char path[64], text[1024] = "";
    int n = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(path, "r");
    if (f != NULL && fgets(text, sizeof(text), f) == NULL)
        text[0] = '\0';
    if (f != NULL)
        fclose(f);
    for (char *w = strtok(text, " "); w != NULL && n < most; w = strtok(NULL, " "))
        out[n++] = (pid_t)atoi(w);
    return n;
}

// The last step in the run's events behind so many bytes of them, which a run before has written.
static int64_t steps_of(const char *run, size_t behind)
{
    static char text[1 << 20];
    char name[300];
    int64_t step = 0;
    snprintf(name, sizeof(name), "%s/events.jsonl", run);
    command_read(name, text, sizeof(text));
    if (strlen(text) < behind)
        return 0;
    for (const char *at = text + behind; (at = strstr(at, "\"step\": ")) != NULL; at++)
        step = atoll(at + 8);
    return step;
}

static size_t size_of(const char *run)
{
    char path[700];
    struct stat s;
    snprintf(path, sizeof(path), "%s/%s/events.jsonl", test_folder(), run);
    return stat(path, &s) == 0 ? (size_t)s.st_size : 0;
}

pid_t ranks_launch(const char *line, const char *run, int64_t steps, pid_t *child, int n)
{
    double deadline = ranks_now() + 20;
    size_t behind = size_of(run);
    pid_t pid = command_start(line);
    int found = 0, status;
    while (ranks_now() < deadline && (found < n || steps_of(run, behind) < steps)) {
        siginfo_t info = {.si_pid = 0};
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid)
            return pid; // it has come to its end before
        if (found < n)
            found = children_of(pid, child, n);
        usleep(2000);
    }
    if (ranks_now() < deadline)
        return pid;
    command_read("err", command_err, sizeof(command_err));
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    ck_abort_msg("%d of %d children after step %lld: %s", found, n,
                 (long long)steps_of(run, behind), command_err);
    return pid;
}
