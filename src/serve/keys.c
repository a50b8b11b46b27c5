/*
 * keys.c - whose key opens a connection to a server.
 *
 * A cluster has one secret of 32 bytes: a key file, TUTTI_SECRET_FILE or TUTTI_SECRET. From it come
 * two key pairs (net/keys.h), of servers and of clients, so that both sides prove that they have
 * it. A server on loopback without one makes its own and keeps it in a file that its user alone
 * can read (cluster/loopback.c), named after its port, where clients of the same user find it.
 */
#include "net/keys.h"
#include "base/ctx.h"
#include "cluster/launchers.h"
#include "serve/serve.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#ifdef TUTTI_HAVE_ZMQ
#include "net/zmq_weak.h"
#endif

#define REMEDY "; make one with 'tutti key new FILE'"

tt_status tti_target_address(tt_ctx *ctx, const char *target, char out[TTI_ADDRESS])
{
    static const char scheme[] = "tutti://";
    char found[TTI_EXCERPT];
    size_t n = strlen(scheme);
    const char *address = strncmp(target, scheme, n) == 0 ? target + n : NULL;
    if (address == NULL)
        return TT_FAIL(ctx, TT_EINVAL, "target '%s' is not tutti://host:port",
                       tti_excerpt(found, target));
    const char *fault = tti_address_fault(address, true);
    if (fault != NULL || strlen(address) >= TTI_ADDRESS)
        return TT_FAIL(ctx, TT_EINVAL, "target '%s' is not tutti://host:port: %s",
                       tti_excerpt(found, target), fault != NULL ? fault : "it is too long");
    snprintf(out, TTI_ADDRESS, "%s", address);
    return TT_OK;
}

// A key that was given: *has false: none was.
static tt_status given(tt_ctx *ctx, const char *file, unsigned char out[TT_SECRET_BYTES], bool *has)
{
    tti_here here;
    tti_cluster_here(&here);
    *has = file != NULL && file[0] != '\0';
    if (*has)
        return tti_secret_read(ctx, &here.env, "key file ", file, out);
    return tti_secret_find(ctx, &here.env, out, has);
}

tt_status tti_key_of_server(tt_ctx *ctx, const char *file, const char *address, tti_serve_key *out)
{
    tti_here here;
    tti_cluster_here(&here);
    out->file.fd = -1;
    TT_TRY(given(ctx, file, out->secret, &out->is_given));
    if (out->is_given)
        return TT_OK;
    if (!tti_is_loopback(address))
        return TT_FAIL(ctx, TT_EINVAL,
                       "a server at %s can be reached from other machines and needs a key" REMEDY
                       ", and name it as key: in the cluster file or by TUTTI_SECRET_FILE",
                       address);
    return tti_loopback_key_get(
        ctx,
        &(tti_loopback_opts){.rank = 0,
                             .rank_0 = "the server",
                             .address = address,
                             .runtime = tti_cluster_get(&here.env, "XDG_RUNTIME_DIR")},
        &out->file, out->secret);
}

tt_status tti_key_of_target(tt_ctx *ctx, const char *file, const char *address,
                            unsigned char out[TT_SECRET_BYTES])
{
    tti_here here;
    tti_cluster_here(&here);
    bool has;
    TT_TRY(given(ctx, file, out, &has));
    if (has)
        return TT_OK;
    if (!tti_is_loopback(address))
        return TT_FAIL(ctx, TT_EINVAL,
                       "no key for the server at %s: name its key file (--key FILE, .key) or set "
                       "TUTTI_SECRET_FILE",
                       address);
    tti_loopback_key file_of = {.fd = -1};
    tti_loopback_opts o = {.rank = 1,
                           .rank_0 = "the server",
                           .address = address,
                           .runtime = tti_cluster_get(&here.env, "XDG_RUNTIME_DIR")};
    tti_attempt a;
    tti_attempt_begin(ctx, &a);
    tt_status st = tti_loopback_key_get(ctx, &o, &file_of, out);
    (void)tti_attempt_end(ctx, &a);
    if (st != TT_OK)
        return TT_FAIL(
            ctx, TT_EPEER,
            "no server of this user listens at %s (it would hold the key file '%s'); start one "
            "with 'tutti serve', or name the key file of another user's server",
            address, file_of.path);
    return TT_OK;
}

bool tti_serve_pair(const unsigned char secret[TT_SECRET_BYTES], bool server, char public_key[41],
                    char secret_key[41])
{
#ifdef TUTTI_HAVE_ZMQ
    tti_digest d = tti_derive(secret, server ? "serve server" : "serve client", 0);
    bool ok = zmq_z85_encode(secret_key, d.byte, sizeof(d.byte)) != NULL &&
              zmq_curve_public(public_key, secret_key) == 0;
    explicit_bzero(&d, sizeof(d));
    return ok;
#else
    (void)secret, (void)server;
    public_key[0] = secret_key[0] = '\0';
    return false;
#endif
}
