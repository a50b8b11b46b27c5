/*
 * catalog.h - what a job file or a program can name, listed with its options: sources, transforms,
 * layers, losses, metrics, optimizers, schedules, strategies, ops and the sections of job files.
 *
 * The lists are the tables that job files are checked against, so they are complete by
 * construction; what a program registered with the context is in them too. Bindings and editors
 * are generated from tt_catalog_json(), which `tutti help --json` prints. docs/catalog.md describes
 * it.
 */
#ifndef TUTTI_CATALOG_H
#define TUTTI_CATALOG_H

#include <tutti/data.h>
#include <tutti/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tt_catalog_group {
    TT_CATALOG_SOURCE = 0,      // of training data
    TT_CATALOG_TEST_SOURCE = 1, // of validation and test data: other defaults, and split
    TT_CATALOG_TRANSFORM = 2,
    TT_CATALOG_LAYER = 3,
    TT_CATALOG_LOSS = 4,
    TT_CATALOG_METRIC = 5,
    TT_CATALOG_OPTIMIZER = 6,
    TT_CATALOG_SCHEDULE = 7,
    TT_CATALOG_STRATEGY = 8,
    TT_CATALOG_OP = 9,       // attributes, as graph texts name them
    TT_CATALOG_SECTION = 10, // maps of a job file with fixed keys: "job", "train.early_stop"
} tt_catalog_group;
#define TT_N_CATALOG_GROUPS 11
TT_API const char *tt_catalog_group_name(tt_catalog_group group); // "layers"; NULL if unknown

// Strings of both structs are borrowed until the context is closed.
typedef struct tt_catalog_entry {
    const char *name; // "dense"
    const char *help; // one line; "" if there is none
    const char *main; // the option that a plain value sets ("dense: 10"); NULL: none
    int n_options;
} tt_catalog_entry;

// What stands behind the name of an option.
typedef enum tt_catalog_form {
    TT_CATALOG_VALUE = 0,  // a value of the type
    TT_CATALOG_MAP = 1,    // a map with the options of a section
    TT_CATALOG_CHOICE = 2, // one entry of a group: adam, or {adam: {lr: 0.1}}
    TT_CATALOG_LIST = 3,   // a list of either
    TT_CATALOG_NAMED = 4,  // a map from names of the user to maps with the options of a section
} tt_catalog_form;

typedef struct tt_catalog_option {
    const char *name;
    const char *help; // one line; "" if there is none
    tt_catalog_form form;
    /*
     * TT_CATALOG_VALUE: "bool", "int", "float", "text" (or a list of texts), "word" (one of
     * choices), "list" (of integers), "size" (bytes: 512MiB), "dtype", "shape", "pair" (of
     * integers). NULL for the other forms.
     */
    const char *type;
    const char *value; // the default as in a job file; "": empty or chosen; NULL: there is none
    bool is_required;
    bool is_from_data;          // if not given, the data says it; fails where that does not
    bool has_bounds;            // of a number or of each number of a list
    double min, max;            //
    const char *const *choices; // a word: all of them; a text: keys of the form {word: value}.
                                // NULL at the end; NULL: any value
    int group;                  // forms other than VALUE: the tt_catalog_group; -1: none
    const char *section;        // the name in TT_CATALOG_SECTION; NULL: none
} tt_catalog_option;

// The number of entries of a group; 0 for NULL or an unknown group.
TT_API int tt_catalog_count(tt_ctx *ctx, tt_catalog_group group);
/*
 * Entry i of a group, and option k of that entry, counted from 0. TT_EINVAL past the end. size is
 * that of the struct as the caller knows it; the macros pass it.
 */
TT_API tt_status tt_catalog_get_sized(tt_ctx *ctx, tt_catalog_group group, int i,
                                      tt_catalog_entry *out, size_t size);
TT_API tt_status tt_catalog_option_sized(tt_ctx *ctx, tt_catalog_group group, int i, int k,
                                         tt_catalog_option *out, size_t size);
#define tt_catalog_get(ctx, group, i, out) \
    tt_catalog_get_sized((ctx), (group), (i), (out), sizeof(tt_catalog_entry))
#define tt_catalog_option_get(ctx, group, i, k, out) \
    tt_catalog_option_sized((ctx), (group), (i), (k), (out), sizeof(tt_catalog_option))

// All groups as one JSON object; free with tt_string_free().
TT_API char *tt_catalog_json(tt_ctx *ctx);

/*
 * Making an entry by its name, as bindings and readers of other formats do. options is a JSON
 * object from names of options to their values as a job file has them, each a string:
 * {"units": "10", "kernel": "[3, 5]"}. What it does not have is the catalogue's default; zero has
 * no special meaning. NULL: all default. TT_EINVAL: unknown names and values out of bounds.
 */
typedef struct tt_catalog_layer_opts {
    size_t opts_size;
    const char *options;
    TT_LAYER_OPTIONS;
} tt_catalog_layer_opts;
// Appends a layer, as tt_layer_dense() and the others do; NULL on failure.
TT_API tt_tensor *tt_catalog_layer_with(tt_model *m, const char *kind,
                                        const tt_catalog_layer_opts *opts);
#define tt_catalog_layer(...) TT_CALL2(tt_catalog_layer, __VA_ARGS__, )

typedef struct tt_catalog_source_opts {
    size_t opts_size;
    const char *options;
    TT_DATA_OPTIONS;
} tt_catalog_source_opts;
// Opens a data set, as tt_csv() and the others do; NULL on failure.
TT_API tt_data *tt_catalog_source_with(tt_ctx *ctx, const char *kind,
                                       const tt_catalog_source_opts *opts);
#define tt_catalog_source(...) TT_CALL2(tt_catalog_source, __VA_ARGS__, )

#ifdef __cplusplus
}
#endif
#endif
