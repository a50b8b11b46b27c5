/*
 * store.c - one store, several contexts and threads at once: every run sees variables whole and
 * none is lost, wherever their shards are. Made for the thread sanitizer too.
 */
#include "run/store.h"
#include "test.h"
#include "world_test.h"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define N       1500 // elements of the counter
#define THREADS 4
#define RUNS    40

typedef struct party {
    pthread_t thread;
    tt_store *store;
    const char *devices, *strategy, *pin;
    int number;
    bool no_runs; // sets and gets only
    _Atomic int *failed;
    char why[300];
} party;

static void complain(party *u, const char *what, tt_ctx *ctx)
{
    snprintf(u->why, sizeof(u->why), "thread %d, %s: %s", u->number, what,
             tt_last_error(ctx).message);
    atomic_store(u->failed, 1);
}

// Is it a number that runs could have left, the same in all elements?
static bool is_whole(const float *x)
{
    for (int i = 1; i < N; i++)
        if (x[i] != x[0])
            return false;
    return x[0] >= 0 && x[0] <= THREADS * RUNS && x[0] == (float)(int)x[0];
}

static bool step(party *u, tt_session *s, tt_tensor *w, tt_tensor *more, tt_tensor *sum, int i)
{
    float got[N], total = 0;
    if (tt_run(s, .targets = &more, .n_targets = 1, .step = i) != TT_OK)
        return false;
    if (tt_get_variable(s, w, got, sizeof(got)) != TT_OK || !is_whole(got)) {
        snprintf(u->why, sizeof(u->why), "thread %d read half of an update: %g, %g", u->number,
                 got[0], got[N - 1]);
        return false;
    }
    tt_fetch f = {sum, &total, sizeof(total)};
    if (tt_run(s, .fetches = &f, .n_fetches = 1) != TT_OK)
        return false;
    double each = total / (double)N;
    if (each != (double)(int)each || each < got[0]) {
        snprintf(u->why, sizeof(u->why), "thread %d: a sum of %g after %g in each", u->number,
                 total, got[0]);
        return false;
    }
    return true;
}

static void *use(void *arg)
{
    party *u = arg;
    tt_ctx *ctx = tt_open(.devices = u->devices, .strategy = u->strategy, .threads = 2, .seed = 3,
                          .store = u->store, .on_event = test_ignore_event);
    tt_graph *g = tt_graph_new(ctx);
    if (u->pin != NULL)
        tt_device_push(g, u->pin);
    tt_tensor *w = tt_variable(g, .name = "w", .shape = TT_SHAPE(N));
    tt_tensor *more = tt_assign(g, w, tt_scale(g, w, 1, 1));
    tt_tensor *sum = tt_sum(g, w), *own[8];
    for (int i = 0; i < 8; i++) { // whoever comes first draws them
        char name[32];
        snprintf(name, sizeof(name), "drawn_%d", i);
        own[i] = tt_variable(g, .name = name, .shape = TT_SHAPE(100 + i),
                             .init = {TT_INIT_NORMAL, 0, 1});
    }
    tt_session *s = tt_session_new(g);
    bool ok = s != NULL;
    for (int i = 0; ok && i < RUNS; i++) {
        float x[120] = {0};
        tt_tensor *o = own[(i + u->number) % 8];
        tt_shape shape = tt_tensor_shape(o);
        size_t bytes = sizeof(float) * (size_t)tt_shape_count(&shape);
        ok = tt_get_variable(s, o, x, bytes) == TT_OK && tt_set_variable(s, o, x, bytes) == TT_OK;
        if (ok && !u->no_runs)
            ok = step(u, s, w, more, sum, i);
        ok &= tt_store_version(u->store, tt_tensor_name(o)) > 0;
    }
    if (!ok && u->why[0] == 0)
        complain(u, "its calls", ctx);
    atomic_fetch_or(u->failed, !ok);
    if (tt_close(ctx) != TT_OK && u->why[0] == 0)
        complain(u, "closing", ctx);
    return NULL;
}

// All at once; the counter has counted every run, and a hash of what was drawn is that of one.
static void use_together(party *users, int n, const char *later)
{
    tt_store *store = tt_store_new();
    _Atomic int failed = 0;
    int runs = 0;
    for (int i = 0; i < n; i++) {
        users[i].store = store;
        users[i].number = i;
        users[i].failed = &failed;
        runs += users[i].no_runs ? 0 : RUNS;
        CHECK_INT(pthread_create(&users[i].thread, NULL, use, &users[i]), 0);
    }
    for (int i = 0; i < n; i++)
        pthread_join(users[i].thread, NULL);
    for (int i = 0; i < n; i++)
        ck_assert_msg(users[i].why[0] == 0, "%s", users[i].why);
    CHECK_INT(atomic_load(&failed), 0);
    CHECK_INT(tt_store_version(store, "w"), runs);

    float got[N];
    tt_ctx *ctx = tt_open(.devices = later, .store = store, .on_event = test_ignore_event);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *w = tt_variable(g, .name = "w", .shape = TT_SHAPE(N));
    CHECK_OK(tt_get_variable(tt_session_new(g), w, got, sizeof(got)));
    CHECK(is_whole(got));
    CHECK(got[0] == runs);
    CHECK_OK(tt_close(ctx));
    tt_store_release(store);
}

TEST(contexts_of_one_store_lose_no_update)
{
    party users[THREADS] = {{.devices = "cpu:0"},
                            {.devices = "cpu:0*2", .pin = "cpu:1"},
                            {.devices = "cpu:0*2", .strategy = "mirrored"},
                            {.devices = "cpu:0", .no_runs = true}};
    use_together(users, THREADS, "cpu:0");
}

TEST(contexts_of_one_store_make_its_variables_once)
{
    for (int k = 0; k < 5; k++) {
        party users[THREADS] = {{.devices = "cpu:0", .no_runs = true},
                                {.devices = "cpu:0", .no_runs = true},
                                {.devices = "cpu:0*3", .no_runs = true},
                                {.devices = "cpu:0*2", .pin = "cpu:1"}};
        use_together(users, THREADS, "cpu:0*2");
    }
}

TEST(gpu_contexts_of_one_store_lose_no_update)
{
    test_need_gpu();
    party users[3] = {{.devices = "gpu:0"}, {.devices = "cpu:0"}, {.devices = "gpu:0"}};
    use_together(users, 3, "cpu:0");
}

// ---- in a run --------------------------------------------------------------------------------

typedef struct inside {
    tt_session *s;
    tt_tensor *w;
    float seen;
    tt_status status;
    _Atomic int in, out; // in: the event waits until out is set
} inside;

static void read_inside(void *user, const tt_event *ev)
{
    inside *x = user;
    if (strcmp(ev->kind, "print") != 0)
        return;
    x->status = tt_get_variable(x->s, x->w, &x->seen, sizeof(x->seen));
}

// A context that holds its store for a run reads from it in an event of that run.
TEST(an_event_of_a_run_reads_a_variable)
{
    inside x = {.seen = -1, .status = TT_EASSERT};
    tt_ctx *ctx = tt_open(.devices = "cpu:0", .on_event = read_inside, .user = &x);
    tt_graph *g = tt_graph_new(ctx);
    x.w = tt_variable(g, .name = "w", .init = {TT_INIT_CONSTANT, 4, 0});
    tt_tensor *seen = tt_print(g, tt_scale(g, x.w, 1, 1), "w");
    tt_tensor *more = tt_assign(g, x.w, seen);
    x.s = tt_session_new(g);
    CHECK_OK(tt_run(x.s, .targets = &more, .n_targets = 1));
    CHECK_INT(x.status, TT_OK);
    CHECK(x.seen == 4 || x.seen == 5);
    CHECK_OK(tt_close(ctx));
}

static void wait_inside(void *user, const tt_event *ev)
{
    inside *x = user;
    if (strcmp(ev->kind, "print") != 0)
        return;
    atomic_store(&x->in, 1);
    while (!atomic_load(&x->out))
        usleep(1000);
}

static void *run_slowly(void *arg)
{
    inside *x = arg;
    tt_ctx *ctx =
        tt_open(.devices = "cpu:0", .store = (tt_store *)x->w, .on_event = wait_inside, .user = x);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *w = tt_variable(g, .name = "w");
    tt_tensor *more = tt_assign(g, w, tt_print(g, tt_scale(g, w, 1, 1), "w"));
    x->status = tt_run(tt_session_new(g), .targets = &more, .n_targets = 1);
    x->status = x->status == TT_OK ? tt_close(ctx) : (tt_close(ctx), x->status);
    return NULL;
}

static void *stop_soon(void *ctx)
{
    usleep(50 * 1000);
    tt_request_stop(ctx);
    return NULL;
}

TEST(a_context_that_waits_for_another_can_be_stopped)
{
    tt_store *store = tt_store_new();
    inside x = {.w = (tt_tensor *)store};
    pthread_t slow, stopper;
    CHECK_INT(pthread_create(&slow, NULL, run_slowly, &x), 0);
    while (!atomic_load(&x.in))
        usleep(1000);
    tt_ctx *ctx = tt_open(.devices = "cpu:0", .store = store, .on_event = test_ignore_event);
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *w = tt_variable(g, .name = "w");
    tt_session *s = tt_session_new(g);
    float got = -1;
    CHECK_INT(pthread_create(&stopper, NULL, stop_soon, ctx), 0);
    CHECK_INT(tt_get_variable(s, w, &got, sizeof(got)), TT_ESTOP);
    CHECK_MESSAGE(ctx, "waiting for another context");
    pthread_join(stopper, NULL);
    tt_clear_error(ctx);
    atomic_store(&x.out, 1);
    CHECK_OK(tt_get_variable(s, w, &got, sizeof(got))); // after that run
    CHECK(got == 1);
    pthread_join(slow, NULL);
    CHECK_INT(x.status, TT_OK);
    CHECK_OK(tt_close(ctx));
    tt_store_release(store);
}

// ---- lives -----------------------------------------------------------------------------------

// A session's own store outlives the context, also where the value was on a device.
TEST_BOTH(a_store_of_a_session_outlives_the_context)
{
    tt_store *store = tt_store_new();
    for (int i = 0; i < 2; i++) {
        float got = -1;
        tt_ctx *ctx = test_ctx();
        tt_graph *g = tt_graph_new(ctx);
        tt_tensor *w = tt_variable(g, .name = "w");
        tt_tensor *more = tt_assign(g, w, tt_scale(g, w, 1, 3));
        tt_session *s = tt_session_new(g, .store = store);
        CHECK_OK(tt_run(s, .targets = &more, .n_targets = 1));
        CHECK_OK(tt_get_variable(s, w, &got, sizeof(got)));
        CHECK(got == 3 * (i + 1));
        CHECK_OK(tt_close(ctx));
        CHECK_INT(tt_store_version(store, "w"), i + 1);
    }
    tt_store_release(store);
}

// Released before the context: the session keeps it.
TEST(a_session_keeps_its_store)
{
    tt_ctx *ctx = test_ctx();
    tt_store *store = tt_store_new();
    tt_graph *g = tt_graph_new(ctx);
    tt_tensor *w = tt_variable(g, .name = "w", .init = {TT_INIT_CONSTANT, 2, 0});
    tt_session *s = tt_session_new(g, .store = store);
    float got = -1;
    tt_store_release(store);
    CHECK_OK(tt_get_variable(s, w, &got, sizeof(got)));
    CHECK(got == 2);
    CHECK_OK(tt_close(ctx));
}

// ---- jobs of several processes ---------------------------------------------------------------

// What one process had alone, equal in all, goes into a job; meanwhile nobody else uses it.
static void take_into_job(world_job *j, int rank, tt_ctx *unused)
{
    (void)unused;
    tt_store *store = tt_store_new();
    float got[8] = {0}, value[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    tt_status st[4];
    for (int i = 0; i < 3; i++) {
        tt_tasks t = *(const tt_tasks *)j->arg;
        t.self = rank;
        t.addresses = j->addresses + 2;
        t.secret = j->secret;
        tt_ctx *ctx =
            tt_open(.devices = i == 1 ? "cpu:0*2" : "cpu:0", .threads = 1, .strategy = "mirrored",
                    .store = store, .tasks = i == 1 ? &t : NULL, .on_event = test_ignore_event);
        tt_graph *g = tt_graph_new(ctx);
        tt_tensor *w = tt_variable(g, .name = "w", .shape = TT_SHAPE(8));
        tt_tensor *more = tt_assign(g, w, tt_scale(g, w, 2, 0));
        tt_session *s = tt_session_new(g);
        if (i == 0)
            IGNORED(tt_set_variable(s, w, value, sizeof(value)));
        IGNORED(tt_run(s, .targets = &more, .n_targets = 1));
        if (i == 1) { // another context, in between
            tt_ctx *other =
                tt_open(.devices = "cpu:0", .store = store, .on_event = test_ignore_event);
            tt_graph *h = tt_graph_new(other);
            tt_tensor *v = tt_variable(h, .name = "w", .shape = TT_SHAPE(8));
            st[3] = tt_get_variable(tt_session_new(h), v, got, sizeof(got));
            if (strstr(tt_last_error(other).message, "belongs to a job of 2 processes") == NULL)
                st[3] = TT_OK;
            IGNORED(tt_close(other));
        }
        IGNORED(tt_get_variable(s, w, got, sizeof(got)));
        st[i] = tt_close(ctx);
    }
    tt_store_release(store);
    snprintf(j->ranks[rank].note, sizeof(j->ranks[rank].note), "%g %g %d %d %d %d", got[0], got[7],
             (int)st[0], (int)st[1], (int)st[2], (int)st[3]);
}

TEST(processes_take_over_a_store_and_give_it_back)
{
    tt_tasks inner = {.opts_size = sizeof(inner), .n = 2};
    world_job j = {.n = 4};
    world_prepare(&j); // two of its addresses are for the job, two for what follows
    j.n = 2;
    j.arg = &inner;
    j.run = take_into_job;
    for (int r = 0; r < 2; r++)
        world_fork(&j, r);
    world_join(&j, 20);
    for (int r = 0; r < 2; r++)
        CHECK_STR(j.ranks[r].note, "8 64 0 0 0 1");
}
