/*
 * leave_out.c - what of a job's file does not count where a flag, --set or the environment says
 * otherwise how it is spread. So any job, and any run that is resumed, takes any strategy, and can
 * go on with one device. What is given beside such a flag is looked at as ever.
 */
#include "job/job.h"
#include <stdio.h>
#include <string.h>

static bool is_of(const tti_item *item, const char *file)
{
    return strcmp(item->at.source, file) == 0;
}

// Options that the file has for its own strategy.
static tt_status leave_options(tt_job *j, const char *file, const tti_item *distribute,
                               tti_job_distribute *d)
{
    const tti_strategy *s = tti_strategy_find(tti_job_strategies[d->strategy]);
    const char *names[64];
    int n = 0;
    for (const tt_option *row = tti_spread_rows; row->type != TT_OPT_END; row++) {
        tti_item *item = tti_item_get(distribute, row->name);
        if (tti_spread_takes(s, row, &d->spread) || !is_of(item, file))
            continue;
        if (n < TTI_COUNT(names))
            names[n++] = row->name;
        TT_TRY(tti_option_set(j->ctx, tti_spread_rows, &d->spread, "distribute", row->name,
                              row->value));
        item->text = row->value;
    }
    if (n == 0)
        return TT_OK;
    tti_text list = {.ctx = j->ctx};
    tti_text_names(&list, names, n, 30);
    char *text = tti_text_take(&list);
    if (text != NULL)
        TT_LOG(j->ctx, TT_WARN,
               "%s: distribute: ignored, because strategy %s has no such option: %s", file, s->name,
               text);
    tti_free(j->ctx, text);
    return TT_OK;
}

// Empties the key device of all layers that the file pins; gives how many did.
static int unpin(tti_item *item, const char *file)
{
    int n = 0;
    for (tti_item *c = item->first; c != NULL; c = c->next) {
        bool pins = c->kind == TTI_SCALAR && c->key != NULL && strcmp(c->key, "device") == 0 &&
                    c->text[0] != '\0' && is_of(c, file);
        if (pins)
            c->text = "";
        n += pins + unpin(c, file);
    }
    return n;
}

// "cpu:0", and not "cpu:0*2" or "all".
static bool is_one(const char *devices)
{
    return devices[strcspn(devices, ",*")] == '\0' && strcmp(devices, "all") != 0;
}

// Pins: with one device all work is there.
static void leave_pins(tt_job *j, const char *file, const char *devices)
{
    tti_item *model = tti_item_get(j->root, "model");
    tti_item *pins = tti_item_get(tti_item_get(j->root, "distribute"), "pins");
    int n = model != NULL ? unpin(model, file) : 0;
    tti_item *c = pins->first;
    pins->first = pins->last = NULL;
    pins->n = 0;
    for (tti_item *next; c != NULL; c = next) {
        next = c->next;
        if (is_of(c, file))
            n++;
        else
            tti_item_add(pins, c->key, c->key_at, c);
    }
    if (n > 0)
        TT_LOG(j->ctx, TT_WARN, "%s: pins are ignored: there is only %s", file, devices);
}

tt_status tti_job_leave_out(tt_job *j, const char *file, tti_job_distribute *d)
{
    const tti_item *distribute = tti_item_get(j->root, "distribute");
    if (!is_of(tti_item_get(distribute, "strategy"), file))
        TT_TRY(leave_options(j, file, distribute, d));
    if (!is_of(tti_item_get(distribute, "devices"), file) && is_one(d->devices))
        leave_pins(j, file, d->devices);
    return TT_OK;
}
