/*
 * hints.h - words of other frameworks, and what Tutti calls it. One table; messages about unknown
 * keys, kinds, values, flags and topics look here.
 */
#ifndef TUTTI_BASE_HINTS_H
#define TUTTI_BASE_HINTS_H

#include "base/base.h"

typedef struct tti_hint {
    const char *kind;  // what the word is used as: "layer", "loss", ...; "key": a key of a job
    const char *where; // key: the section it stands in, "model"; NULL: any
    const char *words; // as others write it, with spaces between
    const char *ours;  // a name or the path of a key; NULL: note says all
    const char *note;  // what to say in addition; NULL: nothing
} tti_hint;

/*
 * The hint for a word, in any spelling: CrossEntropyLoss, cross-entropy-loss and
 * nn.CrossEntropyLoss are one. path is where a key stands ("train", "model.0.dense"); NULL for
 * other kinds. NULL: there is none.
 */
const tti_hint *tti_hint_find(const char *kind, const char *path, const char *word);
const tti_hint *tti_hint_at(int i); // the whole table; NULL past the end

// As the end of a sentence: "use train.batch".
#define TTI_HINT_MAX 320
const char *tti_hint_text(const tti_hint *h, char out[TTI_HINT_MAX]);

// Does the hint (NULL: none) say more than "did you mean near"? near NULL: nothing is near.
bool tti_hint_helps(const tti_hint *h, const char *word, const char *near);

// Are the two the same but for case and signs between letters? "Conv2D", "conv_2d"
bool tti_is_same_word(const char *a, const char *b);
// The one of names (NULL at the end) that is the same, or else the nearest; NULL: none is near.
const char *tti_meant(const char *word, const char *const *names);

#endif
