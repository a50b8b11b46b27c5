/*
 * list_parts.c - the catalogue: prints every layer that a job file or a program can use, and the
 * options of one of them.
 */
#include <stdio.h>
#include <string.h>
#include <tutti/tutti.h>

// The options of one layer: name, type, default, meaning.
static void print_options(tt_ctx *ctx, int layer, const tt_catalog_entry *e)
{
    tt_catalog_option o;
    printf("\n%s:\n", e->name);
    for (int k = 0; k < e->n_options; k++) {
        if (tt_catalog_option_get(ctx, TT_CATALOG_LAYER, layer, k, &o) != TT_OK)
            return;
        printf("  %-8s %-5s %-15s %s\n", o.name, o.type, o.is_required ? "required" : o.value,
               o.help);
    }
}

int main(void)
{
    tt_ctx *ctx = tt_open();
    tt_catalog_entry e;
    int n = tt_catalog_count(ctx, TT_CATALOG_LAYER);

    for (int i = 0; i < n && tt_catalog_get(ctx, TT_CATALOG_LAYER, i, &e) == TT_OK; i++)
        printf("%-18s %s\n", e.name, e.help);
    for (int i = 0; i < n && tt_catalog_get(ctx, TT_CATALOG_LAYER, i, &e) == TT_OK; i++)
        if (strcmp(e.name, "dense") == 0)
            print_options(ctx, i, &e);
    return tt_close(ctx) == TT_OK ? 0 : 1;
}
