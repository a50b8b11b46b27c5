/*
 * emu.h - between the files of the emulation.
 */
#ifndef TUTTI_EMU_EMU_H
#define TUTTI_EMU_EMU_H

#include "cuda_runtime.h"
#include <functional>
#include <mutex>
#include <vector>

// One lock for all there is: cards, memory, streams, the kernel that runs.
extern std::recursive_mutex emu_mutex;
#define EMU_LOCK std::lock_guard<std::recursive_mutex> emu_guard(emu_mutex)

// Gives e back and keeps it as this thread's last error.
cudaError_t emu_error(cudaError_t e);
// The error that lost the card, cudaSuccess while it works; every call looks.
cudaError_t emu_lost(void);
void emu_lose(cudaError_t e);
long emu_number(const char *name, long otherwise); // of the environment

int emu_current_card(void);
int emu_card_of(cudaStream_t s); // -1: no such stream
// A range of memory to be read or written by a copy of this kind: is it what the kind says?
bool emu_is_range(const void *p, size_t bytes, bool may_host, bool may_device);

int emu_card_at(const void *p); // whose memory; -1: the host's
// Can what runs on a card touch memory of the other (-1: the host)?
bool emu_reaches(int card, int other);
void emu_fence(int card, bool on); // takes what it does not reach away from a kernel, and back

// Runs fn in the stream's order, or adds it to the capture that is on.
cudaError_t emu_submit(cudaStream_t s, std::function<void()> fn);
/*
 * Work that streams do together, each one's part of it in its own order: once all have come gather
 * runs, then the parts. gather is false while they are stuck there.
 */
cudaError_t emu_meet(const std::vector<cudaStream_t> &s, std::function<bool()> gather,
                     const std::vector<std::function<void()>> &parts);
// cudaErrorStreamCaptureUnsupported while a capture of this thread forbids what could wait.
cudaError_t emu_may_wait(void);
void emu_drain_card(int card);

// Runs a grid to its end; an error loses the card.
cudaError_t emu_run_grid(dim3 grid, dim3 block, size_t shared, const std::function<void()> &body);
#define EMU_SHARED_MAX     232448 // bytes a block may ask for
#define EMU_SHARED_DEFAULT 49152  // without cudaFuncSetAttribute

#endif
