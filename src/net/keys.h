/*
 * keys.h - what the processes of a job make of its secret: a key pair for each rank, and passwords.
 */
#ifndef TUTTI_NET_KEYS_H
#define TUTTI_NET_KEYS_H

#include "base/base.h"
#include <tutti/tasks.h>

typedef struct tti_digest {
    uint8_t byte[32];
} tti_digest;

tti_digest tti_sha256(const void *data, size_t bytes);
tti_digest tti_hmac(const void *key, size_t key_bytes, const void *data, size_t bytes);

// 32 bytes for one purpose and rank: nobody without the secret can tell them from random ones.
tti_digest tti_derive(const uint8_t secret[TT_SECRET_BYTES], const char *purpose, int rank);
// Takes the same time wherever they differ.
bool tti_equal(const void *a, const void *b, size_t bytes);

#endif
