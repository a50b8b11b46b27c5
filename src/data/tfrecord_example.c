/*
 * tfrecord_example.c - tf.train.Example, read strictly: protocol buffers of the three messages that
 * it has, and nothing else. Every length is checked against what encloses it.
 *
 *   Example { Features features = 1; }    Features { map<string, Feature> feature = 1; }
 *   Feature { BytesList 1 | FloatList 2 | Int64List 3 }, each a list of values = 1
 */
#include "data/shards.h"
#include <string.h>

typedef struct field {
    uint32_t number, wire;
    uint64_t value;         // wire 0, 1 and 5
    const unsigned char *p; // wire 2
    size_t n;
} field;

static bool read_varint(const unsigned char **p, const unsigned char *end, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64 && *p < end; shift += 7) {
        uint64_t byte = *(*p)++;
        if (shift == 63 && byte > 1)
            return false;
        *out |= (byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool read_fixed(const unsigned char **p, const unsigned char *end, int bytes, uint64_t *out)
{
    *out = 0;
    if (end - *p < bytes)
        return false;
    for (int i = 0; i < bytes; i++)
        *out |= (uint64_t) * (*p)++ << (8 * i);
    return true;
}

// The next field of a message; false if it is damaged.
static bool read_field(const unsigned char **p, const unsigned char *end, field *f)
{
    uint64_t key, n;
    if (!read_varint(p, end, &key) || key >> 3 == 0 || key >> 3 > 536870911)
        return false;
    *f = (field){.number = (uint32_t)(key >> 3), .wire = (uint32_t)(key & 7)};
    switch (f->wire) {
    case 0:
        return read_varint(p, end, &f->value);
    case 1:
        return read_fixed(p, end, 8, &f->value);
    case 5:
        return read_fixed(p, end, 4, &f->value);
    case 2:
        if (!read_varint(p, end, &n) || n > (uint64_t)(end - *p))
            return false;
        f->p = *p;
        f->n = (size_t)n;
        *p += n;
        return true;
    default:
        return false; // groups are of an older time
    }
}

// Values of a list: packed, or one field each.
static bool count_values(tti_feature *f)
{
    field v;
    for (const unsigned char *p = f->list; p < f->end;) {
        if (!read_field(&p, f->end, &v))
            return false;
        if (v.number != 1)
            continue;
        uint32_t single = f->kind == TTI_FEATURE_FLOATS ? 5 : f->kind == TTI_FEATURE_INTS ? 0 : 2;
        if (v.wire == single) {
            f->n++;
        } else if (v.wire == 2 && f->kind == TTI_FEATURE_FLOATS && v.n % 4 == 0) {
            f->n += (int64_t)(v.n / 4);
        } else if (v.wire == 2 && f->kind == TTI_FEATURE_INTS) {
            const unsigned char *at = v.p;
            for (uint64_t x; at < v.p + v.n; f->n++)
                if (!read_varint(&at, v.p + v.n, &x))
                    return false;
        } else {
            return false;
        }
    }
    return true;
}

// The last of the lists of a Feature counts, as everywhere with protocol buffers.
static bool read_feature(const unsigned char *p, const unsigned char *end, tti_feature *out)
{
    field f;
    *out = (tti_feature){0};
    while (p < end) {
        if (!read_field(&p, end, &f))
            return false;
        if (f.number < 1 || f.number > 3)
            continue;
        if (f.wire != 2)
            return false;
        *out = (tti_feature){.kind = (tti_feature_kind)f.number, .list = f.p, .end = f.p + f.n};
    }
    return out->kind == TTI_FEATURE_NONE || count_values(out);
}

typedef bool entry_fn(void *user, const field *key, const field *value);

// Calls fn for every entry of the map.
static bool each_entry(const unsigned char *p, size_t n, entry_fn *fn, void *user)
{
    field features, entry, f;
    for (const unsigned char *end = p + n; p < end;) {
        if (!read_field(&p, end, &features))
            return false;
        if (features.number != 1)
            continue;
        if (features.wire != 2)
            return false;
        for (const unsigned char *q = features.p, *q_end = q + features.n; q < q_end;) {
            field key = {0}, value = {0};
            if (!read_field(&q, q_end, &entry))
                return false;
            if (entry.number != 1)
                continue;
            if (entry.wire != 2)
                return false;
            for (const unsigned char *r = entry.p, *r_end = r + entry.n; r < r_end;) {
                if (!read_field(&r, r_end, &f) || (f.number <= 2 && f.wire != 2))
                    return false;
                if (f.number == 1)
                    key = f;
                if (f.number == 2)
                    value = f;
            }
            if (!fn(user, &key, &value))
                return false;
        }
    }
    return true;
}

typedef struct search {
    const char *name;
    tti_feature *out;
} search;

static bool is_it(void *user, const field *key, const field *value)
{
    const search *s = user;
    if (key->n != strlen(s->name) || (key->n > 0 && memcmp(key->p, s->name, key->n) != 0))
        return true;
    if (value->p == NULL)
        return true;
    return read_feature(value->p, value->p + value->n, s->out);
}

bool tti_example_find(const unsigned char *p, size_t n, const char *name, tti_feature *out)
{
    search s = {name, out};
    *out = (tti_feature){0};
    return each_entry(p, n, is_it, &s);
}

static bool add_name(void *user, const field *key, const field *value)
{
    tti_text *t = user;
    (void)value;
    if (key->p != NULL)
        tti_text_add(t, "%s'%.*s'", t->n > 0 ? ", " : "", (int)TTI_MIN(key->n, 60),
                     (const char *)key->p);
    return true;
}

void tti_example_names(const unsigned char *p, size_t n, tti_text *t)
{
    (void)each_entry(p, n, add_name, t);
}

bool tti_feature_bytes(const tti_feature *f, const unsigned char **p, size_t *n)
{
    field v;
    for (const unsigned char *at = f->list; at < f->end;) {
        if (!read_field(&at, f->end, &v))
            return false;
        if (v.number == 1 && v.wire == 2) {
            *p = v.p;
            *n = v.n;
            return true;
        }
    }
    return false;
}

static float as_float(uint64_t bits)
{
    uint32_t b = (uint32_t)bits;
    float v;
    memcpy(&v, &b, sizeof(v));
    return v;
}

bool tti_feature_floats(const tti_feature *f, float *out)
{
    field v;
    uint64_t bits;
    for (const unsigned char *at = f->list; at < f->end;) {
        if (!read_field(&at, f->end, &v))
            return false;
        if (v.number == 1 && v.wire == 5)
            *out++ = as_float(v.value);
        for (const unsigned char *p = v.p; v.number == 1 && v.wire == 2 && p < v.p + v.n;) {
            if (!read_fixed(&p, v.p + v.n, 4, &bits))
                return false;
            *out++ = as_float(bits);
        }
    }
    return true;
}

bool tti_feature_ints(const tti_feature *f, int64_t *out)
{
    field v;
    uint64_t bits;
    for (const unsigned char *at = f->list; at < f->end;) {
        if (!read_field(&at, f->end, &v))
            return false;
        if (v.number == 1 && v.wire == 0)
            *out++ = (int64_t)v.value;
        for (const unsigned char *p = v.p; v.number == 1 && v.wire == 2 && p < v.p + v.n;) {
            if (!read_varint(&p, v.p + v.n, &bits))
                return false;
            *out++ = (int64_t)bits;
        }
    }
    return true;
}

uint32_t tti_record_crc(const unsigned char *p, size_t n)
{
    uint32_t crc = 0xffffffff;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) {
        for (; n >= 8; n -= 8, p += 8) {
            uint64_t word, wide = crc;
            memcpy(&word, p, 8);
            __asm__("crc32q %1, %0" : "+r"(wide) : "r"(word));
            crc = (uint32_t)wide;
        }
    }
#endif
    for (; n > 0; n--, p++) {
        crc ^= *p;
        for (int k = 0; k < 8; k++)
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78 : 0);
    }
    return ~crc;
}
