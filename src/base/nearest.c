/*
 * nearest.c - "did you mean": the edit distance of two words, a swap of neighbours counting one.
 */
#include "base/base.h"
#include <string.h>

#define MAX_WORD 64 // what lies beyond is not compared

int tti_distance(const char *a, const char *b)
{
    int rows[3][MAX_WORD + 1], *before = rows[0], *last = rows[1], *row = rows[2];
    int n = (int)strnlen(a, MAX_WORD), m = (int)strnlen(b, MAX_WORD);
    for (int j = 0; j <= m; j++)
        last[j] = j;
    for (int i = 1; i <= n; i++) {
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int d = last[j - 1] + (a[i - 1] != b[j - 1]);
            d = TTI_MIN(d, TTI_MIN(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d = TTI_MIN(d, before[j - 2] + 1);
            row[j] = d;
        }
        int *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[m];
}

const char *tti_nearest(const char *word, const char *const *names)
{
    const char *best = NULL;
    int n = (int)strnlen(word, MAX_WORD);
    int least = (n < 4 ? 1 : n < 10 ? 2 : 3) + 1; // with more slips it is another word
    for (; *names != NULL; names++) {
        int d = tti_distance(word, *names);
        if (d < least && d < (int)strlen(*names)) {
            best = *names;
            least = d;
        }
    }
    return best;
}
