/*
 * nvml.cu - how much memory a card has left, asked of the driver's management library: CUDA itself
 * would make a context on the card for that, which takes hundreds of megabytes.
 */
#include "cuda/parts.h"

// As in nvml.h, whose versioned names these are.
typedef struct nvml_memory {
    unsigned long long total, free, used;
} nvml_memory;
typedef int (*init_fn)(void);
typedef int (*find_fn)(const char *bus, void **device);
typedef int (*memory_fn)(void *device, nvml_memory *out);

#ifdef TTI_EMU

bool tti_cuda_nvml_memory(const char *bus, size_t *free_bytes, size_t *total)
{
    return emu_card_memory(bus, free_bytes, total);
}

#else

bool tti_cuda_nvml_memory(const char *bus, size_t *free_bytes, size_t *total)
{
    static const char *const names[] = {"libnvidia-ml.so.1", NULL};
    void *lib = tti_cuda_library(names, NULL), *device = NULL;
    init_fn init = (init_fn)tti_cuda_symbol(lib, "nvmlInit_v2");
    find_fn find = (find_fn)tti_cuda_symbol(lib, "nvmlDeviceGetHandleByPciBusId_v2");
    memory_fn memory = (memory_fn)tti_cuda_symbol(lib, "nvmlDeviceGetMemoryInfo");
    nvml_memory m = {};
    if (init == NULL || find == NULL || memory == NULL || init() != 0 || find(bus, &device) != 0 ||
        memory(device, &m) != 0)
        return false;
    *free_bytes = (size_t)m.free;
    *total = (size_t)m.total;
    return true;
}

#endif
