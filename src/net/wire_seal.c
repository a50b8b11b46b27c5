/*
 * wire_seal.c - keys of the wire (wire.h), and data messages without encryption: each ends with a
 * seal, its number and a tag that only the two ranks can make (mac.c).
 *
 * The receiver makes a key at random and tells it by its encrypted control connections alone. So a
 * message of another run, of another pair of ranks or of another place in the row does not fit.
 */
#include "net/wire.h"

#ifdef TUTTI_HAVE_ZMQ
#include "base/secure.h"
#include "net/wire_own.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

// ---- keys ------------------------------------------------------------------------------------

// What a rank shows to another before it sends data that is not encrypted. It keeps others away,
// but whoever listens can repeat it: what counts is each message's seal.
static void print_password(const uint8_t data_key[TT_SECRET_BYTES], int rank, char out[65])
{
    tti_digest d = tti_derive(data_key, "admit", rank);
    for (int b = 0; b < 32; b++)
        snprintf(out + (size_t)2 * b, 3, "%02x", d.byte[b]);
}

tt_status tti_wire_make_keys(tti_wire *w, const uint8_t *secret)
{
    size_t n = (size_t)w->n;
    w->secrets_bytes =
        sizeof(tti_wire_secrets) + n * (sizeof(tti_auth_key) + 2 * sizeof(tti_digest));
    tti_wire_secrets *s = w->secrets = tti_secure_new(w->ctx, w->secrets_bytes);
    if (s == NULL)
        return TT_ENOMEM;
    s->mac_in = (tti_digest *)(s + 1);
    s->mac_out = s->mac_in + n;
    s->shown = (tti_auth_key *)(s->mac_out + n);
    if (getrandom(s->data_key, sizeof(s->data_key), 0) != sizeof(s->data_key))
        return TT_FAIL(w->ctx, TT_EIO, "the system gives no random numbers");
    for (int i = 0; i < w->n; i++) {
        tti_digest d = tti_derive(secret, "curve", i);
        char key[41];
        zmq_z85_encode(key, d.byte, sizeof(d.byte));
        int rc = zmq_curve_public(w->public_keys[i], key);
        if (i == w->self)
            memcpy(s->own_key, key, sizeof(key));
        explicit_bzero(key, sizeof(key));
        explicit_bzero(&d, sizeof(d));
        if (rc != 0)
            return TT_FAIL(w->ctx, TT_EUNSUPPORTED, "this ZeroMQ has no encryption: %s",
                           zmq_strerror(errno));
        zmq_z85_decode(s->shown[i].public_bytes, w->public_keys[i]);
        print_password(s->data_key, i, s->shown[i].password);
        s->mac_in[i] = tti_derive(s->data_key, "mac", i);
    }
    return TT_OK;
}

// The rank's own key makes what is shown to it and what seals messages to it.
void tti_wire_use_key(tti_wire *w, int rank, void *socket, const uint8_t *data_key)
{
    char name[16], password[65];
    snprintf(name, sizeof(name), "%d", w->self);
    print_password(data_key, w->self, password);
    (void)zmq_setsockopt(socket, ZMQ_PLAIN_USERNAME, name, strlen(name));
    (void)zmq_setsockopt(socket, ZMQ_PLAIN_PASSWORD, password, strlen(password));
    w->secrets->mac_out[rank] = tti_derive(data_key, "mac", w->self);
    explicit_bzero(password, sizeof(password));
}

// ---- seals -----------------------------------------------------------------------------------

// With mu held: a message that is sent once more has the seal it had.
void tti_wire_seal(tti_wire *w, int to, char *message, size_t bytes)
{
    tti_seal s = {.number = w->links[to].data.n_sealed++};
    s.tag = tti_mac(w->secrets->mac_out[to].byte, s.number, message, bytes);
    memcpy(message + bytes, &s, sizeof(s));
}

// Takes the seal off a message: it is what the rank sent, and not one that has come before.
bool tti_wire_unseal(tti_wire *w, int from, zmq_msg_t *m, size_t *bytes)
{
    tti_seal seal = {.number = 0};
    const char *data = zmq_msg_data(m);
    size_t n = zmq_msg_size(m);
    int fd = zmq_msg_get(m, ZMQ_SRCFD);
    if (n == 0) // of a new connection
        return false;
    tti_tag tag = {{0}};
    if (n >= sizeof(seal)) {
        memcpy(&seal, data + n - sizeof(seal), sizeof(seal));
        tag = tti_mac(w->secrets->mac_in[from].byte, seal.number, data, n - sizeof(seal));
    }
    if (n < sizeof(seal) || !tti_equal(&tag, &seal.tag, sizeof(tag))) {
        int so_far = atomic_fetch_add(&w->n_forged, 1) + 1;
        if ((so_far & (so_far - 1)) == 0)
            TT_LOG(w->ctx, TT_WARN,
                   "a data message that claims to be from rank %d was altered (%d so far): it is "
                   "dropped and its connection is closed",
                   from, so_far);
        tti_listener_cut(&w->data_listener, fd);
        return false;
    }
    tti_listener_know(&w->data_listener, fd);
    if (seal.number != w->links[from].n_got)
        return false; // it was here, or those before it come first
    w->links[from].n_got++;
    *bytes = n - sizeof(seal);
    return true;
}

#endif
