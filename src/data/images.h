/*
 * images.h - image files as a source: what the rest of the library asks of it.
 */
#ifndef TUTTI_DATA_IMAGES_H
#define TUTTI_DATA_IMAGES_H

#include "data/csv.h"
#include "data/data.h"
#include "data/decode.h"

// What is done to each file, as a model keeps it.
typedef struct tti_images_about {
    int high, wide, channels;
    tt_images_fit fit;
    bool scaled;
    int64_t max_pixels;
} tti_images_about;

bool tti_images_is(const tt_data *d);
bool tti_images_about_of(const tt_data *d, tti_images_about *out); // false for other data sets
// Class names by number, borrowed; *n is 0 where there are none, or for other data sets.
char *const *tti_images_words(const tt_data *d, int64_t *n);
// Adds "record 3, 'cats/a.jpg'"; false for other data sets.
bool tti_images_where(const tt_data *d, int64_t record, tti_text *t);
const char *tti_images_path(const tt_data *d, int64_t record); // NULL for other data sets
// A hash of all names and of the libraries that decode; 0 for other data sets.
uint64_t tti_images_hash(const tt_data *d);
/*
 * One file, already in memory, as a record: decoded, recoloured, resized to out.
 */
tt_status tti_images_decode(tt_ctx *ctx, const tti_images_about *a, const tti_coded *c,
                            tti_decode_room *r, unsigned char *out) TTI_CHECKED;

// Opens these files without classes: what `tutti predict` is given.
tt_data *tti_images_of_files(tt_ctx *ctx, const tti_images_about *a, char *const *names, int64_t n);

// ---- the list of files (images_list.c) -------------------------------------------------------

typedef struct tti_image_list {
    int64_t n, cap;
    char **names;
    int32_t *labels; // as many; -1: none
    int64_t cap_labels;
    int64_t n_other; // files that are not images, by their names
    tti_words words;
    bool fixed_words, has_labels;
} tti_image_list;
// One folder per class.
tt_status tti_list_folder(tt_ctx *ctx, const char *dir, tti_image_list *l) TTI_CHECKED;
// A CSV file of paths and labels; relative paths are below dir, or the file's folder.
tt_status tti_list_csv(tt_ctx *ctx, const char *file, const char *dir,
                       tti_image_list *l) TTI_CHECKED;
tt_status tti_list_add(tt_ctx *ctx, tti_image_list *l, const char *name, int label) TTI_CHECKED;
// All images below a folder, in order of their names.
tt_status tti_list_walk(tt_ctx *ctx, const char *dir, int label, int depth,
                        tti_image_list *l) TTI_CHECKED;
void tti_list_free(tt_ctx *ctx, tti_image_list *l);

#endif
