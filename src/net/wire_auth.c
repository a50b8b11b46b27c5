/*
 * wire_auth.c - who is admitted (wire_auth.h).
 */
#include "net/wire_auth.h"
#include "net/keys.h"
#include <string.h>

static bool is_text(const tti_frame *f, const char *text)
{
    return f->bytes == strlen(text) && memcmp(f->data, text, f->bytes) == 0;
}

int tti_auth_rank(const tti_frame *f, int n, const tti_auth_key *keys, int n_keys, bool by_password)
{
    if (n < TTI_ZAP_MOST - 1 || n > TTI_ZAP_MOST || !is_text(&f[4], "tutti"))
        return -1;
    const tti_frame *last = &f[n - 1];
    bool is_key = n == 9 && is_text(&f[7], "CURVE") && last->bytes == 32;
    bool is_password = n == 10 && is_text(&f[7], "PLAIN") && last->bytes == 64 && by_password;
    for (int i = 0; i < n_keys; i++) {
        if (is_key && tti_equal(last->data, keys[i].public_bytes, 32))
            return i;
        if (is_password && tti_equal(last->data, keys[i].password, 64))
            return i;
    }
    return -1;
}
