/*
 * cli_line.c - the living line of training, on a terminal of any width.
 */
#include "../command.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

// Runs a line with standard output on a terminal of this width; command_out is what it got.
static int run_on_terminal(const char *line, int width)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        test_skip("no pseudo-terminals");
    char name[128], shell[1200];
    CHECK(ptsname_r(master, name, sizeof(name)) == 0);
    CHECK(ioctl(master, TIOCSWINSZ, &(struct winsize){24, (unsigned short)width, 0, 0}) == 0);
    int slave = open(name, O_RDWR | O_NOCTTY); // keeps it open until all is read
    CHECK(slave >= 0);
    snprintf(shell, sizeof(shell), "cd %s && TERM=xterm exec %s %s > %s 2> err", test_folder(),
             command_path(), line, name);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", shell, (char *)NULL);
        _exit(127);
    }
    size_t n = 0;
    int status = 0;
    fcntl(master, F_SETFL, O_NONBLOCK);
    for (bool ended = false; n < sizeof(command_out) - 1;) {
        ssize_t r = read(master, command_out + n, sizeof(command_out) - 1 - n);
        if (r > 0) {
            n += (size_t)r;
            continue;
        }
        if (ended)
            break;
        ended = waitpid(pid, &status, WNOHANG) == pid;
        usleep(1000);
    }
    command_out[n] = '\0';
    close(slave);
    close(master);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Every text that is drawn over (between a carriage return and the escape) is within the width.
static int check_drawn(int width)
{
    int drawn = 0;
    for (const char *s = command_out; (s = strchr(s, '\r')) != NULL;) {
        s++;
        const char *end = strstr(s, "\033[K");
        size_t n = end != NULL ? (size_t)(end - s) : 0;
        if (end == NULL || memchr(s, '\n', n) != NULL)
            continue; // the end of a permanent line
        ck_assert_msg((int)n < width, "%d columns: '%.*s'", width, (int)n, s);
        drawn += n > 0;
    }
    return drawn;
}

TEST(the_living_line_fits_any_terminal)
{
    static const int widths[] = {1, 2, 12, 30, 50, 80, 200};
    command_write("small.yaml", command_small_job);
    for (int i = 0; i < 7; i++) {
        CHECK_INT(run_on_terminal("train small.yaml --set train.epochs=2", widths[i]), 0);
        int drawn = check_drawn(widths[i]);
        CHECK(widths[i] < 2 || drawn >= 1);
        CHECK_HAS(command_out, "epoch 2/2  loss ");
        if (widths[i] >= 80)
            CHECK_HAS(command_out, "epoch 1/2  [");
        if (widths[i] == 12)
            CHECK_HAS(command_out, "\repoch 1/2\033[K");
    }
}
