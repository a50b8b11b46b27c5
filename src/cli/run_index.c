/*
 * run_index.c - the index of runs (run_index.h). A run has a row with the sizes and times of its
 * files, by which a change is seen, and a row for each of its facts.
 */
#include "cli/run_index.h"

#ifndef TUTTI_HAVE_SQLITE
bool cli_index_is_built(void)
{
    return false;
}

tt_status cli_index_ask(tt_ctx *ctx, const cli_query *q, cli_row **out, int64_t *n)
{
    (void)q;
    *out = NULL;
    *n = 0;
    return TT_FAIL(ctx, TT_EUNSUPPORTED,
                   "this build has no SQLite: install libsqlite3-dev and run make again");
}
#else

#include "base/file.h"
#include "cli/run_query.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSION   4 // raised when the tables change
#define STAMP_MAX 256

bool cli_index_is_built(void)
{
    return true;
}

static const char tables[] =
    "CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY, name TEXT UNIQUE, stamp TEXT, state "
    "INTEGER, time REAL, starts INTEGER, step INTEGER, steps INTEGER, best_name TEXT, best REAL, "
    "hash TEXT, why TEXT);"
    "CREATE TABLE IF NOT EXISTS keys (id INTEGER PRIMARY KEY, key TEXT UNIQUE);"
    "CREATE TABLE IF NOT EXISTS facts (key INTEGER, run INTEGER, value TEXT, number REAL, PRIMARY "
    "KEY (key, run, value)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS fact_of_run ON facts (run);"
    "CREATE TEMP TABLE present (name TEXT PRIMARY KEY);";

tt_status cli_index_failed(const cli_index *x)
{
    return TT_FAIL(x->ctx, TT_EIO, "the index of '%s': %s", x->root, sqlite3_errmsg(x->db));
}

tt_status cli_index_run(const cli_index *x, const char *sql)
{
    return sqlite3_exec(x->db, sql, NULL, NULL, NULL) == SQLITE_OK ? TT_OK : cli_index_failed(x);
}

// ---- opening ---------------------------------------------------------------------------------

static int version_of(sqlite3 *db)
{
    sqlite3_stmt *s = NULL;
    int v = -1;
    if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW)
        v = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    return v;
}

static bool open_file(cli_index *x, const char *path)
{
    char sql[64];
    snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", VERSION);
    if (sqlite3_open(path, &x->db) == SQLITE_OK) {
        sqlite3_busy_timeout(x->db, 5000);
        int v = version_of(x->db);
        if ((v == 0 || v == VERSION) &&
            sqlite3_exec(x->db, tables, NULL, NULL, NULL) == SQLITE_OK &&
            sqlite3_exec(x->db, v == 0 ? sql : "", NULL, NULL, NULL) == SQLITE_OK)
            return true;
    }
    sqlite3_close(x->db);
    x->db = NULL;
    return false;
}

// The file; anew where it cannot be used; in memory where the folder cannot be written.
static tt_status open_index(cli_index *x)
{
    char path[TTI_PATH_MAX];
    TT_TRY(tti_file_join(x->ctx, path, x->root, CLI_INDEX));
    if (access(x->root, W_OK) == 0) {
        if (open_file(x, path))
            return TT_OK;
        (void)unlink(path);
        if (open_file(x, path))
            return TT_OK;
    }
    return open_file(x, ":memory:") ? TT_OK : TT_FAIL(x->ctx, TT_ENOMEM, "out of memory");
}

// ---- updating --------------------------------------------------------------------------------

// Sizes and times of what facts are read from.
static void stamp_of(const char *folder, char out[STAMP_MAX])
{
    static const char *const files[] = {"events.jsonl", "job.yaml", CLI_TAGS};
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < TTI_COUNT(files); i++) {
        char path[TTI_PATH_MAX];
        struct stat st;
        snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
        if (stat(path, &st) != 0)
            st = (struct stat){0};
        at += (size_t)snprintf(out + at, STAMP_MAX - at, "%lld %lld.%09ld;", (long long)st.st_size,
                               (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    }
}

static tt_status put_facts(const cli_index *x, sqlite3_int64 id, const cli_facts *f)
{
    static const char *const sql[] = {
        "INSERT OR IGNORE INTO keys (key) VALUES (?2)",
        "INSERT OR IGNORE INTO facts VALUES ((SELECT id FROM keys WHERE key = ?2), ?1, ?3, ?4)"};
    sqlite3_stmt *s[2] = {NULL, NULL};
    int rc = SQLITE_DONE;
    for (int k = 0; k < 2; k++)
        if (sqlite3_prepare_v2(x->db, sql[k], -1, &s[k], NULL) != SQLITE_OK)
            rc = SQLITE_ERROR;
    for (int64_t i = 0; i < 2 * f->n && rc == SQLITE_DONE; i++) {
        const cli_fact *one = &f->v[i / 2];
        sqlite3_stmt *now = s[i % 2];
        sqlite3_bind_text(now, 2, one->key, -1, SQLITE_STATIC);
        if (i % 2 == 1) {
            sqlite3_bind_int64(now, 1, id);
            sqlite3_bind_text(now, 3, one->value, -1, SQLITE_STATIC);
            if (isnan(one->number))
                sqlite3_bind_null(now, 4);
            else
                sqlite3_bind_double(now, 4, one->number);
        }
        rc = sqlite3_step(now);
        sqlite3_reset(now);
    }
    sqlite3_finalize(s[0]);
    sqlite3_finalize(s[1]);
    return rc == SQLITE_DONE ? TT_OK : cli_index_failed(x);
}

static tt_status put_run(const cli_index *x, const char *name, const char *stamp,
                         const cli_facts *f)
{
    static const char sql[] = "INSERT INTO runs (name, stamp, state, time, starts, step, "
                              "steps, best_name, best, hash, why) "
                              "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    const tti_run_info *r = &f->info;
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(x->db, sql, -1, &s, NULL) != SQLITE_OK)
        return cli_index_failed(x);
    // What may end or begin without a file that changes is read each time.
    bool is_settled =
        r->state != TTI_RUN_TRAINING && r->state != TTI_RUN_KILLED && r->state != TTI_RUN_EMPTY;
    sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, is_settled ? stamp : "", -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 3, (int)r->state);
    sqlite3_bind_double(s, 4, r->time);
    sqlite3_bind_int(s, 5, r->n_starts);
    sqlite3_bind_int64(s, 6, r->step);
    sqlite3_bind_int64(s, 7, r->steps);
    sqlite3_bind_text(s, 8, r->best_name, -1, SQLITE_STATIC);
    sqlite3_bind_double(s, 9, r->best);
    sqlite3_bind_text(s, 10, r->hash, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 11, r->why, -1, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    sqlite3_finalize(s);
    return rc == SQLITE_DONE ? put_facts(x, sqlite3_last_insert_rowid(x->db), f)
                             : cli_index_failed(x);
}

static tt_status drop_run(const cli_index *x, sqlite3_int64 id)
{
    char sql[160];
    snprintf(sql, sizeof(sql),
             "DELETE FROM facts WHERE run = %lld; DELETE FROM runs WHERE id = %lld", (long long)id,
             (long long)id);
    return cli_index_run(x, sql);
}

// The row of a run, and whether it says what the folder does; 0: there is none.
static sqlite3_int64 find_run(sqlite3_stmt *s, const char *name, const char *stamp, bool *is_same)
{
    sqlite3_int64 id = 0;
    *is_same = false;
    sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    if (sqlite3_step(s) == SQLITE_ROW) {
        id = sqlite3_column_int64(s, 0);
        *is_same = strcmp((const char *)sqlite3_column_text(s, 1), stamp) == 0;
    }
    sqlite3_reset(s);
    return id;
}

// *n counts the runs that are there.
static tt_status update_run(const cli_index *x, sqlite3_stmt *find, const char *name, int64_t *n)
{
    char path[TTI_PATH_MAX], stamp[STAMP_MAX];
    bool is_same;
    cli_facts f;
    TT_TRY(tti_file_join(x->ctx, path, x->root, name));
    if (strlen(path) >= TTI_RUN_PATH)
        return TT_OK;
    stamp_of(path, stamp);
    sqlite3_int64 id = find_run(find, name, stamp, &is_same);
    if (!is_same && !cli_is_run(path))
        return TT_OK;
    (*n)++;
    if (is_same)
        return TT_OK;
    if (id != 0)
        TT_TRY(drop_run(x, id));
    TT_TRY(cli_facts_read(x->ctx, path, &f));
    tt_status st = put_run(x, name, stamp, &f);
    cli_facts_free(&f);
    return st;
}

// Drops runs whose folders are gone.
static tt_status drop_others(const cli_index *x, char **names, int64_t n)
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(x->db, "INSERT OR IGNORE INTO present VALUES (?)", -1, &s, NULL) !=
        SQLITE_OK)
        return cli_index_failed(x);
    for (int64_t i = 0; i < n; i++) {
        char path[TTI_PATH_MAX];
        snprintf(path, sizeof(path), "%s/%s", x->root, names[i]);
        if (!cli_is_run(path))
            continue;
        sqlite3_bind_text(s, 1, names[i], -1, SQLITE_STATIC);
        (void)sqlite3_step(s);
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return cli_index_run(x, "DELETE FROM facts WHERE run IN (SELECT id FROM runs WHERE name NOT IN "
                            "(SELECT name FROM present));"
                            "DELETE FROM runs WHERE name NOT IN (SELECT name FROM present);"
                            "DELETE FROM keys WHERE id NOT IN (SELECT key FROM facts)");
}

static int64_t count_runs(const cli_index *x)
{
    sqlite3_stmt *s = NULL;
    int64_t n = -1;
    if (sqlite3_prepare_v2(x->db, "SELECT count(*) FROM runs", -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW)
        n = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return n;
}

static tt_status update_all(const cli_index *x)
{
    char **names = NULL;
    int64_t n = 0, n_there = 0;
    sqlite3_stmt *find = NULL;
    TT_TRY(tti_folder_list(x->ctx, x->root, &names, &n));
    tt_status st = TT_OK;
    if (sqlite3_prepare_v2(x->db, "SELECT id, stamp FROM runs WHERE name = ?", -1, &find, NULL) !=
        SQLITE_OK)
        st = cli_index_failed(x);
    for (int64_t i = 0; i < n && st == TT_OK; i++)
        if (names[i][0] != '.')
            st = update_run(x, find, names[i], &n_there);
    sqlite3_finalize(find);
    if (st == TT_OK && count_runs(x) != n_there)
        st = drop_others(x, names, n);
    tti_names_free(x->ctx, names, n);
    return st;
}

// As one transaction: killed in between, the old index is still there.
static tt_status update(const cli_index *x)
{
    TT_TRY(cli_index_run(x, "BEGIN IMMEDIATE"));
    tt_status st = update_all(x);
    if (st == TT_OK)
        return cli_index_run(x, "COMMIT");
    (void)sqlite3_exec(x->db, "ROLLBACK", NULL, NULL, NULL);
    return st;
}

tt_status cli_index_ask(tt_ctx *ctx, const cli_query *q, cli_row **out, int64_t *n)
{
    cli_index x = {.ctx = ctx, .root = q->root};
    *out = NULL;
    *n = 0;
    if (!cli_is_folder(q->root))
        return TT_OK;
    TT_TRY(open_index(&x));
    tt_status st = update(&x);
    if (st == TT_OK)
        st = cli_index_answer(&x, q, out, n);
    sqlite3_close(x.db);
    if (st != TT_OK) {
        tti_free(ctx, *out);
        *out = NULL;
        *n = 0;
    }
    return st;
}
#endif
