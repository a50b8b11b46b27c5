/*
 * images.c - JPEG, PNG and WebP files as a source (images_list.c has the files). A record is read
 * as a whole file, decoded, turned to colour or grey, and resized; nothing of it is kept.
 *
 * Decoding needs memory of the image's size, which differs from file to file. Readers borrow it
 * from a list that the source keeps, so after a while nothing new is taken.
 */
#include "data/images.h"
#include "base/file.h"
#include "data/csv_own.h"
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_FILE ((size_t)1 << 30)
#define MOST_SIDE 16384
#define WARNINGS  10 // files that are left out and named

typedef struct images {
    tti_images_about about;
    tti_image_list list;
    tti_room_pool pool;
    const char *remedy;   // for damaged files
    size_t bytes;         // of a record
    unsigned char *cache; // records, where cached says so; NULL: none is kept
    _Atomic char *cached; // 1: being written, 2: it is there
} images;

// ---- one record ------------------------------------------------------------------------------

static tt_status read_file(tt_ctx *ctx, const char *path, tti_decode_room *r, tti_coded *c)
{
    struct stat st;
    size_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0) {
        int why = errno;
        if (fd >= 0)
            close(fd);
        return TT_FAIL(ctx, TT_EIO, "cannot open image '%s': %s", path, strerror(why));
    }
    bool fits = S_ISREG(st.st_mode) && (uint64_t)st.st_size <= MOST_FILE;
    unsigned char *p = fits ? tti_room_get(ctx, r, 0, (size_t)st.st_size + 1) : NULL;
    while (p != NULL && n < (size_t)st.st_size) {
        ssize_t got = read(fd, p + n, (size_t)st.st_size - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    close(fd);
    if (!fits)
        return TT_FAIL(ctx, TT_EIO, "image '%s' is not a regular file of at most 1 GiB", path);
    if (p == NULL)
        return TT_ENOMEM;
    if (n < (size_t)st.st_size)
        return TT_FAIL(ctx, TT_EIO, "cannot read image '%s': %zu of %lld bytes came", path, n,
                       (long long)st.st_size);
    c->path = path;
    c->data = p;
    c->n = n;
    return TT_OK;
}

// The size on one side when the other shrinks to fit, as a fraction of whole pixels.
static int64_t scaled_side(int64_t side, int64_t to, int64_t of)
{
    int64_t n = (int64_t)((double)side * (double)to / (double)of + 0.5);
    return TTI_MAX(n, 1);
}

// All of x within the size, in the middle of black.
static tt_status pad(tt_ctx *ctx, const tti_pixels *x, tti_decode_room *r, const tti_pixels *y)
{
    tti_pixels in = {.high = y->high, .wide = y->wide, .channels = y->channels};
    tti_box all = {0, 0, (float)x->wide, (float)x->high};
    if (x->wide * y->high > y->wide * x->high)
        in.high = TTI_MIN(scaled_side(x->high, y->wide, x->wide), y->high);
    else
        in.wide = TTI_MIN(scaled_side(x->wide, y->high, x->high), y->wide);
    size_t row = (size_t)in.wide * (size_t)in.channels;
    size_t stride = (size_t)y->wide * (size_t)y->channels;
    int64_t top = (y->high - in.high) / 2, left = (y->wide - in.wide) / 2;
    in.p = y->p; // made at the beginning of y, then moved down and apart, last row first
    TT_TRY(tti_resize(ctx, x, &all, r, &in));
    for (int64_t i = in.high - 1; i >= 0; i--)
        memmove(y->p + (size_t)i * stride, y->p + (size_t)i * row, row);
    for (int64_t i = y->high - 1; i >= 0; i--) {
        unsigned char *to = y->p + (size_t)i * stride;
        size_t skip = (size_t)left * (size_t)y->channels;
        if (i >= top && i < top + in.high) {
            memmove(to + skip, y->p + (size_t)(i - top) * stride, row);
            memset(to, 0, skip);
            memset(to + skip + row, 0, stride - skip - row);
        } else {
            memset(to, 0, stride);
        }
    }
    return TT_OK;
}

tt_status tti_images_decode(tt_ctx *ctx, const tti_images_about *a, const tti_coded *coded,
                            tti_decode_room *r, unsigned char *out)
{
    tti_coded c = *coded;
    tti_pixels x, y = {.high = a->high, .wide = a->wide, .channels = a->channels, .p = out};
    c.max_pixels = a->max_pixels;
    c.least[0] = a->scaled ? a->high : 0;
    c.least[1] = a->scaled ? a->wide : 0;
    TT_TRY(tti_decode(ctx, &c, r, &x));
    if (x.channels > a->channels) {
        tti_recolour(&x, a->channels, x.p);
        x.channels = a->channels;
    }
    if (x.channels < a->channels) { // resized as grey, in the last part of out
        y.channels = 1;
        y.p = out + (size_t)(2 * y.high * y.wide);
    }
    tti_box box = {0, 0, (float)x.wide, (float)x.high};
    if (a->fit == TT_IMAGES_CROP)
        box = tti_box_fit(&x, y.high, y.wide);
    tt_status st = a->fit == TT_IMAGES_PAD ? pad(ctx, &x, r, &y) : tti_resize(ctx, &x, &box, r, &y);
    if (st == TT_OK && y.channels < a->channels)
        for (int64_t i = 0; i < y.high * y.wide; i++)
            out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = y.p[i];
    return st;
}

static tt_status images_read(tt_ctx *ctx, void *self, int64_t i, void *const *out)
{
    images *s = self;
    tti_coded c = {.remedy = s->remedy};
    if (s->list.has_labels)
        *(int32_t *)out[1] = s->list.labels[i];
    if (s->cache != NULL && atomic_load_explicit(&s->cached[i], memory_order_acquire) == 2) {
        memcpy(out[0], s->cache + (size_t)i * s->bytes, s->bytes);
        return TT_OK;
    }
    tti_decode_room *r = tti_pool_borrow(ctx, &s->pool);
    if (r == NULL)
        return TT_ENOMEM;
    tt_status st = read_file(ctx, s->list.names[i], r, &c);
    if (st == TT_OK)
        st = tti_images_decode(ctx, &s->about, &c, r, out[0]);
    tti_pool_return(&s->pool, r);
    char none = 0; // one reader alone fills it
    if (st == TT_OK && s->cache != NULL &&
        atomic_compare_exchange_strong(&s->cached[i], &none, 1)) {
        memcpy(s->cache + (size_t)i * s->bytes, out[0], s->bytes);
        atomic_store_explicit(&s->cached[i], 2, memory_order_release);
    }
    return st;
}

// ---- opening ---------------------------------------------------------------------------------

static void images_close(tt_ctx *ctx, void *self)
{
    images *s = self;
    tti_free(ctx, s->cache);
    tti_free(ctx, (void *)s->cached);
    tti_list_free(ctx, &s->list);
    tti_pool_deinit(&s->pool);
    tti_free(ctx, s);
}

static void quiet(void *user, const tt_event *ev)
{
    (void)user, (void)ev;
}

/*
 * corrupt: skip. Every file is decoded once, here, and what fails is left out: which records there
 * are depends on the files alone.
 */
static tt_status leave_out(tt_ctx *ctx, images *s)
{
    tti_image_list *l = &s->list;
    int64_t kept = 0, all = l->n;
    unsigned char *room =
        tti_alloc(ctx, (size_t)s->about.high * (size_t)s->about.wide * (size_t)s->about.channels);
    tt_ctx mine = {.on_event = quiet};
    int32_t label;
    if (room == NULL)
        return TT_ENOMEM;
    tti_ctx_init(&mine);
    tt_status st = TT_OK;
    for (int64_t i = 0; i < all && st == TT_OK; i++) {
        tt_status bad = images_read(&mine, s, i, (void *const[]){room, &label});
        if (bad == TT_ENOMEM || bad == TT_EUNSUPPORTED)
            st = TT_FAIL(ctx, bad, "%s", tt_last_error(&mine).message);
        if (bad == TT_EIO && i - kept < WARNINGS)
            TT_LOG(ctx, TT_WARN, "left out: %s", tt_last_error(&mine).message);
        tt_clear_error(&mine);
        if (bad == TT_EIO) {
            tti_free(ctx, l->names[i]);
            l->names[i] = NULL;
        } else {
            l->labels[kept] = l->labels[i];
            char *name = l->names[i];
            l->names[i] = NULL;
            l->names[kept++] = name;
        }
        atomic_fetch_add_explicit(&ctx->pulse, 1, memory_order_relaxed);
        if (st == TT_OK && atomic_load(&ctx->stop))
            st = TT_FAIL(ctx, TT_ESTOP, "images: stopped on request");
    }
    if (st == TT_OK) {
        l->n = kept;
        if (kept < all)
            TT_LOG(ctx, TT_WARN, "images: %lld of %lld files are left out (corrupt: skip)",
                   (long long)(all - kept), (long long)all);
        if (kept == 0)
            st = TT_FAIL(ctx, TT_EIO, "images: none of the %lld files can be read", (long long)all);
    }
    tti_ctx_deinit(&mine);
    tti_free(ctx, room);
    return st;
}

static tt_status make_source(images *s, tt_source *out)
{
    *out = (tt_source){.count = s->list.n,
                       .n_fields = s->list.has_labels ? 2 : 1,
                       .self = s,
                       .read = images_read,
                       .close = images_close};
    out->fields[0] = (tt_field){.name = "x",
                                .dtype = TT_U8,
                                .shape = TT_SHAPE(s->about.high, s->about.wide, s->about.channels)};
    out->fields[1] = (tt_field){.name = "y", .dtype = TT_I32, .classes = s->list.words.n};
    return TT_OK;
}

static tt_status check_options(tt_ctx *ctx, const tt_images_opts *o)
{
    if (o->dir[0] == '\0' && o->file[0] == '\0')
        return TT_FAIL(ctx, TT_EINVAL,
                       "images: dir must be given, a folder with one folder per class, or file, a "
                       "CSV file of paths and labels");
    if (o->size[0] < 1 || o->size[1] < 1)
        return TT_FAIL(ctx, TT_EINVAL,
                       "images: size must be given: all images are resized to this height and "
                       "width, for example size: [224, 224]");
    if (o->channels != 1 && o->channels != 3)
        return TT_FAIL(ctx, TT_EINVAL, "images: channels is %d; use 3 (colour) or 1 (grey)",
                       o->channels);
    return TT_OK;
}

static tt_status read_words(tt_ctx *ctx, const char *words, tti_image_list *l)
{
    char word[TTI_CELL_MAX];
    for (bool more = true;;) {
        TT_TRY(tti_csv_next_name(ctx, &words, word, &more));
        if (!more)
            return TT_OK;
        l->fixed_words = true;
        if (tti_words_add(ctx, &l->words, word) != TT_OK)
            return TT_FAIL(ctx, TT_EINVAL, "images: words has more than %d entries", TTI_WORDS_MAX);
    }
}

static tt_status images_init(tt_ctx *ctx, images *s, const tt_images_opts *o)
{
    TT_TRY(read_words(ctx, o->words, &s->list));
    if (o->file[0] != '\0')
        TT_TRY(tti_list_csv(ctx, o->file, o->dir, &s->list));
    else
        TT_TRY(tti_list_folder(ctx, o->dir, &s->list));
    if (s->list.n == 0)
        return TT_FAIL(ctx, TT_EIO,
                       "images: folder '%s' has no .jpg, .jpeg, .png or .webp files, nor folders "
                       "with them (%lld other files)",
                       o->dir, (long long)s->list.n_other);
    if (o->corrupt == TT_CORRUPT_SKIP)
        TT_TRY(leave_out(ctx, s));
    s->remedy = "remove the file, or set corrupt: skip";
    if (!o->cache)
        return TT_OK;
    size_t all;
    bool fits = tti_mul_size(s->bytes, (size_t)s->list.n, &all);
    s->cache = fits ? tti_alloc(ctx, all) : NULL;
    s->cached = tti_calloc(ctx, (size_t)s->list.n, sizeof(*s->cached));
    return s->cache != NULL && s->cached != NULL ? TT_OK : TT_ENOMEM;
}

static tt_status images_new(tt_ctx *ctx, const tti_images_about *a, images **out)
{
    images *s = tti_calloc(ctx, 1, sizeof(*s));
    if (s == NULL)
        return TT_ENOMEM;
    s->about = *a;
    s->bytes = (size_t)a->high * (size_t)a->wide * (size_t)a->channels;
    tti_pool_init(&s->pool);
    *out = s;
    return TT_OK;
}

static tt_status images_open(tt_ctx *ctx, const void *options, tt_source *out)
{
    const tt_images_opts *o = options;
    images *s;
    TT_TRY(check_options(ctx, o));
    tti_images_about about = {.high = o->size[0],
                              .wide = o->size[1],
                              .channels = o->channels,
                              .fit = o->fit,
                              .scaled = o->scaled,
                              .max_pixels = o->max_megapixels * 1000000};
    TT_TRY(images_new(ctx, &about, &s));
    tt_status st = images_init(ctx, s, o);
    if (st != TT_OK) {
        images_close(ctx, s);
        return st;
    }
    return make_source(s, out);
}

tt_data *tti_images_of_files(tt_ctx *ctx, const tti_images_about *a, char *const *names, int64_t n)
{
    images *s;
    tt_source source;
    if (images_new(ctx, a, &s) != TT_OK)
        return NULL;
    for (int64_t i = 0; i < n; i++)
        if (tti_list_add(ctx, &s->list, names[i], -1) != TT_OK) {
            images_close(ctx, s);
            return NULL;
        }
    if (make_source(s, &source) != TT_OK)
        return NULL;
    return tt_data_new(ctx, &source, .no_shuffle = true);
}

// ---- questions -------------------------------------------------------------------------------

bool tti_images_is(const tt_data *d)
{
    return d != NULL && d->source.close == images_close;
}

bool tti_images_about_of(const tt_data *d, tti_images_about *out)
{
    if (!tti_images_is(d))
        return false;
    *out = ((const images *)d->source.self)->about;
    return true;
}

char *const *tti_images_words(const tt_data *d, int64_t *n)
{
    const images *s = tti_images_is(d) ? d->source.self : NULL;
    *n = s != NULL && s->list.has_labels ? s->list.words.n : 0;
    return *n > 0 ? s->list.words.words : NULL;
}

const char *tti_images_path(const tt_data *d, int64_t record)
{
    const images *s = tti_images_is(d) ? d->source.self : NULL;
    return s != NULL && record >= 0 && record < s->list.n ? s->list.names[record] : NULL;
}

bool tti_images_where(const tt_data *d, int64_t record, tti_text *t)
{
    const char *path = tti_images_path(d, record);
    if (path != NULL)
        tti_text_add(t, "record %lld, '%s'", (long long)record, path);
    return path != NULL;
}

uint64_t tti_images_hash(const tt_data *d)
{
    static const char *const formats[] = {"jpeg", "png", "webp"};
    const images *s = tti_images_is(d) ? d->source.self : NULL;
    uint64_t h = 11;
    if (s == NULL)
        return 0;
    for (int64_t i = 0; i < s->list.n; i++) {
        h = tti_hash64(s->list.names[i], strlen(s->list.names[i]), h);
        h = tti_hash64(&s->list.labels[i], sizeof(s->list.labels[i]), h);
    }
    for (int i = 0; i < TTI_COUNT(formats); i++) {
        const char *version = tti_decoder_version(formats[i]);
        h = version != NULL ? tti_hash64(version, strlen(version), h) : h + 1;
    }
    return h;
}

static const char *const fit_words[] = {"crop", "stretch", "pad", NULL};
static const char *const corrupt_words[] = {"error", "skip", NULL};
// clang-format off
static const tt_option images_options[] = {
    {"dir", TT_OPT_TEXT, "", "a folder with one folder per class",
     offsetof(tt_images_opts, dir), 0, 0, NULL},
    {"file", TT_OPT_TEXT, "",
     "a CSV file of paths and labels instead; paths are relative to dir, or to the file's folder",
     offsetof(tt_images_opts, file), 0, 0, NULL},
    {"size", TT_OPT_PAIR, "0", "height and width that all images are resized to; required",
     offsetof(tt_images_opts, size), 0, MOST_SIDE, NULL},
    {"channels", TT_OPT_INT32, "3", "3: colour, 1: grey",
     offsetof(tt_images_opts, channels), 1, 3, NULL},
    {"fit", TT_OPT_ENUM, "crop",
     "images of other proportions: crop (use the largest part in the middle), stretch, or pad with "
     "black",
     offsetof(tt_images_opts, fit), 0, 0, fit_words},
    {"scaled", TT_OPT_BOOL, "false",
     "decode JPEG files at 1/2, 1/4 or 1/8 of their size where that is still as large as size",
     offsetof(tt_images_opts, scaled), 0, 0, NULL},
    {"corrupt", TT_OPT_ENUM, "error",
     "damaged files: error when one is read, or skip: all files are decoded once at the start, and "
     "damaged ones are left out",
     offsetof(tt_images_opts, corrupt), 0, 0, corrupt_words},
    {"words", TT_OPT_TEXT, "", "class names in order: \"cat, dog\"; default: sorted",
     offsetof(tt_images_opts, words), 0, 0, NULL},
    {"max_megapixels", TT_OPT_INT, "100", "larger images are refused before they are decoded",
     offsetof(tt_images_opts, max_megapixels), 1, 4000, NULL},
    {"cache", TT_OPT_BOOL, "false",
     "keep resized images in memory, one byte per value, so that each file is decoded once",
     offsetof(tt_images_opts, cache), 0, 0, NULL},
    TT_OPTION_END,
};
// clang-format on

const tt_source_def tti_source_images = {
    .name = "images",
    .help = "JPEG, PNG and WebP files: one folder per class, or a list",
    .options = images_options,
    .options_size = sizeof(tt_images_opts),
    .main = "dir",
    .open = images_open,
};
