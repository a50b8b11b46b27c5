/*
 * child.c - runs another program and waits for it (child.h).
 */
#include "cli/child.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

const char *cli_self(char path[TTI_PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", path, TTI_PATH_MAX - 1);
    snprintf(path + (n > 0 ? n : 0), (size_t)(TTI_PATH_MAX - (n > 0 ? n : 0)), "%s",
             n > 0 ? "" : "tutti");
    return path;
}

// In the child: nothing but calls that are safe after fork().
static void become(const cli_child *c, int out, int log, int null)
{
    dup2(null, STDIN_FILENO);
    dup2(log >= 0 ? log : out >= 0 ? out : null, STDOUT_FILENO);
    dup2(log >= 0 ? log : null, STDERR_FILENO);
    signal(SIGPIPE, SIG_DFL);
    if (c->folder != NULL && chdir(c->folder) != 0)
        _exit(127);
    execvp(c->words[0], (char *const *)c->words);
    _exit(127);
}

// Reads until the end, or until it is too late; false then.
static bool read_all(const cli_child *c, int fd, int64_t begin)
{
    char part[4096];
    for (;;) {
        int64_t left = c->timeout_ms - (tti_now_ns() - begin) / 1000000;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, c->timeout_ms == 0 ? -1 : left > 0 ? (int)left : 0);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        ssize_t n = read(fd, part, sizeof(part));
        if (n <= 0)
            return true;
        if (c->out != NULL)
            tti_text_put(c->out, part, (size_t)n);
    }
}

int cli_child_run(const cli_child *c)
{
    int pipes[2] = {-1, -1}, state = 0, rc = -1;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int log = c->log != NULL ? open(c->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    int64_t begin = tti_now_ns();
    if (null < 0 || pipe2(pipes, O_CLOEXEC) != 0)
        goto close_files;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        become(c, c->out != NULL ? pipes[1] : -1, log, null);
    if (pid < 0)
        goto close_files;
    close(pipes[1]);
    pipes[1] = -1;
    // Without a reader of its output the pipe only says that it has ended.
    bool is_late = (c->out != NULL || c->timeout_ms > 0) && !read_all(c, pipes[0], begin);
    if (is_late)
        kill(pid, SIGKILL);
    while (waitpid(pid, &state, 0) < 0 && errno == EINTR)
        continue;
    rc = is_late ? -1 : WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);

close_files:
    for (int i = 0; i < 2; i++)
        if (pipes[i] >= 0)
            close(pipes[i]);
    if (log >= 0)
        close(log);
    if (null >= 0)
        close(null);
    return rc;
}
