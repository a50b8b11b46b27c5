/*
 * tracker_mlflow.c - a run on MLflow's tracking server, by its REST interface: an experiment with
 * the name of the job, a run in it with the name of the folder, the job's keys as parameters,
 * losses and metrics with their steps, what was recorded of version, commit and machine as tags.
 *
 * The run's identifier is kept in the folder, "mlflow_run_id", so that a run that is resumed goes
 * on there, too.
 */
#include "base/file.h"
#include "record/tracker.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define API          "/api/2.0/mlflow/"
#define MOST_METRICS 500 // of a request; MLflow takes 1000
#define MOST_PARAMS  100
#define VALUE_BYTES  500 // of a parameter, which every version of MLflow takes
#define TAG_BYTES    5000

static bool is_good(int status)
{
    return status >= 200 && status < 300;
}

// A request with a body that is used up.
static int ask(tti_tracker *t, const char *path, json_t *body, json_t **answer, char *why)
{
    int status = tti_tracker_ask(t, path, body, answer, why);
    json_decref(body);
    return status;
}

// ---- the run there ---------------------------------------------------------------------------

static bool copy_text(json_t *o, const char *name, char *out, size_t room)
{
    const char *s = json_string_value(json_object_get(o, name));
    if (s == NULL || strlen(s) >= room || s[0] == '\0')
        return false;
    snprintf(out, room, "%s", s);
    return true;
}

static void escape(const char *name, char *out, size_t room)
{
    size_t n = 0;
    for (const uint8_t *s = (const uint8_t *)name; *s != '\0' && n + 4 < room; s++)
        n += (size_t)snprintf(out + n, room - n,
                              (*s >= '0' && *s <= '9') || (*s >= 'a' && *s <= 'z') ||
                                      (*s >= 'A' && *s <= 'Z')
                                  ? "%c"
                                  : "%%%02X",
                              *s);
}

// The experiment with the job's name, which is made if it is not there.
static bool find_experiment(tti_tracker *t, char id[80], char *why)
{
    char path[1024], name[800] = "", ignored[TTI_HTTP_WHY];
    json_t *answer = NULL;
    escape(t->name, name, sizeof(name));
    snprintf(path, sizeof(path), API "experiments/get-by-name?experiment_name=%s", name);
    int status = tti_tracker_ask(t, path, NULL, &answer, why);
    bool found = is_good(status) &&
                 copy_text(json_object_get(answer, "experiment"), "experiment_id", id, 80);
    json_decref(answer);
    if (found || status != 404)
        return found;
    answer = NULL;
    status = ask(t, API "experiments/create", json_pack("{s:s}", "name", t->name), &answer, why);
    found = is_good(status) && copy_text(answer, "experiment_id", id, 80);
    json_decref(answer);
    if (found || status != 400)
        return found;
    // Another run has made it in between.
    answer = NULL;
    status = tti_tracker_ask(t, path, NULL, &answer, ignored);
    found = is_good(status) &&
            copy_text(json_object_get(answer, "experiment"), "experiment_id", id, 80);
    json_decref(answer);
    return found;
}

static void id_path(const tti_tracker *t, char *path, size_t room)
{
    snprintf(path, room, "%s/mlflow_run_id", t->folder);
}

// The run of an earlier start, if the server still has it.
static bool find_run(tti_tracker *t, char *why)
{
    char path[TTI_RUN_PATH + 32], *text = NULL;
    size_t n = 0;
    id_path(t, path, sizeof(path));
    if (access(path, R_OK) != 0 || tti_file_read(NULL, path, 256, &text, &n) != TT_OK)
        return false;
    n = strcspn(text, " \r\n");
    bool is_id = n > 0 && n < sizeof(t->id) && strspn(text, "0123456789abcdefABCDEF-") == n;
    if (is_id)
        snprintf(t->id, sizeof(t->id), "%.*s", (int)n, text);
    tti_free(NULL, text);
    if (!is_id)
        return false;
    json_t *body = json_pack("{s:s, s:s}", "run_id", t->id, "status", "RUNNING");
    int status = ask(t, API "runs/update", body, NULL, why);
    if (is_good(status))
        return true;
    t->id[0] = '\0';
    return false;
}

static bool begin_run(tti_tracker *t, double time, char *why)
{
    char experiment[80], path[TTI_RUN_PATH + 32];
    json_t *answer = NULL;
    if (t->id[0] != '\0' || find_run(t, why))
        return true;
    if (!find_experiment(t, experiment, why))
        return false;
    json_t *body =
        json_pack("{s:s, s:s, s:I, s:[{s:s, s:s}, {s:s, s:s}, {s:s, s:s}]}", "experiment_id",
                  experiment, "run_name", t->run, "start_time", (json_int_t)(time * 1000), "tags",
                  "key", "tutti.folder", "value", t->folder, "key", "mlflow.runName", "value",
                  t->run, "key", "mlflow.source.name", "value", t->name);
    int status = ask(t, API "runs/create", body, &answer, why);
    json_t *info = json_object_get(json_object_get(answer, "run"), "info");
    bool is_made = is_good(status) && copy_text(info, "run_id", t->id, sizeof(t->id));
    json_decref(answer);
    if (is_good(status) && !is_made)
        snprintf(why, TTI_HTTP_WHY,
                 "the answer has no run_id: this is not an MLflow server (%.100s)", t->url.shown);
    id_path(t, path, sizeof(path));
    if (is_made) // without it a resumed run would be another one there
        (void)!tti_file_replace(NULL, path, t->id, strlen(t->id));
    return is_made;
}

// ---- what a request holds --------------------------------------------------------------------

typedef struct batch {
    json_t *metrics, *params, *tags;
} batch;

static batch batch_new(void)
{
    return (batch){json_array(), json_array(), json_array()};
}

// Sends what is in it and empties it.
static bool flush(tti_tracker *t, batch *b, char *why)
{
    if (json_array_size(b->metrics) + json_array_size(b->params) + json_array_size(b->tags) == 0)
        return true;
    json_t *body = json_pack("{s:s, s:O, s:O, s:O}", "run_id", t->id, "metrics", b->metrics,
                             "params", b->params, "tags", b->tags);
    int status = ask(t, API "runs/log-batch", body, NULL, why);
    json_array_clear(b->metrics);
    json_array_clear(b->params);
    json_array_clear(b->tags);
    return is_good(status);
}

// Names may have letters, digits and a few signs.
static void plain_name(const char *name, char out[240])
{
    snprintf(out, 240, "%.239s", name);
    for (char *s = out; *s != '\0'; s++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-. /", *s) ==
            NULL)
            *s = '_';
}

static void add_pair(json_t *list, const char *name, const char *value, int bytes)
{
    char key[240];
    plain_name(name, key);
    size_t n = strlen(value);
    if (n > (size_t)bytes)
        for (n = (size_t)bytes; n > 0 && ((uint8_t)value[n] & 0xC0) == 0x80;)
            n--; // not within a character
    json_array_append_new(list, json_pack("{s:s, s:s%}", "key", key, "value", value, n));
}

static void add_metric(batch *b, const char *name, double value, double time, int64_t step)
{
    char key[240];
    plain_name(name, key);
    if (isfinite(value))
        json_array_append_new(b->metrics, json_pack("{s:s, s:f, s:I, s:I}", "key", key, "value",
                                                    value, "timestamp", (json_int_t)(time * 1000),
                                                    "step", (json_int_t)step));
}

// Parameters go alone: MLflow refuses them where a run that goes on has other values for them.
static bool flush_keys(tti_tracker *t, batch *b, char *why)
{
    if (flush(t, b, why))
        return true;
    if (t->is_refused)
        tti_tracker_warn(t, why);
    return t->is_refused;
}

static bool add_keys(tti_tracker *t, batch *b, json_t *keys, char *why)
{
    if (!flush(t, b, why))
        return false;
    const char *name;
    json_t *value;
    json_object_foreach(keys, name, value)
    {
        char number[40];
        if (json_is_string(value)) {
            add_pair(b->params, name, json_string_value(value), VALUE_BYTES);
        } else {
            snprintf(number, sizeof(number), "%.9g", json_number_value(value));
            add_pair(b->params, name, number, VALUE_BYTES);
        }
        if (json_array_size(b->params) >= MOST_PARAMS && !flush_keys(t, b, why))
            return false;
    }
    return flush_keys(t, b, why);
}

static void add_tags(batch *b, json_t *o)
{
    const char *name;
    json_t *value;
    json_object_foreach(o, name, value)
    {
        char key[200];
        snprintf(key, sizeof(key), "tutti.%.190s", name);
        if (json_is_string(value) && strcmp(name, "event") != 0)
            add_pair(b->tags, strcmp(name, "commit") == 0 ? "mlflow.source.git.commit" : key,
                     json_string_value(value), TAG_BYTES);
    }
}

// Values of a step come once; those of validations with the event that has them first.
static void add_values(tti_tracker *t, batch *b, json_t *o, const char *kind)
{
    static const char *const counts[] = {"time",   "step", "steps",      "epoch",
                                         "epochs", "rows", "epoch_rows", "seconds"};
    const char *name;
    json_t *value;
    double time = json_number_value(json_object_get(o, "time"));
    int64_t step = (int64_t)json_number_value(json_object_get(o, "step"));
    json_object_foreach(o, name, value)
    {
        bool is_count = !json_is_number(value);
        for (int i = 0; i < TTI_COUNT(counts); i++)
            is_count |= strcmp(counts[i], name) == 0;
        bool is_validation = strncmp(name, "validation_", 11) == 0;
        if (!is_count && (is_validation ? strcmp(kind, "step") != 0 : step > t->step))
            add_metric(b, name, json_number_value(value), time, step);
    }
    if (strcmp(kind, "validation") != 0)
        t->step = TTI_MAX(t->step, step);
}

static bool add_event(tti_tracker *t, batch *b, json_t *o, char *why)
{
    const char *kind = json_string_value(json_object_get(o, "event"));
    if (kind == NULL)
        return true;
    if (strcmp(kind, "keys") == 0)
        return add_keys(t, b, json_object_get(o, "keys"), why);
    if (strcmp(kind, "begin") == 0) // one that goes on begins before the last value
        t->step = (int64_t)json_number_value(json_object_get(o, "step"));
    if (strcmp(kind, "record") == 0)
        add_tags(b, o);
    if (strcmp(kind, "step") == 0 || strcmp(kind, "epoch") == 0 || strcmp(kind, "validation") == 0)
        add_values(t, b, o, kind);
    if (strcmp(kind, "end") == 0) {
        const char *ended = json_string_value(json_object_get(o, "ended"));
        const char *hash = json_string_value(json_object_get(o, "weights_hash"));
        bool is_asked = ended != NULL && strcmp(ended, "request") == 0;
        snprintf(t->status, sizeof(t->status), "%s", is_asked ? "KILLED" : "FINISHED");
        if (hash != NULL)
            add_pair(b->tags, "tutti.weights_hash", hash, TAG_BYTES);
    }
    return json_array_size(b->metrics) < MOST_METRICS || flush(t, b, why);
}

bool tti_mlflow_send(tti_tracker *t, json_t *events, char why[TTI_HTTP_WHY])
{
    json_t *first = json_array_get(events, 0), *o;
    size_t i;
    int64_t step = t->step;
    if (!begin_run(t, json_number_value(json_object_get(first, "time")), why))
        return false;
    batch b = batch_new();
    bool is_sent = true;
    json_array_foreach(events, i, o)
    {
        is_sent = is_sent && add_event(t, &b, o, why);
    }
    is_sent = is_sent && flush(t, &b, why);
    if (!is_sent)
        t->step = step; // all of them again
    json_decref(b.metrics);
    json_decref(b.params);
    json_decref(b.tags);
    return is_sent;
}

bool tti_mlflow_end(tti_tracker *t, char why[TTI_HTTP_WHY])
{
    struct timespec now;
    if (t->id[0] == '\0')
        return true;
    clock_gettime(CLOCK_REALTIME, &now);
    json_int_t ms = (json_int_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    json_t *body =
        json_pack("{s:s, s:s, s:I}", "run_id", t->id, "status", t->status, "end_time", ms);
    return is_good(ask(t, API "runs/update", body, NULL, why));
}
