/*
 * worker.c - the thread of a device: waits for a task, runs it, waits for the next.
 */
#include "device/device.h"
#include <string.h>

#define SPINS 20000

struct tti_worker {
    tti_device *device;
    tti_thread thread;
    tti_task task; // written before go is raised
    bool quit;
    _Alignas(64) tti_flag go;
};

static void worker_main(void *arg)
{
    tti_worker *w = arg;
    int spins = w->device->is_crowded ? 0 : SPINS;
    tti_fp_enter();
    for (uint32_t round = 1;; round++) {
        while (tti_flag_wait(&w->go, round, spins, TTI_FOREVER) != TT_OK)
            ;
        if (w->quit)
            return;
        w->task.fn(w->task.arg);
        (void)tti_flag_add(&w->device->n_done, 1);
    }
}

tt_status tti_worker_open(tti_device *d)
{
    tti_worker *w = tti_host_alloc(d->ctx, sizeof(*w));
    if (w == NULL)
        return TT_ENOMEM;
    memset(w, 0, sizeof(*w));
    w->device = d;
    tt_status st = tti_thread_start(d->ctx, &w->thread, d->name, worker_main, w);
    if (st != TT_OK) {
        tti_host_free(d->ctx, w);
        return st;
    }
    d->worker = w;
    return TT_OK;
}

void tti_worker_close(tti_device *d)
{
    tti_worker *w = d->worker;
    w->quit = true;
    tti_flag_add(&w->go, 1);
    tti_thread_join(&w->thread);
    tti_host_free(d->ctx, w);
    d->worker = NULL;
}

tt_status tti_worker_submit(tti_device *d, tti_task task)
{
    d->worker->task = task;
    d->n_submitted++;
    tti_flag_add(&d->worker->go, 1);
    return TT_OK;
}
