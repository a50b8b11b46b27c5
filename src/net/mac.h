/*
 * mac.h - shows that a message is of a rank and unchanged, without hiding it: Poly1305 with a key
 * for each message, made by ChaCha20 of the pair's key and the message's number (RFC 8439).
 */
#ifndef TUTTI_NET_MAC_H
#define TUTTI_NET_MAC_H

#include "base/base.h"

#define TTI_MAC_KEY 32

typedef struct tti_tag {
    uint8_t byte[16];
} tti_tag;

// A number is used for one message only, or for the same one again.
tti_tag tti_mac(const uint8_t key[TTI_MAC_KEY], uint64_t number, const void *data, size_t bytes);

// The parts of it, which have published examples.
tti_tag tti_poly1305(const uint8_t key[TTI_MAC_KEY], const void *data, size_t bytes);
void tti_chacha20(const uint8_t key[TTI_MAC_KEY], uint32_t block, const uint8_t nonce[12],
                  uint8_t out[64]);

#endif
