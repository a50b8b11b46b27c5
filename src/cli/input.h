/*
 * input.h - files of records for a model: opened as the model knows its data, so that columns are
 * found by name, classes have their numbers and the preprocessing is applied.
 */
#ifndef TUTTI_CLI_INPUT_H
#define TUTTI_CLI_INPUT_H

#include "cli/model.h"

// What --input names: files, in order.
typedef struct cli_files {
    char **names;
    int64_t n;
    int64_t cap;
    char spool[64]; // what came by standard input is here; "": nothing did
} cli_files;
// Appends what a word names. images: of folders all images are taken, however deep.
tt_status cli_files_find(tt_ctx *ctx, const char *word, bool images, cli_files *out) TTI_CHECKED;
void cli_files_free(tt_ctx *ctx, cli_files *f);

/*
 * Records of a file, shapes and types compared with the model's. with_target: the file must have
 * the targets, too. layout: --layout, or NULL.
 */
tt_status cli_input_open(cli_model *m, const char *file, bool with_target, const char *layout,
                         tt_data **out) TTI_CHECKED;
// Is it a model that was trained on image files?
bool cli_input_is_images(cli_model *m);
// Image files, which have no classes.
tt_status cli_input_images(cli_model *m, char *const *names, int64_t n, tt_data **out) TTI_CHECKED;
// Opens a file as a model of image files, JSON lines or TFRecord takes it; false for other models.
// *out is NULL if it cannot be opened, which is recorded.
bool cli_input_kind(cli_model *m, const char *file, bool with_target, tt_data **out);
// A text as records with targets, for a model that was trained on text.
tt_status cli_input_text(cli_model *m, const char *file, const json_t *vocabulary,
                         tt_data **out) TTI_CHECKED;
// The records of d must be what the model takes; field: which field each input is.
tt_status cli_input_match(cli_model *m, const char *file, const tt_data *d,
                          int field[TTI_MAX_INPUTS]) TTI_CHECKED;

#endif
