/*
 * command.c - runs the built command as a user would.
 */
#include "command.h"
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

char command_out[1 << 20], command_err[1 << 16];

const char *command_path(void)
{
    static char path[PATH_MAX + 32];
    const char *given = getenv("TUTTI_COMMAND");
    if (given != NULL) {
        ck_assert_msg(realpath(given, path) != NULL, "TUTTI_COMMAND=%s is not there", given);
        return path;
    }
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
    for (int up = 0; up < 2 && n > 0; up++) // build/CONFIG/tests/run
        while (n > 0 && path[--n] != '/')
            ;
    snprintf(path + (n > 0 ? n : 0), 32, "/tutti");
    if (access(path, X_OK) != 0)
        test_skip("the command is not built");
    return path;
}

void command_read(const char *name, char *to, size_t room)
{
    char path[400];
    snprintf(path, sizeof(path), "%s/%s", test_folder(), name);
    int fd = open(path, O_RDONLY);
    size_t n = 0;
    for (ssize_t r; fd >= 0 && (r = read(fd, to + n, room - 1 - n)) > 0;)
        n += (size_t)r;
    to[n] = '\0';
    if (fd >= 0)
        close(fd);
}

void command_write(const char *name, const char *text)
{
    char path[400];
    snprintf(path, sizeof(path), "%s/%s", test_folder(), name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

pid_t command_start(const char *line)
{
    char words[2048], *argv[64] = {(char *)command_path()};
    int argc = 1;
    snprintf(words, sizeof(words), "%s", line);
    for (char *w = strtok(words, " "); w != NULL && argc < 63; w = strtok(NULL, " "))
        argv[argc++] = w;

    pid_t pid;
    posix_spawn_file_actions_t a;
    posix_spawn_file_actions_init(&a);
    posix_spawn_file_actions_addchdir_np(&a, test_folder());
    char in[400];
    snprintf(in, sizeof(in), "%s/in", test_folder());
    posix_spawn_file_actions_addopen(&a, 0, access(in, R_OK) == 0 ? in : "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&a, 1, "out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&a, 2, "err", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(posix_spawn(&pid, argv[0], &a, NULL, argv, environ) == 0);
    posix_spawn_file_actions_destroy(&a);
    return pid;
}

int command_wait(pid_t pid)
{
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    command_read("out", command_out, sizeof(command_out));
    command_read("err", command_err, sizeof(command_err));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int command_run(const char *line)
{
    int code = command_wait(command_start(line));
    ck_assert_msg(code >= 0, "tutti %s was killed by signal %d", line, -code);
    return code;
}

void command_ok(const char *line)
{
    int code = command_run(line);
    ck_assert_msg(code == 0, "tutti %s: exit code %d: %s", line, code, command_err);
}

int command_shell(const char *line)
{
    char whole[4096];
    ck_assert_int_lt(snprintf(whole, sizeof(whole), "cd '%s' && TUTTI='%s' && { %s\n} > out 2> err",
                              test_folder(), command_path(), line),
                     (int)sizeof(whole));
    int status = system(whole);
    command_read("out", command_out, sizeof(command_out));
    command_read("err", command_err, sizeof(command_err));
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

json_t *command_last_object(const char *text, int *lines)
{
    json_t *last = NULL;
    int n = 0;
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        json_error_t e;
        json_t *o = json_loadb(text, length, JSON_REJECT_DUPLICATES, &e);
        ck_assert_msg(json_is_object(o), "line %d: %s: %.*s", n + 1, e.text, (int)length, text);
        json_decref(last);
        last = o;
        text += length + (text[length] == '\n');
        n++;
    }
    if (lines != NULL)
        *lines = n;
    return last;
}

bool command_left(const char *name)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", test_folder(), name);
    return access(path, F_OK) == 0;
}

void command_hash(const char *text, char hash[64])
{
    json_t *o = command_last_object(text, NULL);
    const char *got = json_string_value(json_object_get(o, "weights_hash"));
    ck_assert_msg(got != NULL && strlen(got) == 32, "no weights_hash in %.2000s", text);
    snprintf(hash, 64, "%s", got);
    json_decref(o);
}

int command_count(const char *text, const char *words)
{
    int n = 0;
    for (; (text = strstr(text, words)) != NULL; text++)
        n++;
    return n;
}

const char command_small_job[] = "name: small\n"
                                 "seed: 3\n"
                                 "data:\n"
                                 "  train: {digits: {count: 320}}\n"
                                 "  validate: {digits: {count: 64, first: 1000}}\n"
                                 "  test: {digits: {count: 96, first: 2000}}\n"
                                 "model:\n"
                                 "  - flatten\n"
                                 "  - dense: {units: 16, act: relu}\n"
                                 "  - dropout: 0.1\n"
                                 "  - dense: 10\n"
                                 "train:\n"
                                 "  epochs: 3\n"
                                 "  batch: 32\n"
                                 "  loss: cross_entropy\n"
                                 "  optimizer: {adam: {lr: 1e-3}}\n"
                                 "  metrics: [accuracy]\n";

void command_npy(const char *name, const char *shape, int64_t n)
{
    char path[600], header[118], text[120];
    snprintf(text, sizeof(text), "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }",
             shape);
    memset(header, ' ', sizeof(header));
    memcpy(header, text, strlen(text));
    header[117] = '\n';
    snprintf(path, sizeof(path), "%s/%s", test_folder(), name);
    FILE *f = fopen(path, "wb");
    CHECK(f != NULL);
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f);
    fwrite(header, 1, sizeof(header), f);
    for (int64_t i = 0; i < n; i++)
        fwrite(&(float){(float)i / (float)n}, sizeof(float), 1, f);
    fclose(f);
}
