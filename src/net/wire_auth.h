/*
 * wire_auth.h - who is admitted: a request of ZeroMQ's authentication protocol, frame by frame,
 * against the keys of the job. The frames hold what a stranger sent.
 */
#ifndef TUTTI_NET_WIRE_AUTH_H
#define TUTTI_NET_WIRE_AUTH_H

#include "base/base.h"

typedef struct tti_frame {
    const void *data;
    size_t bytes;
} tti_frame;

// A request: route, "", version, request, domain, address, identity, mechanism, credentials. The
// last are a key, or without encryption a name and a password.
#define TTI_ZAP_MOST 10
#define TTI_ZAP_ID   3

typedef struct tti_auth_key {
    uint8_t public_bytes[32];
    char password[65]; // of data without encryption: only what keeps others away (wire.c)
} tti_auth_key;

// The rank whose key, or password where those count, a request shows; -1: nobody's.
int tti_auth_rank(const tti_frame *f, int n, const tti_auth_key *keys, int n_keys,
                  bool by_password);

#endif
