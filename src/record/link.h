/*
 * link.h - what chain.c, which writes a chain, and chain_read.c, which reads one, share.
 */
#ifndef TUTTI_RECORD_LINK_H
#define TUTTI_RECORD_LINK_H

#include "record/chain.h"

#define TTI_LINK_WORD ", \"link\": \"" // in no text of JSON: its quotes would be escaped

void tti_hex(const void *data, size_t bytes, char *out); // 2 * bytes digits and a zero
// Of the link before and the body; false: out of memory.
bool tti_link_make(tt_ctx *ctx, const char *before, const char *body, size_t n, char out[TTI_LINK]);
void tti_link_sign(const uint8_t key[TTI_CHAIN_KEY], const char *link, char out[TTI_LINK]);

#endif
