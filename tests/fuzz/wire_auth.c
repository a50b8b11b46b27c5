/*
 * zap.c - fuzzes who is admitted to a job: frames of a request for authentication, each a length
 * byte and that many bytes. Only who shows a key of the job, or its password where those count, is
 * let in.
 */
#include "net/wire_auth.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tti_auth_key keys[3];
    for (int i = 0; i < 3; i++) {
        memset(keys[i].public_bytes, 'a' + i, sizeof(keys[i].public_bytes));
        memset(keys[i].password, 'p' + i, sizeof(keys[i].password) - 1);
    }
    tti_frame f[TTI_ZAP_MOST + 2] = {{NULL, 0}};
    char *copy[TTI_ZAP_MOST + 2];
    int n = 0;
    bool by_password = size > 0 && data[0] % 2 == 1;
    for (size_t at = 1; at < size && n < TTI_ZAP_MOST + 2; n++) {
        size_t bytes = TTI_MIN((size_t)data[at], size - at - 1);
        copy[n] = malloc(bytes + (bytes == 0)); // of its own size
        expect(copy[n] != NULL);
        memcpy(copy[n], data + at + 1, bytes);
        f[n] = (tti_frame){copy[n], bytes};
        at += bytes + 1;
    }
    int rank = tti_auth_rank(f, n, keys, 3, by_password);
    expect(rank >= -1 && rank < 3);
    if (rank >= 0 && n == 9)
        expect(f[8].bytes == 32 && memcmp(f[8].data, keys[rank].public_bytes, 32) == 0);
    else if (rank >= 0)
        expect(n == 10 && by_password && memcmp(f[9].data, keys[rank].password, 64) == 0);
    for (int i = 0; i < n; i++)
        free(copy[i]);
    return 0;
}
