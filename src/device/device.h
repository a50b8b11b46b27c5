/*
 * device.h (internal) - devices of a context and the backend record behind them.
 *
 * A logical device is one worker that walks lists of plan entries, a team of threads that share the
 * work of one kernel, memory of its own and a limit. Backends are records: CPU here, NVIDIA's GPUs
 * in cuda/, by a module. Nothing outside these folders knows what a device is made of.
 */
#ifndef TUTTI_DEVICE_DEVICE_H
#define TUTTI_DEVICE_DEVICE_H

#include "base/base.h"
#include "base/ctx.h"
#include "base/set.h"
#include "base/thread.h"
#include "device/kernel_key.h"
#include "device/streams.h"
#include <stddef.h>
#include <tutti/extend.h>
#include <tutti/tasks.h>

// Devices of a topology: those of a context, in all its processes, and made-up ones. No array has
// this size: it is the bound that tells a mistyped number, before memory and threads run out.
#define TTI_MOST_DEVICES 65536

typedef struct tti_team tti_team;
typedef struct tti_worker tti_worker;
typedef struct tti_backend tti_backend;

// Work for a device's worker: walks a list, then sets done. Runs on the worker's thread.
typedef struct tti_task {
    void (*fn)(void *arg);
    void *arg;
} tti_task;

// Memory that is given back when there is none left for what is needed.
typedef struct tti_spare {
    struct tti_spare *next;
    void (*drop)(struct tti_spare *s);
} tti_spare;

struct tti_device {
    // As in tti_device_head, for modules. TT_CUDA: state is what tt_launch.device is.
    void *state;
    char name[32];
    tt_ctx *ctx;
    const tti_backend *backend;
    int index;    // among the context's devices
    int task;     // rank of the process whose it is
    bool is_away; // another process's: it has no worker, no team, no memory here
    tti_set near; // of several processes: those whose memory it reads, by rank
    uint64_t near_words[TTI_SET_WORDS(TT_MAX_TASKS)]; // its words, of devices that were opened
    char physical[32];                                // "cpu:0"
    int card;                                         // the number in physical
    tt_device_name full;
    int n_threads;
    bool is_crowded;          // more threads than cores: waits park at once
    size_t limit;             // 0: none
    _Atomic size_t used;      // bytes held
    _Atomic size_t variables; // of them, by variables
    _Atomic size_t arena;     // of them, by activations
    _Atomic size_t fixed;     // of those, by plans beside their arenas: what is fed, constants
    tti_spare *spares;        // dropped, newest first, before an allocation fails
    tti_team *team;
    tti_worker *worker;
    // With streams: events between runs, at the start of a traced one, after collectives.
    void *border, *origin, *joined;
    // Tasks handed to the worker, and how many of them have ended.
    uint32_t n_submitted;
    tti_flag n_done;
    // Its part of work that the devices of a context share, while its worker has it: what it is
    // (comm/comm.h), and which units.
    const struct tti_work *work;
    int64_t first_unit, n_units;
    _Atomic uint64_t n_ended; // entries of plans; its worker's, for others that wait
};

_Static_assert(offsetof(struct tti_device, state) == offsetof(tti_device_head, state) &&
                   offsetof(struct tti_device, name) == offsetof(tti_device_head, name),
               "modules know a device by its head");

// A physical device, for lists and for limits in percent.
typedef struct tti_facts {
    char model[64];
    size_t memory, memory_free; // bytes; 0: not known
    int major, minor;           // compute capability; 0.0: it has none
    char bus[32];
} tti_facts;

/*
 * A backend. alloc counts against the device's limit and fails with TT_ELIMIT or TT_ENOMEM;
 * memory is 64-byte aligned and not cleared. copy moves bytes between memory of any two devices
 * (host memory is device NULL). submit hands the worker one task, the next only when it has ended;
 * n_done tells when, and nothing of the task is looked at any more then.
 */
struct tti_backend {
    const char *name;
    tt_backend_id id;
    bool host_memory;  // kernels read constants and feeds of the host directly
    const char *bound; // of one that is only planned for: in which way plans are bounds; else NULL
    // Physical devices that can be used; why says what is missing if there is none, and else which
    // ones are left out.
    int (*count)(char *why, size_t n);
    void (*facts)(int physical, tti_facts *out);
    bool (*reaches)(int physical, int other); // its memory, directly; NULL: there is only one
    // What decides the bits of its kernels, as text; NULL: the arithmetic's version alone.
    void (*bits)(int physical, char *out, size_t n);
    tt_status (*open)(tti_device *d);
    void (*close)(tti_device *d);
    tt_status (*alloc)(tti_device *d, size_t bytes, void **out);
    void (*free)(tti_device *d, void *p, size_t bytes);
    tt_status (*copy)(tti_device *to, void *dst, tti_device *from, const void *src, size_t bytes);
    tt_status (*submit)(tti_device *d, tti_task task);
    const tt_kernel *(*kernel)(const tti_device *d, tti_kernel_key key); // NULL: it has none
    const tti_streams *streams; // NULL: kernels do their work when called
    bool (*can_read)(const tti_device *d, const tti_device *other); // its memory, from a kernel
    size_t (*overhead)(tti_device *d); // bytes of its card that libraries take for themselves
};

extern const tti_backend tti_backend_cpu;
extern const tti_backend tti_backend_cuda; // cuda/backend.c
// All there are; NULL at the end.
extern const tti_backend *const tti_backends[];

// Bytes of the host's memory that this process may use; 0: not known. is_group: a control group's
// limit says so, not the machine.
size_t tti_machine_memory(bool *is_group);
size_t tti_cgroup_memory(const char *root); // that of its group, files being below root; 0: none

// Does a list ask for all GPUs? Processes of a host that see the same ones then share them.
bool tti_devices_are_all(const char *list);
// Opens the devices of "cpu:0*2@512MiB,cpu:1" on ctx; on failure none is open.
tt_status tti_devices_open(tt_ctx *ctx, const char *spec);
void tti_devices_close(tt_ctx *ctx);
/*
 * What a process tells the others of itself and its devices. All processes of a job have all
 * devices in their contexts, those of the others only to plan with.
 */
typedef struct tti_process_info {
    char name[64];                              // "/job:worker/task:1"
    uint64_t near[TTI_SET_WORDS(TT_MAX_TASKS)]; // words of a set: whose memory it reads, by rank
    int32_t isa, n_devices;
} tti_process_info;
typedef struct tti_device_desc {
    char type[16], physical[32];
    char bits[256]; // of GPUs: what decides the bits of their kernels (tti_backend.bits)
    int32_t index, card, n_threads;
    bool is_crowded;
    uint64_t limit;
} tti_device_desc;
// Describes this process's devices; out has room for them.
void tti_devices_describe(const tt_ctx *ctx, tti_device_desc *out);
// What all processes say of themselves, by rank: is it usable? most: of their numbers of devices.
tt_status tti_processes_check(tt_ctx *ctx, const tti_process_info *of, int *most) TTI_CHECKED;
// Puts the devices of all processes, by rank, in place of this one's; those of rank r begin at
// devices[r * stride].
tt_status tti_devices_join(tt_ctx *ctx, const tti_process_info *of, tti_device_desc *devices,
                           int stride) TTI_CHECKED;

/*
 * made_topology.c: topologies of devices that need not be there, with the options of another one.
 * Plans can be made for them, and nothing runs on them. CPUs have the kernels and threads of this
 * machine; GPUs those of its GPU, or of a recorded profile (gpu_profile.h). Hosts are described in
 * order; processes of one host read each other's memory, and have its devices in equal parts.
 */
typedef struct tti_made_devices {
    bool is_gpu;
    int count;
    const char *profile; // of GPUs that are not here; NULL: the first there is
    size_t memory;       // bytes; 0: as recorded, of CPUs not known
    size_t limit;        // bytes that a plan may use; 0: memory
    double speed;        // for share: auto; 0: 1
} tti_made_devices;
typedef struct tti_made_host {
    int count; // hosts like this
    int n_processes;
    const tti_made_devices *devices;
    int n_devices; // rows of devices
} tti_made_host;
tt_status tti_topology_of_hosts(tt_ctx *ctx, const tti_topology *from, const tti_made_host *hosts,
                                int n, tti_topology *out) TTI_CHECKED;
// Hosts of n devices that are like the first of from, limits included.
tt_status tti_topology_make(tt_ctx *ctx, const tti_topology *from, int hosts, int n,
                            tti_topology *out) TTI_CHECKED;
// The same from text: "8x4cpu", hosts x devices and their kind; "4", on one host.
tt_status tti_topology_parse(tt_ctx *ctx, const tti_topology *from, const char *text,
                             tti_topology *out) TTI_CHECKED;

// The device a name means in a topology, missing fields being any; NULL if there is none.
// "local:1" is the second: where a replica is all there is.
tti_device *tti_device_match(const tti_topology *top, const tt_device_name *name);
// "cpu:0, cpu:1": the context's devices; at the end "..." if there are more than fit.
#define TTI_DEVICE_LIST 128
const char *tti_device_list(const tti_topology *top, char out[TTI_DEVICE_LIST]);

// 64-byte aligned host memory.
void *tti_host_alloc(tt_ctx *ctx, size_t bytes);
void tti_host_free(tt_ctx *ctx, void *p);

// Memory of the host that large values are fed from: pinned, where a device has streams.
void *tti_staging_alloc(tt_ctx *ctx, size_t bytes);
void tti_staging_free(tt_ctx *ctx, void *p);

// Counted allocation on a device; frees with the same size.
tt_status tti_device_alloc(tti_device *d, size_t bytes, void **out);
void tti_device_free(tti_device *d, void *p, size_t bytes);
// The same for what a plan has beside its arena.
tt_status tti_device_alloc_fixed(tti_device *d, size_t bytes, void **out) TTI_CHECKED;
void tti_device_free_fixed(tti_device *d, void *p, size_t bytes);

// An entry has ended; its worker alone.
static inline void tti_device_moved(tti_device *d)
{
    uint64_t n = atomic_load_explicit(&d->n_ended, memory_order_relaxed);
    atomic_store_explicit(&d->n_ended, n + 1, memory_order_relaxed);
}

// The first of a context's devices that is a GPU of this process; NULL: it has none.
tti_device *tti_first_gpu(const tt_ctx *ctx);

// Do its kernels only enqueue their work?
static inline bool tti_has_streams(const tti_device *d)
{
    return d->backend->streams != NULL;
}
// The kernel of an op there; NULL, or one without functions: it has none.
const tt_kernel *tti_device_kernel(const tti_device *d, const tt_op *op);
// The types that output 0 may have where a kernel of a device with streams computes it, as a set of
// bits; f64 is for kernels that name it themselves.
unsigned tti_stream_types(const tt_op *op, const tt_kernel *k);
/*
 * Which arithmetic a context's weights are made by: TT_ARITHMETIC on CPUs, 1000 more where GPUs
 * compute, 2000 more where both do. Bits are equal within one of them alone.
 */
int tti_arithmetic_of(const tt_ctx *ctx);
const char *tti_arithmetic_note(int number); // " (GPUs)"; "" of CPUs
// What else decides the bits of its devices here: models and libraries of GPUs, each once; "" of
// CPUs.
#define TTI_BITS_TEXT 256
void tti_bits_of(const tt_ctx *ctx, char out[TTI_BITS_TEXT]);
// Bytes between memory of any two devices, NULL being the host; returns when they are there.
tt_status tti_device_copy(tti_device *to, void *dst, tti_device *from, const void *src,
                          size_t bytes) TTI_CHECKED;
// Do kernels of d read the other's memory where it is?
bool tti_device_can_read(const tti_device *d, const tti_device *other);

// ---- workers ---------------------------------------------------------------------------------

// The thread of a device that runs its tasks, one after another.
tt_status tti_worker_open(tti_device *d) TTI_CHECKED;
void tti_worker_close(tti_device *d);
tt_status tti_worker_submit(tti_device *d, tti_task task); // as tti_backend.submit

// ---- teams -----------------------------------------------------------------------------------

// A team of n threads, the caller being thread 0; n - 1 are started, named after the device.
tt_status tti_team_open(tt_ctx *ctx, const char *name, int n, int spins, tti_team **out);
void tti_team_close(tti_team *t);
/*
 * Runs one phase of a kernel: units in chunks, taken by whoever is free. launch is the template;
 * each thread gets its own copy with begin, end, thread and local filled. The first failure wins.
 */
tt_status tti_team_run(tti_team *t, tt_kernel_fn fn, const tt_launch *launch, int phase,
                       int64_t units, int64_t chunk, size_t local_bytes);

// Cores this process may use; 0 < n.
int tti_cores(void);
// The best instruction set of this machine; and the set of a name, TT_EINVAL when it cannot run.
int tti_best_isa(void);
tt_status tti_find_isa(tt_ctx *ctx, const char *name, int *out);
const char *tti_isa_name(int isa);

#endif
