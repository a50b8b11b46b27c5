/*
 * machine.c - the memory that this process may use: the machine's, or less where a control group
 * (a container, a batch system's job) has a limit. Both versions of control groups are read:
 * version 2 has "0::/path" in /proc/self/cgroup and memory.max in each folder, version 1 a line
 * with "memory" and memory.limit_in_bytes. A group's limit holds for those below it, so all up to
 * the root are looked at; inside a container the path may be that of the host, and only the root is
 * there.
 */
#include "device/device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_ROOM  4096
#define NO_LIMIT_1 ((unsigned long long)1 << 60) // version 1 writes a number near 2^63 for none

// The number in a file; 0: there is none, or it says "max".
static size_t read_number(const char *path)
{
    char text[32] = "", *end;
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return 0;
    const char *got = fgets(text, sizeof(text), f);
    fclose(f);
    if (got == NULL || text[0] < '0' || text[0] > '9')
        return 0;
    unsigned long long v = strtoull(text, &end, 10);
    return (*end == '\n' || *end == '\0') && v < NO_LIMIT_1 ? (size_t)v : 0;
}

static size_t least(size_t a, size_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

// The least limit of the group at path and those above it.
static size_t walk(const char *mount, char *path, const char *file)
{
    char full[2 * PATH_ROOM];
    size_t limit = 0;
    for (;;) {
        size_t n = strlen(path);
        while (n > 0 && path[n - 1] == '/')
            path[--n] = '\0';
        if (snprintf(full, sizeof(full), "%s%s/%s", mount, path, file) < (int)sizeof(full))
            limit = least(limit, read_number(full));
        char *slash = strrchr(path, '/');
        if (slash == NULL)
            return limit;
        *slash = '\0';
    }
}

// Is memory one of "cpu,memory"?
static bool has_memory(const char *list, size_t n)
{
    for (const char *s = list, *end = list + n; s < end;) {
        const char *comma = memchr(s, ',', (size_t)(end - s));
        size_t length = comma != NULL ? (size_t)(comma - s) : (size_t)(end - s);
        if (length == 6 && memcmp(s, "memory", 6) == 0)
            return true;
        s += length + 1;
    }
    return false;
}

size_t tti_cgroup_memory(const char *root)
{
    char path[PATH_ROOM], mount[PATH_ROOM], line[PATH_ROOM];
    size_t limit = 0;
    if (snprintf(path, sizeof(path), "%s/proc/self/cgroup", root) >= (int)sizeof(path))
        return 0;
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *list = strchr(line, ':'), *group = list != NULL ? strchr(list + 1, ':') : NULL;
        if (group == NULL)
            continue;
        bool second = strncmp(line, "0::", 3) == 0;
        if (!second && !has_memory(list + 1, (size_t)(group - list - 1)))
            continue;
        snprintf(mount, sizeof(mount), "%.3800s/sys/fs/cgroup%s", root, second ? "" : "/memory");
        limit =
            least(limit, walk(mount, group + 1, second ? "memory.max" : "memory.limit_in_bytes"));
    }
    if (f != NULL)
        fclose(f);
    return limit;
}

size_t tti_machine_memory(bool *is_group)
{
    long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    size_t all = pages > 0 && bytes > 0 ? (size_t)pages * (size_t)bytes : 0;
    size_t group = tti_cgroup_memory("");
    *is_group = group > 0 && (all == 0 || group < all);
    return *is_group ? group : all;
}
