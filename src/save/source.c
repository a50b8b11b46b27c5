/*
 * source.c - opens checkpoints and safetensors files alike.
 */
#include "save/source.h"
#include "save/manifest.h"
#include "save/pt.h"
#include <string.h>
#include <unistd.h>

static tti_origin origin_of(char *const *metadata)
{
    for (; *metadata != NULL; metadata += 2)
        if (strcmp(metadata[0], "format") == 0)
            return strcmp(metadata[1], "tutti") == 0 ? TTI_FROM_TUTTI
                   : strcmp(metadata[1], "pt") == 0  ? TTI_FROM_TORCH
                                                     : TTI_FROM_UNKNOWN;
    return TTI_FROM_UNKNOWN;
}

static tt_status read_safetensors(tt_ctx *ctx, tti_source *s, int fd, uint64_t bytes)
{
    char *all = s->snapshot.memory[0] = tti_alloc(ctx, (size_t)bytes);
    TT_TRY(all == NULL ? TT_ENOMEM : tti_file_pread(ctx, s->file, fd, all, (size_t)bytes, 0));
    TT_TRY(tti_safetensors_parse(ctx, s->file, all, (size_t)bytes, bytes, &s->table));
    for (int64_t i = 0; i < s->table.n; i++)
        s->table.tensors[i].data = all + s->table.offsets[i];
    return TT_OK;
}

static tt_status open_file(tt_ctx *ctx, tti_source *s)
{
    int fd;
    uint64_t bytes;
    TT_TRY(tti_file_open(ctx, s->file, &fd, &bytes));
    char head[8] = {0};
    tt_status st = tti_file_pread(ctx, s->file, fd, head, (size_t)TTI_MIN(bytes, 8), 0);
    if (st == TT_OK && tti_is_pt(head, (size_t)TTI_MIN(bytes, 8)))
        st = tti_pt_read(ctx, s->file, &s->table, &s->snapshot.memory[0]);
    else if (st == TT_OK)
        st = read_safetensors(ctx, s, fd, bytes);
    close(fd);
    TT_TRY(st);
    s->tensors = s->table.tensors;
    s->n = s->table.n;
    s->origin = s->snapshot.origin = origin_of(s->table.metadata);
    return TT_OK;
}

static tt_status open_any(tt_ctx *ctx, const char *path, tti_source *s)
{
    TT_TRY(tti_checkpoint_resolve(ctx, path, s->file));
    s->is_checkpoint = tti_folder_exists(s->file);
    if (!s->is_checkpoint)
        return open_file(ctx, s);
    TT_TRY(tti_checkpoint_read(ctx, s->file, &s->snapshot));
    s->tensors = s->snapshot.tensors;
    s->n = s->snapshot.n_weights;
    return tti_file_join(ctx, s->file, s->snapshot.path, tti_checkpoint_files[TTI_FILE_WEIGHTS]);
}

tt_status tti_source_open(tt_ctx *ctx, const char *path, tti_source *out)
{
    *out = (tti_source){.table = {.ctx = ctx, .fd = -1}};
    tt_status st = open_any(ctx, path, out);
    if (st != TT_OK)
        tti_source_close(ctx, out);
    return st;
}

tt_status tti_source_usable(const tti_source *s, int64_t i)
{
    return s->is_checkpoint ? TT_OK : tti_safetensors_usable(&s->table, i);
}

void tti_source_close(tt_ctx *ctx, tti_source *s)
{
    tti_snapshot_free(ctx, &s->snapshot);
    tti_safetensors_close(&s->table);
    s->tensors = NULL;
    s->n = 0;
}
