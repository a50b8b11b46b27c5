/*
 * secret.c - the job's secret: 64 hexadecimal digits in a file that is its owner's alone, in the
 * first line of standard input, or in the environment. It is never a word of a command line, which
 * everybody on a machine can read.
 */
#include "cluster/cluster.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIGITS (2 * TT_SECRET_BYTES)
#define MAKE   "'tutti key new FILE' makes one"

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool tti_secret_parse(const char *text, size_t n, unsigned char out[TT_SECRET_BYTES])
{
    while (n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL)
        n--;
    if (n != DIGITS)
        return false;
    for (size_t i = 0; i < TT_SECRET_BYTES; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

void tti_secret_print(const unsigned char secret[TT_SECRET_BYTES], char out[TTI_SECRET_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < TT_SECRET_BYTES; i++) {
        out[2 * i] = digits[secret[i] >> 4];
        out[2 * i + 1] = digits[secret[i] & 15];
    }
    out[DIGITS] = '\0';
}

// A line, byte by byte: what follows it is for others.
static size_t read_line(int fd, char *out, size_t room)
{
    size_t n = 0;
    for (ssize_t got; n < room; n += (size_t)got) {
        got = read(fd, out + n, 1);
        if (got < 0 && errno == EINTR)
            got = 0;
        else if (got <= 0 || out[n] == '\n')
            break;
    }
    return n;
}

// Files only: whoever made a pipe has seen to who reads it. In a pod of Kubernetes the files of a
// Secret belong to root, and a user gets them by the pod's group.
static tt_status check_mode(tt_ctx *ctx, const tti_cluster_env *env, const char *what,
                            const char *path, int fd)
{
    struct stat s;
    char found[TTI_EXCERPT];
    mode_t others = tti_cluster_get(env, "KUBERNETES_SERVICE_HOST") != NULL ? 037 : 077;
    if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && (s.st_mode & others) != 0)
        return TT_FAIL(ctx, TT_EINVAL,
                       "%s%s can be read by others (mode %04o); make it private with chmod 600",
                       what, tti_excerpt(found, path), (unsigned)s.st_mode & 07777);
    return TT_OK;
}

tt_status tti_secret_read(tt_ctx *ctx, const tti_cluster_env *env, const char *what,
                          const char *path, unsigned char out[TT_SECRET_BYTES])
{
    char text[DIGITS + 8], found[TTI_EXCERPT];
    bool is_input = strcmp(path, "-") == 0;
    int fd = is_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return TT_FAIL(ctx, TT_EIO, "%s%s: %s; " MAKE, what, tti_excerpt(found, path),
                       strerror(errno));
    tt_status st = is_input ? TT_OK : check_mode(ctx, env, what, path, fd);
    size_t n = st == TT_OK ? read_line(fd, text, sizeof(text)) : 0;
    if (!is_input)
        close(fd);
    TT_TRY(st);
    bool good = tti_secret_parse(text, n, out);
    explicit_bzero(text, sizeof(text));
    if (!good)
        return TT_FAIL(ctx, TT_EPARSE, "%s%s does not hold a secret (%d digits 0-9a-f); " MAKE,
                       what, tti_excerpt(found, path), DIGITS);
    return TT_OK;
}

tt_status tti_secret_find(tt_ctx *ctx, const tti_cluster_env *env,
                          unsigned char out[TT_SECRET_BYTES], bool *has)
{
    const char *path = tti_cluster_get(env, "TUTTI_SECRET_FILE");
    const char *text = tti_cluster_get(env, "TUTTI_SECRET");
    unsigned char other[TT_SECRET_BYTES];
    *has = path != NULL || text != NULL;
    if (text != NULL && !tti_secret_parse(text, strlen(text), out)) // which is not shown
        return TT_FAIL(ctx, TT_EPARSE,
                       "TUTTI_SECRET is not a secret: it has %zu characters, a secret has %d "
                       "digits 0-9a-f; " MAKE,
                       strlen(text), DIGITS);
    if (path == NULL)
        return TT_OK;
    TT_TRY(tti_secret_read(ctx, env, "TUTTI_SECRET_FILE=", path, other));
    if (text != NULL && memcmp(other, out, sizeof(other)) != 0)
        return TT_FAIL(
            ctx, TT_EINVAL,
            "TUTTI_SECRET and TUTTI_SECRET_FILE hold different secrets; unset one of them");
    memcpy(out, other, sizeof(other));
    return TT_OK;
}
