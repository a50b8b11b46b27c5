/*
 * device.h - device names and the devices a context has.
 *
 * A full name is /job:worker/replica:0/task:1/device:CPU:0, the short form is cpu:0; missing fields
 * are filled by merging. A physical device can be divided into logical devices: "cpu:0*4" gives
 * cpu:0 to cpu:3 of the context, each with its share of the cores, its own memory and memory limit
 * ("cpu:0*2@512MiB"). Devices that are not selected are never opened.
 */
#ifndef TUTTI_DEVICE_H
#define TUTTI_DEVICE_H

#include <tutti/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TT_DEVICE_NAME_MAX 128

// A parsed device name; fields not given are "" or -1.
typedef struct tt_device_name {
    char job[32];
    int replica;
    int task;
    char type[16]; // lower case: "cpu", "gpu"
    int index;
} tt_device_name;

/*
 * Parses all of TensorFlow's forms, short and full: "cpu:0", "/cpu:0", "/device:CPU:0",
 * "/job:worker/replica:0/task:1/device:GPU:0", "/job:ps/task:2", "gpu". Fails with TT_EPARSE and a
 * message that says what is wrong. ctx may be NULL (then there is no message).
 */
TT_API tt_status tt_device_parse(tt_ctx *ctx, const char *text, tt_device_name *out);

// Fills the missing fields of *name from *base.
TT_API void tt_device_merge(tt_device_name *name, const tt_device_name *base);

// Prints fully: "/job:localhost/replica:0/task:0/device:CPU:0"; missing fields are left out.
TT_API void tt_device_print(const tt_device_name *name, char out[TT_DEVICE_NAME_MAX]);

// A device of a context.
typedef struct tt_device_info {
    char name[32];     // "cpu:1": its name in this context
    char physical[32]; // "cpu:0": the physical device
    char model[64];    // "AMD EPYC"
    int threads;       // number of CPU threads it uses
    size_t limit;      // memory limit in bytes; 0: none
    size_t variables;  // bytes used by variables
    size_t arena;      // bytes used by activations
    size_t overhead;   // bytes used by GPU libraries for themselves; 0 on a CPU
} tt_device_info;

TT_API int tt_device_count(const tt_ctx *ctx);
TT_API tt_status tt_device_get_sized(tt_ctx *ctx, int i, tt_device_info *out, size_t size);
#define tt_device_get(ctx, i, out) tt_device_get_sized((ctx), (i), (out), sizeof(tt_device_info))

#ifdef __cplusplus
}
#endif
#endif
