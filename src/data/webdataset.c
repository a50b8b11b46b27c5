/*
 * webdataset.c - tar files of records as a source: the files of a record follow each other and have
 * the same name up to the first dot. Opening reads the headers and the classes; images are decoded
 * where they lie. Nothing is unpacked, and names that lead out of a folder are refused.
 */
#include "data/csv_own.h"
#include "data/shards.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define BLOCK     512
#define NAME      1024
#define MOST_FILE ((int64_t)1 << 30)

typedef struct sample {
    int64_t at; // of the image, in all files
    uint32_t bytes;
    int32_t label;
} sample;

typedef struct shards {
    tti_files files;
    sample *sample;
    int64_t n, cap;
    tti_words words;
    bool has_labels, has_numbers, fixed_words;
    tti_images_about about;
    tti_room_pool pool;
} shards;

// One entry of a tar file, and the record that is being put together.
typedef struct reading {
    const tti_bytes *b;
    int64_t base;
    int64_t next;      // place of the next header
    char name[NAME];   // of this entry
    bool is_long;      // a name that an entry before gave
    int64_t at, bytes; // its contents
    char key[NAME];    // of the record; "": none yet
    sample now;
    bool has_x, has_y;
    const char *x, *y; // endings
} reading;

static tt_status bad(tt_ctx *ctx, const reading *r, int64_t at, const char *what)
{
    return TT_FAIL(ctx, TT_EIO, "%s: byte %lld: %s", r->b->path, (long long)at, what);
}

// ---- tar -------------------------------------------------------------------------------------

// A number in octal, or in binary if its first bit is set.
static int64_t number(const unsigned char *p, int n)
{
    int64_t v = 0;
    if (p[0] == 0x80) {
        for (int i = 1; i < n; i++) {
            if (v > INT64_MAX >> 9)
                return -1;
            v = v << 8 | p[i];
        }
        return v;
    }
    int i = 0;
    while (i < n && p[i] == ' ')
        i++;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++) {
        if (v > INT64_MAX >> 4)
            return -1;
        v = v << 3 | (p[i] - '0');
    }
    return i == n || p[i] == ' ' || p[i] == 0 ? v : -1;
}

static bool checks(const unsigned char h[BLOCK])
{
    int64_t sum = 0;
    for (int i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : h[i];
    return number(h + 148, 8) == sum;
}

static bool is_safe(const char *name)
{
    if (name[0] == '/' || name[0] == '\0')
        return false;
    for (const char *s = name; *s != '\0'; s += strcspn(s, "/"), s += *s == '/')
        if (s[0] == '.' && s[1] == '.' && (s[2] == '/' || s[2] == '\0'))
            return false;
    return true;
}

// "path" of a pax header: lines "30 path=a/b.jpg\n".
static tt_status pax_name(tt_ctx *ctx, reading *r)
{
    char text[4096];
    if (r->bytes >= (int64_t)sizeof(text))
        return bad(ctx, r, r->at, "a pax header is larger than 4 KiB");
    TT_TRY(tti_bytes_read(ctx, r->b, r->at, (size_t)r->bytes, text));
    text[r->bytes] = '\0';
    for (char *s = text; *s != '\0';) {
        char *end = strchr(s, '\n'), *space = strchr(s, ' ');
        if (end == NULL || space == NULL || space > end)
            return bad(ctx, r, r->at, "a pax header is damaged");
        *end = '\0';
        if (strncmp(space + 1, "path=", 5) == 0) {
            snprintf(r->name, sizeof(r->name), "%s", space + 6);
            r->is_long = true;
            if (strlen(space + 6) >= sizeof(r->name))
                return bad(ctx, r, r->at, "a name is longer than 1023 bytes");
        }
        s = end + 1;
    }
    return TT_OK;
}

static tt_status long_name(tt_ctx *ctx, reading *r)
{
    if (r->bytes >= NAME)
        return bad(ctx, r, r->at, "a name is longer than 1023 bytes");
    TT_TRY(tti_bytes_read(ctx, r->b, r->at, (size_t)r->bytes, r->name));
    r->name[r->bytes] = '\0';
    r->is_long = true;
    return TT_OK;
}

static void short_name(reading *r, const unsigned char h[BLOCK])
{
    int prefix = memcmp(h + 257, "ustar", 5) == 0 ? (int)strnlen((const char *)h + 345, 155) : 0;
    int n = (int)strnlen((const char *)h, 100);
    snprintf(r->name, sizeof(r->name), "%.*s%s%.*s", prefix, (const char *)h + 345,
             prefix > 0 ? "/" : "", n, (const char *)h);
}

// The next regular file; *more is false at the end.
static tt_status next_file(tt_ctx *ctx, reading *r, bool *more)
{
    unsigned char h[BLOCK];
    for (;;) {
        if (r->next >= r->b->n || r->b->n - r->next < BLOCK) {
            *more = false;
            return r->next >= r->b->n ? TT_OK : bad(ctx, r, r->next, "the file is cut short");
        }
        int64_t at = r->next;
        TT_TRY(tti_bytes_read(ctx, r->b, at, BLOCK, h));
        if (h[0] == 0) { // blocks of zeros end it
            *more = false;
            return TT_OK;
        }
        r->bytes = number(h + 124, 12);
        r->at = at + BLOCK;
        if (!checks(h) || r->bytes < 0)
            return bad(ctx, r, at, "is not a tar header; the file is damaged or is not a tar file");
        if (r->bytes > r->b->n - r->at || r->bytes > MOST_FILE)
            return bad(ctx, r, at, "a file in it is cut short, or larger than 1 GiB");
        r->next = r->at + (r->bytes + BLOCK - 1) / BLOCK * BLOCK;
        char type = (char)h[156];
        if (type == 'L') {
            TT_TRY(long_name(ctx, r));
        } else if (type == 'x') {
            TT_TRY(pax_name(ctx, r));
        } else {
            if (!r->is_long)
                short_name(r, h);
            r->is_long = false;
            if (!is_safe(r->name))
                return TT_FAIL(
                    ctx, TT_EIO,
                    "%s: byte %lld: the name '%.100s' leads out of the archive's folder; "
                    "such archives are refused",
                    r->b->path, (long long)at, r->name);
            *more = true;
            if (type == '0' || type == 0)
                return TT_OK;
        }
    }
}

// ---- records ---------------------------------------------------------------------------------

static bool is_listed(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *s = list; *s != '\0';) {
        s += strspn(s, ", ");
        size_t n = strcspn(s, ", ");
        if (n == len && strncasecmp(s, word, n) == 0)
            return true;
        s += n;
    }
    return false;
}

static tt_status read_label(tt_ctx *ctx, shards *s, reading *r)
{
    char text[TTI_CELL_MAX];
    if (r->bytes >= TTI_CELL_MAX)
        return TT_FAIL(ctx, TT_EIO, "%s: '%s' is longer than a class", r->b->path, r->name);
    TT_TRY(tti_bytes_read(ctx, r->b, r->at, (size_t)r->bytes, text));
    text[r->bytes] = '\0';
    char *word = text + strspn(text, " \t\r\n");
    size_t n = strlen(word);
    while (n > 0 && strchr(" \t\r\n", word[n - 1]) != NULL)
        word[--n] = '\0';
    if (n == 0)
        return TT_FAIL(ctx, TT_EIO, "%s: '%s' is empty", r->b->path, r->name);
    s->has_numbers &= tti_words_number(word) >= 0;
    if (!s->fixed_words && tti_words_add(ctx, &s->words, word) != TT_OK)
        return TT_FAIL(ctx, TT_EIO, "%s: there are more than %d different classes", r->b->path,
                       TTI_WORDS_MAX);
    r->now.label = tti_words_find(&s->words, word);
    if (r->now.label < 0)
        return TT_FAIL(ctx, TT_EIO, "%s: '%s': '%.40s' is not one of the classes that are known",
                       r->b->path, r->name, word);
    r->has_y = true;
    return TT_OK;
}

// Keeps the record that has been put together.
static tt_status end_record(tt_ctx *ctx, shards *s, reading *r)
{
    if (r->key[0] == '\0')
        return TT_OK;
    if (!r->has_x || (s->has_labels && !r->has_y))
        return TT_FAIL(ctx, TT_EIO, "%s: record %lld, '%s', has no %s file (%s)", r->b->path,
                       (long long)s->n, r->key, r->has_x ? "class" : "image",
                       r->has_x ? r->y : r->x);
    if (!tti_grow(ctx, &s->sample, &s->cap, s->n + 1, sizeof(*s->sample)))
        return TT_ENOMEM;
    s->sample[s->n++] = r->now;
    return TT_OK;
}

static tt_status add_entry(tt_ctx *ctx, shards *s, reading *r)
{
    char key[NAME];
    const char *slash = strrchr(r->name, '/'), *base = slash != NULL ? slash + 1 : r->name;
    const char *dot = strchr(base, '.');
    if (dot == NULL || dot == base)
        return TT_OK; // it belongs to no record
    snprintf(key, sizeof(key), "%.*s", (int)(dot - r->name), r->name);
    if (strcmp(key, r->key) != 0) {
        TT_TRY(end_record(ctx, s, r));
        memcpy(r->key, key, sizeof(key));
        r->has_x = r->has_y = false;
        r->now = (sample){.label = -1};
    }
    if (is_listed(r->x, dot + 1)) {
        r->now.at = r->base + r->at;
        r->now.bytes = (uint32_t)r->bytes;
        r->has_x = true;
    } else if (s->has_labels && is_listed(r->y, dot + 1)) {
        return read_label(ctx, s, r);
    }
    return TT_OK;
}

static tt_status index_file(tt_ctx *ctx, shards *s, int64_t k, const tt_webdataset_opts *o)
{
    reading *r = tti_calloc(ctx, 1, sizeof(*r));
    if (r == NULL)
        return TT_ENOMEM;
    r->b = &s->files.file[k];
    r->base = s->files.start[k];
    r->x = o->x;
    r->y = o->y;
    tt_status st = TT_OK;
    for (bool more = true; more && st == TT_OK;) {
        st = next_file(ctx, r, &more);
        if (st == TT_OK)
            st = more ? add_entry(ctx, s, r) : end_record(ctx, s, r);
    }
    tti_free(ctx, r);
    return st;
}

static tt_status shards_read(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    shards *s = self;
    const sample *one = &s->sample[i];
    tti_decode_room *r = tti_pool_borrow(ctx, &s->pool);
    if (r == NULL)
        return TT_ENOMEM;
    char path[NAME];
    snprintf(path, sizeof(path), "%s: record %lld",
             s->files.file[tti_files_find(&s->files, one->at)].path, (long long)i);
    unsigned char *p = tti_room_get(ctx, r, 0, one->bytes);
    tt_status st = p != NULL ? tti_files_read(ctx, &s->files, one->at, one->bytes, p) : TT_ENOMEM;
    tti_coded c = {.path = path, .data = p, .n = one->bytes};
    if (st == TT_OK)
        st = tti_images_decode(ctx, &s->about, &c, r, out[0]);
    tti_pool_return(&s->pool, r);
    if (s->has_labels)
        *(int32_t *)out[1] = one->label;
    return st;
}

// ---- opening ---------------------------------------------------------------------------------

static void shards_close(tt_ctx *ctx, void *self)
{
    shards *s = self;
    tti_files_close(ctx, &s->files);
    tti_free(ctx, s->sample);
    tti_words_free(ctx, &s->words);
    tti_pool_deinit(&s->pool);
    tti_free(ctx, s);
}

static tt_status shards_init(tt_ctx *ctx, shards *s, const tt_webdataset_opts *o)
{
    char word[TTI_CELL_MAX];
    const char *words = o->words;
    for (bool more = true; more;) {
        TT_TRY(tti_csv_next_name(ctx, &words, word, &more));
        s->fixed_words |= more;
        if (more && tti_words_add(ctx, &s->words, word) != TT_OK)
            return TT_FAIL(ctx, TT_EINVAL, "webdataset: words has more than %d entries",
                           TTI_WORDS_MAX);
    }
    if (o->size[0] < 1 || o->size[1] < 1 || (o->channels != 1 && o->channels != 3))
        return TT_FAIL(ctx, TT_EINVAL,
                       "webdataset: size must be given: all images are resized to this height and "
                       "width, for example size: [224, 224]; channels: 3 or 1");
    s->about = (tti_images_about){.high = o->size[0],
                                  .wide = o->size[1],
                                  .channels = o->channels,
                                  .fit = o->fit,
                                  .scaled = o->scaled,
                                  .max_pixels = 100000000};
    s->has_labels = strcmp(o->y, "-") != 0;
    s->has_numbers = !s->fixed_words;
    for (int64_t k = 0; k < s->files.n; k++)
        TT_TRY(index_file(ctx, s, k, o));
    if (s->n == 0)
        return TT_FAIL(ctx, TT_EIO, "%s: has no records", s->files.file[0].path);
    // Classes that are all numbers are these numbers.
    for (int64_t i = 0; s->has_labels && s->has_numbers && i < s->n; i++)
        s->sample[i].label = tti_words_number(s->words.words[s->sample[i].label]);
    return TT_OK;
}

static int64_t count_classes(const shards *s)
{
    int32_t most = 0;
    for (int64_t i = 0; i < s->words.n; i++)
        most = TTI_MAX(most, tti_words_number(s->words.words[i]));
    return s->has_numbers ? (int64_t)most + 1 : s->words.n;
}

static tt_status open_files(tt_ctx *ctx, tti_files *files, const tt_webdataset_opts *o,
                            tt_source *out)
{
    shards *s = tti_calloc(ctx, 1, sizeof(*s));
    if (s == NULL) {
        tti_files_close(ctx, files);
        return TT_ENOMEM;
    }
    s->files = *files;
    tti_pool_init(&s->pool);
    tt_status st = shards_init(ctx, s, o);
    if (st != TT_OK) {
        shards_close(ctx, s);
        return st;
    }
    *out = (tt_source){.count = s->n,
                       .n_fields = s->has_labels ? 2 : 1,
                       .self = s,
                       .read = shards_read,
                       .close = shards_close};
    out->fields[0] = (tt_field){.name = "x",
                                .dtype = TT_U8,
                                .shape = TT_SHAPE(s->about.high, s->about.wide, s->about.channels)};
    out->fields[1] = (tt_field){.name = "y", .dtype = TT_I32, .classes = count_classes(s)};
    return TT_OK;
}

tt_status tti_webdataset_source(tt_ctx *ctx, tti_bytes *b, const tt_webdataset_opts *o,
                                tt_source *out)
{
    tti_files files;
    TT_TRY(tti_files_of(ctx, b, &files));
    return open_files(ctx, &files, o, out);
}

static tt_status shards_open(tt_ctx *ctx, const void *options, tt_source *out)
{
    const tt_webdataset_opts *o = options;
    tti_files files;
    TT_TRY(tti_files_open(ctx, "webdataset", o->file, &files));
    return open_files(ctx, &files, o, out);
}

bool tti_webdataset_about(const tt_data *d, tti_images_about *out)
{
    if (d->source.close != shards_close)
        return false;
    *out = ((const shards *)d->source.self)->about;
    return true;
}

char *const *tti_webdataset_words(const tt_data *d, int64_t *n)
{
    const shards *s = d != NULL && d->source.close == shards_close ? d->source.self : NULL;
    bool has = s != NULL && s->has_labels && !s->has_numbers;
    *n = has ? s->words.n : 0;
    return has ? s->words.words : NULL;
}

static const char *const fit_words[] = {"crop", "stretch", "pad", NULL};
// clang-format off
static const tt_option shards_options[] = {
    {"file", TT_OPT_TEXT, NULL, "tar files: names or patterns; may be compressed (.gz)",
     offsetof(tt_webdataset_opts, file), 0, 0, NULL},
    {"x", TT_OPT_TEXT, "jpg, jpeg, png, webp", "endings of images",
     offsetof(tt_webdataset_opts, x), 0, 0, NULL},
    {"y", TT_OPT_TEXT, "cls", "ending of the file that has the class, a number or a word; -: none",
     offsetof(tt_webdataset_opts, y), 0, 0, NULL},
    {"size", TT_OPT_PAIR, "0", "height and width that all images are resized to; required",
     offsetof(tt_webdataset_opts, size), 0, 16384, NULL},
    {"channels", TT_OPT_INT32, "3", "3: colour, 1: grey",
     offsetof(tt_webdataset_opts, channels), 1, 3, NULL},
    {"words", TT_OPT_TEXT, "",
     "class names in order: \"cat, dog\"; default: numbers, or words in order of appearance",
     offsetof(tt_webdataset_opts, words), 0, 0, NULL},
    {"fit", TT_OPT_ENUM, "crop", "images of other proportions: crop, stretch or pad",
     offsetof(tt_webdataset_opts, fit), 0, 0, fit_words},
    {"scaled", TT_OPT_BOOL, "false",
     "decode JPEG files at 1/2, 1/4 or 1/8 of their size where that is still as large as size",
     offsetof(tt_webdataset_opts, scaled), 0, 0, NULL},
    TT_OPTION_END,
};
// clang-format on

const tt_source_def tti_source_webdataset = {
    .name = "webdataset",
    .help = "WebDataset: tar files of images and classes",
    .options = shards_options,
    .options_size = sizeof(tt_webdataset_opts),
    .main = "file",
    .open = shards_open,
};
