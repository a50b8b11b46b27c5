/*
 * name.c - device names: all of TensorFlow's forms, merged field by field, printed fully.
 *
 *   name  := field ("/" field)*, a leading "/" may be missing
 *   field := "job:" word | "replica:" number | "task:" number | "device:" type [":" index]
 *          | type [":" index]
 */
#include "device/device.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static tt_status bad(tt_ctx *ctx, const char *text, const char *what)
{
    return TT_FAIL(ctx, TT_EPARSE, "device '%.100s': %s", text, what);
}

// A number of at most 6 digits that fills s[0..n).
static bool number(const char *s, size_t n, int *out)
{
    int v = 0;
    if (n == 0 || n > 6)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!isdigit((unsigned char)s[i]))
            return false;
        v = v * 10 + (s[i] - '0');
    }
    *out = v;
    return true;
}

static bool word(const char *s, size_t n, char *out, size_t size, bool lower)
{
    if (n == 0 || n >= size || !isalpha((unsigned char)s[0]))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)s[i]) && s[i] != '_' && s[i] != '-')
            return false;
        out[i] = lower ? (char)tolower((unsigned char)s[i]) : s[i];
    }
    out[n] = 0;
    return true;
}

static bool starts(const char *s, size_t n, const char *prefix)
{
    return n >= strlen(prefix) && strncasecmp(s, prefix, strlen(prefix)) == 0;
}

static tt_status parse_device(tt_ctx *ctx, const char *text, const char *s, size_t n,
                              tt_device_name *out)
{
    const char *colon = memchr(s, ':', n);
    size_t len = colon == NULL ? n : (size_t)(colon - s);
    if (out->type[0] != 0)
        return bad(ctx, text, "has two devices");
    if (!word(s, len, out->type, sizeof(out->type), true))
        return bad(ctx, text, "the type must be a name such as cpu or gpu");
    if (colon == NULL)
        return TT_OK;
    if (n - len - 1 == 1 && colon[1] == '*')
        return TT_OK; // any index
    if (!number(colon + 1, n - len - 1, &out->index))
        return bad(ctx, text, "the index must be a number");
    return TT_OK;
}

static tt_status parse_field(tt_ctx *ctx, const char *text, const char *s, size_t n,
                             tt_device_name *out)
{
    if (n == 0)
        return bad(ctx, text, "has an empty field");
    if (starts(s, n, "job:")) {
        if (out->job[0] != 0)
            return bad(ctx, text, "has two jobs");
        if (!word(s + 4, n - 4, out->job, sizeof(out->job), false))
            return bad(ctx, text, "the job must be a name");
    } else if (starts(s, n, "replica:")) {
        if (out->replica >= 0 || !number(s + 8, n - 8, &out->replica))
            return bad(ctx, text, "the replica must be one number");
    } else if (starts(s, n, "task:")) {
        if (out->task >= 0 || !number(s + 5, n - 5, &out->task))
            return bad(ctx, text, "the task must be one number");
    } else if (starts(s, n, "device:")) {
        return parse_device(ctx, text, s + 7, n - 7, out);
    } else {
        return parse_device(ctx, text, s, n, out);
    }
    return TT_OK;
}

tt_status tt_device_parse(tt_ctx *ctx, const char *text, tt_device_name *out)
{
    if (text == NULL || out == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "device name is NULL");
    tt_device_name name = {.replica = -1, .task = -1, .index = -1};
    const char *s = text[0] == '/' ? text + 1 : text;
    if (s[0] == 0)
        return bad(ctx, text, "is empty");
    if (strlen(s) >= TT_DEVICE_NAME_MAX)
        return bad(ctx, text, "is too long");
    for (;;) {
        const char *slash = strchr(s, '/');
        size_t n = slash == NULL ? strlen(s) : (size_t)(slash - s);
        TT_TRY(parse_field(ctx, text, s, n, &name));
        if (slash == NULL)
            break;
        s = slash + 1;
    }
    *out = name;
    return TT_OK;
}

void tt_device_merge(tt_device_name *name, const tt_device_name *base)
{
    if (name == NULL || base == NULL)
        return;
    if (name->job[0] == 0)
        memcpy(name->job, base->job, sizeof(name->job));
    if (name->replica < 0)
        name->replica = base->replica;
    if (name->task < 0)
        name->task = base->task;
    if (name->type[0] == 0) {
        memcpy(name->type, base->type, sizeof(name->type));
        if (name->index < 0)
            name->index = base->index;
    } else if (name->index < 0 && strcmp(name->type, base->type) == 0) {
        name->index = base->index;
    }
}

void tt_device_print(const tt_device_name *name, char out[TT_DEVICE_NAME_MAX])
{
    size_t n = TT_DEVICE_NAME_MAX, at = 0;
    if (out == NULL)
        return;
    out[0] = 0;
    if (name == NULL)
        return;
    if (name->job[0] != 0)
        at += (size_t)snprintf(out + at, n - at, "/job:%s", name->job);
    if (name->replica >= 0)
        at += (size_t)snprintf(out + at, n - at, "/replica:%d", name->replica);
    if (name->task >= 0)
        at += (size_t)snprintf(out + at, n - at, "/task:%d", name->task);
    if (name->type[0] != 0) {
        char type[16];
        for (size_t i = 0; i < sizeof(type); i++)
            type[i] = (char)toupper((unsigned char)name->type[i]);
        if (name->index >= 0)
            snprintf(out + at, n - at, "/device:%s:%d", type, name->index);
        else
            snprintf(out + at, n - at, "/device:%s:*", type);
    }
}
