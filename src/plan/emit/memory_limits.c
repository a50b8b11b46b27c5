/*
 * memory_limits.c - does a plan fit? One that exceeds a device's limit, or the host's memory, is
 * refused with a table of its largest values.
 */
#include "device/device.h"
#include "plan/plan.h"

// Memory that a node's kernel works in, not one of its outputs.
static bool is_scratch(const tti_plan *p, int value)
{
    const tti_pnode *maker = &p->nodes[p->values[value].node];
    return value < maker->out || value >= maker->out + maker->n_out;
}

// Does a process share this one's memory?
static bool is_near(const tti_topology *top, int task)
{
    for (int d = 0; d < top->n_devices; d++)
        if (!top->devices[d]->is_away)
            return tti_set_has(&top->devices[d]->near, task);
    return false;
}

// Does the device take from what all without a limit share?
static bool is_host(const tti_plan *p, int device)
{
    const tti_device *d = p->top->devices[device];
    bool here = !d->is_away || (p->top->n_tasks > 1 && is_near(p->top, d->task));
    return p->top->limit[device] == 0 && d->backend->host_memory && here;
}

static bool is_of(const tti_plan *p, const tti_value *v, int device)
{
    return device >= 0 ? v->device == device : is_host(p, v->device);
}

// The few largest values of a device (-1: of all that share the host's memory), each once.
static void add_largest(tti_text *t, const tti_plan *p, int device)
{
    size_t below = SIZE_MAX;
    for (int row = 0; row < 8;) {
        size_t top = 0;
        for (int64_t i = 0; i < p->n_values; i++) {
            const tti_value *v = &p->values[i];
            if (is_of(p, v, device) && v->memory != TTI_CONSTANT && v->bytes < below &&
                v->bytes > top && (v->first >= 0 || v->memory == TTI_VARIABLE))
                top = v->bytes;
        }
        if (top == 0)
            break;
        for (int64_t i = 0; i < p->n_values && row < 8; i++) {
            const tti_value *v = &p->values[i];
            if (!is_of(p, v, device) || v->bytes != top || v->root != (int)i ||
                v->memory == TTI_CONSTANT || (v->first < 0 && v->memory == TTI_ARENA))
                continue;
            row++;
            if (is_scratch(p, (int)i)) {
                tti_text_add(t, "\n  %12zu  %s scratch", v->bytes, v->tensor->node->name);
                continue;
            }
            char shape[TT_SHAPE_TEXT];
            tti_text_add(t, "\n  %12zu  %s %s %s%s", v->bytes, v->tensor->node->name,
                         tt_dtype_name(v->dtype), tt_shape_text(&v->shape, shape),
                         v->memory == TTI_VARIABLE ? " variable" : "");
        }
        below = top;
    }
}

static tt_status refuse_with(tti_plan *p, tti_text *t)
{
    char *text = tti_text_take(t);
    tt_status st = TT_FAIL(p->ctx, TT_ELIMIT, "%s", text == NULL ? "a limit is too small" : text);
    tti_free(p->ctx, text);
    return st;
}

static tt_status refuse(tti_plan *p, int device, size_t need, size_t variables)
{
    const tti_device *d = p->top->devices[device];
    tti_text t = {.ctx = p->ctx};
    char size[32], limit[32];
    tti_size_text((double)need, size);
    tti_size_text((double)p->top->limit[device], limit);
    tti_text_add(&t,
                 "%s: this plan needs %s (%zu bytes: variables %zu, activations %zu), more than "
                 "its limit of %s (%zu bytes); the largest, in bytes:",
                 d->name, size, need, variables, need - variables, limit, p->top->limit[device]);
    add_largest(&t, p, device);
    return refuse_with(p, &t);
}

static tt_status refuse_host(tti_plan *p, size_t need, size_t variables)
{
    tti_text t = {.ctx = p->ctx};
    char size[32], memory[32], list[TTI_DEVICE_LIST];
    tti_size_text((double)need, size);
    tti_size_text((double)p->top->host_memory, memory);
    tti_text_add(&t,
                 "%s: this plan needs %s (%zu bytes: variables %zu, activations %zu), more than "
                 "the %s (%zu bytes) %s; a limit per device, such as cpu:0@%zuGiB, replaces that; "
                 "the largest, in bytes:",
                 tti_device_list(p->top, list), size, need, variables, need - variables, memory,
                 p->top->host_memory,
                 p->top->is_host_group ? "that this process's control group allows"
                                       : "of memory that this machine has",
                 (need >> 30) + 1);
    add_largest(&t, p, -1);
    return refuse_with(p, &t);
}

tt_status tti_plan_check_limits(tti_plan *p, const size_t *new_variables)
{
    size_t host = 0, host_variables = 0;
    for (int i = 0; i < p->top->n_devices; i++) {
        const tti_device *d = p->top->devices[i];
        size_t variables = atomic_load(&d->variables) + new_variables[i];
        // What other plans have beside their arenas, and this one, which may have its staging
        // memory.
        size_t fixed = atomic_load(&d->fixed) + p->devices[i].fixed_bytes;
        fixed -= p->exe.staging[i].data != NULL ? p->exe.staging[i].bytes : 0;
        size_t need = variables + p->devices[i].arena_bytes + fixed;
        if (p->top->limit[i] > 0 && need > p->top->limit[i])
            return refuse(p, i, need, variables);
        host += is_host(p, i) ? need : 0;
        host_variables += is_host(p, i) ? variables : 0;
    }
    p->host_need = host;
    if (p->top->host_memory > 0 && host > p->top->host_memory)
        return refuse_host(p, host, host_variables);
    return TT_OK;
}
