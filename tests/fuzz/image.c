/*
 * image.c - fuzzes what is around the decoders of image files: memory, resizing, refusals.
 */
#include "data/images.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char out[24 * 20 * 3];
    tt_ctx *ctx = fuzz_ctx();
    for (int choice = 0; choice < 3; choice++) {
        tti_decode_room room = {0};
        tti_images_about a = {.high = 24,
                              .wide = 20,
                              .channels = choice == 1 ? 1 : 3,
                              .fit = (tt_images_fit)choice,
                              .scaled = choice == 2,
                              .max_pixels = 100000};
        tti_coded c = {.path = "fuzz", .data = data, .n = size};
        if (tti_images_decode(ctx, &a, &c, &room, out) != TT_OK) {
            expect(tt_last_error(ctx).message[0] != '\0');
            tt_clear_error(ctx);
        }
        tti_room_free(&room);
    }
    return 0;
}
