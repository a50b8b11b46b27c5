/*
 * share.h - a job's processes and its checkpoints: the first process reads and writes them, the
 * others get what they need from it. So no folder has to be the same on all machines.
 */
#ifndef TUTTI_SAVE_SHARE_H
#define TUTTI_SAVE_SHARE_H

#include "base/ctx.h"
#include "save/checkpoint.h"

// Of a context without other processes: the first of one.
bool tti_is_first(const tt_ctx *ctx);
int tti_ranks(const tt_ctx *ctx);

/*
 * All ranks call it, after the first one has read a snapshot (st says how that went) or found that
 * there is none (*has false): the others get a copy, to be freed by tti_snapshot_free().
 */
tt_status tti_snapshot_share(tt_ctx *ctx, tt_status st, tti_snapshot *s, bool *has) TTI_CHECKED;
/*
 * The same from any rank of several. has_it: this one needs no copy, and *s stays as it is;
 * likewise that of the rank it comes from.
 */
tt_status tti_snapshot_share_from(tt_ctx *ctx, int from, bool has_it, tti_snapshot *s,
                                  bool *has) TTI_CHECKED;
/*
 * All ranks call it, after the first one has done something that may take its time, as writing to a
 * disk does: nobody goes on before. An error of one is everybody's.
 */
tt_status tti_ranks_wait(tt_ctx *ctx, tt_status st, const char *what) TTI_CHECKED;

#endif
