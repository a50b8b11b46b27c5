/*
 * main.c - runs the tests: one Check suite per file, one process per test, a timeout for each.
 *
 *   run [--list] [words...]     only tests whose file or name contains one of the words, or whose
 *                               name is what follows a word's '='
 *
 * TEST_TIMES=file writes what each test took there: seconds, seconds of processors, file, name.
 * CK_FORK=no runs all in this process, for tools that watch one. TEST_PART=0/2 runs half of the
 * tests, TEST_PART=1/2 the others. TEST_TIMEOUT sets the seconds a test may take (default 60).
 * A test that ends by test_skip() leaves its reason in memory shared with this process; it is
 * listed and counted as skipped.
 */
#include "test_main.h"
#include <ftw.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static const test_entry *tests[TEST_MAX];
static int n_tests;
static test_note *notes; // one per test, shared with its process
static int current;      // in the test's process: which one it is
static char root[256];   // holds the tests' folders
static bool is_forked = true;
static jmp_buf leave; // where a test that is not forked ends

test_note *test_note_get(void)
{
    return notes == NULL ? NULL : &notes[current];
}

const char *test_root(void)
{
    return root;
}

int test_number(void)
{
    return current;
}

void test_leave(void)
{
    if (is_forked)
        _exit(0);
    longjmp(leave, 1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// What this process and those it has started and awaited took of the processors.
static double cpu_seconds(void)
{
    double s = 0;
    for (int who = RUSAGE_CHILDREN; who <= RUSAGE_SELF; who++) {
        struct rusage u;
        getrusage(who, &u);
        s += (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
             1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    }
    return s;
}

// Every test's Check function: the loop number says which test it is.
static void run_test(int i)
{
    const test_entry *e = tests[i];
    current = i;
    notes[i].started = now();
    if (!is_forked && setjmp(leave) != 0)
        return;
    if (e->run != NULL)
        e->run(e);
    else
        e->fn();
    notes[i].seconds = now() - notes[i].started;
    notes[i].cpu = cpu_seconds();
}

// "op/matmul" of ".../tests/op/matmul.c".
static const char *suite_name(const char *file, char *buf, size_t room)
{
    const char *from = strstr(file, "tests/");
    snprintf(buf, room, "%s", from == NULL ? file : from + strlen("tests/"));
    char *dot = strrchr(buf, '.');
    if (dot != NULL)
        *dot = '\0';
    return buf;
}

static bool is_wanted(const test_entry *e, char **words, int n)
{
    for (int i = 0; i < n; i++)
        if (words[i][0] == '=' ? strcmp(e->name, words[i] + 1) == 0
                               : strstr(e->file, words[i]) || strstr(e->name, words[i]))
            return true;
    return n == 0;
}

// The last file first: those of dist/, which measure time, come when what runs beside the tests
// (tools/test) is over.
static int by_file(const void *a, const void *b)
{
    const test_entry *x = *(const test_entry *const *)a, *y = *(const test_entry *const *)b;
    int c = strcmp(y->file, x->file);
    return c != 0 ? c : x->order - y->order;
}

static int select_tests(char **words, int n)
{
    for (const test_entry *e = test_first(); e != NULL; e = e->next) {
        if (!is_wanted(e, words, n))
            continue;
        if (n_tests == TEST_MAX) {
            fprintf(stderr, "more than %d tests: raise TEST_MAX\n", TEST_MAX);
            return 1;
        }
        tests[n_tests++] = e;
    }
    qsort(tests, (size_t)n_tests, sizeof(tests[0]), by_file);
    return 0;
}

// TEST_PART=k/n: one test of every n, so that several processes share the work. To and fro, as a
// test that takes long is often followed by its twin on the GPU.
static void take_part(const char *part)
{
    int k = 0, n = 1, kept = 0;
    if (part == NULL || sscanf(part, "%d/%d", &k, &n) != 2 || n < 1)
        return;
    for (int i = 0; i < n_tests; i++)
        if ((i / n % 2 == 0 ? i % n : n - 1 - i % n) == k)
            tests[kept++] = tests[i];
    n_tests = kept;
}

static SRunner *make_runner(double timeout)
{
    SRunner *runner = srunner_create(NULL);
    static TTest check_tests[TEST_MAX];
    static char names[TEST_MAX][64]; // Check keeps the pointers
    Suite *suite = NULL;
    TCase *tcase = NULL;

    for (int i = 0; i < n_tests; i++) {
        if (i == 0 || strcmp(tests[i]->file, tests[i - 1]->file) != 0) {
            suite = suite_create(suite_name(tests[i]->file, names[i], sizeof(names[i])));
            srunner_add_suite(runner, suite);
        }
        tcase = tcase_create(tests[i]->name);
        tcase_set_timeout(tcase, timeout);
        suite_add_tcase(suite, tcase);
        check_tests[i] = (TTest){tests[i]->name, run_test, tests[i]->file, 1};
        _tcase_add_test(tcase, &check_tests[i], 0, 0, i, i + 1);
    }
    const char *fork = getenv("CK_FORK");
    is_forked = fork == NULL || strcmp(fork, "no") != 0;
    srunner_set_fork_status(runner, is_forked ? CK_FORK : CK_NOFORK);
    return runner;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static void write_times(const char *path)
{
    FILE *f = path != NULL ? fopen(path, "w") : NULL;
    char name[128];
    for (int i = 0; f != NULL && i < n_tests; i++)
        fprintf(f, "%.3f %.3f %s %s\n", notes[i].seconds, notes[i].cpu,
                suite_name(tests[i]->file, name, sizeof(name)), tests[i]->name);
    if (f != NULL)
        fclose(f);
}

static void print_slowest(void)
{
    for (int shown = 0; shown < 10; shown++) {
        int top = 0;
        for (int i = 1; i < n_tests; i++)
            if (notes[i].seconds > notes[top].seconds)
                top = i;
        if (notes[top].seconds < 0.5)
            return;
        printf("  %6.1f s  %s\n", notes[top].seconds, tests[top]->name);
        notes[top].seconds = 0;
    }
}

/*
 * A line for each skipped test; those of a file that were skipped for one reason share a line. The
 * number of them.
 */
static int print_skipped(void)
{
    int n = 0;
    for (int i = 0, more; i < n_tests; i += 1 + more) {
        more = 0;
        if (notes[i].skipped[0] == '\0')
            continue;
        while (i + more + 1 < n_tests && strcmp(tests[i]->file, tests[i + more + 1]->file) == 0 &&
               strcmp(notes[i].skipped, notes[i + more + 1].skipped) == 0)
            more++;
        printf("skipped: %s", tests[i]->name);
        if (more > 0)
            printf(" to %s (%d)", tests[i + more]->name, more + 1);
        printf(": %s\n", notes[i].skipped);
        n += 1 + more;
    }
    return n;
}

int main(int argc, char **argv)
{
    bool list = argc > 1 && strcmp(argv[1], "--list") == 0;
    char **words = argv + (list ? 2 : 1);
    char name[128];

    if (select_tests(words, (int)(argv + argc - words)) != 0)
        return 2;
    take_part(getenv("TEST_PART"));
    if (list) {
        for (int i = 0; i < n_tests; i++)
            printf("%-20s %s\n", suite_name(tests[i]->file, name, sizeof(name)), tests[i]->name);
        return 0;
    }
    if (n_tests == 0) {
        fprintf(stderr, "no test has these words in its file or name\n");
        return 2;
    }
    const char *base = getenv("TMPDIR"), *limit = getenv("TEST_TIMEOUT");
    snprintf(root, sizeof(root), "%s/tutti-test-XXXXXX", base == NULL ? "/tmp" : base);
    notes = mmap(NULL, sizeof(*notes) * TEST_MAX, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (notes == MAP_FAILED || mkdtemp(root) == NULL) {
        perror("tests");
        return 2;
    }
    SRunner *runner = make_runner(limit != NULL && atof(limit) > 0 ? atof(limit) : 60);
    double start = now();
    srunner_run_all(runner, CK_NORMAL);
    double seconds = now() - start;

    int failed = srunner_ntests_failed(runner), skipped = print_skipped();
    write_times(getenv("TEST_TIMES"));
    if (seconds > 10)
        print_slowest();
    int passed = srunner_ntests_run(runner) - failed - skipped;
    srunner_free(runner);
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed == 0 ? 0 : 1;
}
