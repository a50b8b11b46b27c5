/*
 * run_query.c - answers from the index of runs: conditions take runs out of a table of all of them,
 * the rest is sorted.
 */
#include "cli/run_query.h"

#ifdef TUTTI_HAVE_SQLITE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- asking ----------------------------------------------------------------------------------

// The key that a word means: itself, or the end of one ("lr" of train.optimizer.adam.lr).
static const char same_key[] =
    "key IN (SELECT id FROM keys WHERE key = ?1 OR (substr(key, -length(?1) - 1) = '.' || ?1 AND "
    "NOT EXISTS (SELECT 1 FROM keys WHERE key = ?1)))";

static tt_status check_key(const cli_index *x, const char *key)
{
    char sql[512];
    const char *names[512];
    int n = 0;
    sqlite3_stmt *s = NULL;
    snprintf(sql, sizeof(sql), "SELECT 1 FROM facts WHERE %s LIMIT 1", same_key);
    if (sqlite3_prepare_v2(x->db, sql, -1, &s, NULL) != SQLITE_OK)
        return cli_index_failed(x);
    sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
    bool is_known = sqlite3_step(s) == SQLITE_ROW;
    sqlite3_finalize(s);
    if (is_known || sqlite3_prepare_v2(x->db, "SELECT key FROM keys", -1, &s, NULL) != SQLITE_OK)
        return TT_OK;
    while (n < TTI_COUNT(names) - 1 && sqlite3_step(s) == SQLITE_ROW) {
        const char *full = (const char *)sqlite3_column_text(s, 0), *dot = strrchr(full, '.');
        names[n] = tti_strdup(x->ctx, dot != NULL && strchr(key, '.') == NULL ? dot + 1 : full);
        n += names[n] != NULL;
    }
    sqlite3_finalize(s);
    names[n] = NULL;
    const char *near = NULL; // one that begins so: "acc" is accuracy rather than act
    for (int i = 0; i < n && near == NULL && strlen(key) >= 3; i++)
        near = strncmp(names[i], key, strlen(key)) == 0 ? names[i] : NULL;
    if (near == NULL)
        near = tti_nearest(key, names);
    tt_status st =
        n == 0 ? TT_OK
               : TT_FAIL(x->ctx, TT_EINVAL,
                         near != NULL ? "no run has a key or metric '%.64s'; did you mean '%s'?"
                                      : "no run has a key or metric '%.64s'; tutti runs show RUN "
                                        "lists those of a run",
                         key, near);
    for (int i = 0; i < n; i++)
        tti_free(x->ctx, (char *)names[i]);
    return st;
}

typedef struct condition {
    char key[128];
    const char *op, *value;
} condition;

static tt_status parse(const cli_index *x, const char *text, condition *c)
{
    static const char *const ops[] = {"!=", "<=", ">=", "==", "=", "<", ">", "~"};
    size_t at = strcspn(text, "!<>=~");
    for (int i = 0; i < TTI_COUNT(ops); i++)
        if (at > 0 && at < sizeof(c->key) && strncmp(text + at, ops[i], strlen(ops[i])) == 0) {
            snprintf(c->key, sizeof(c->key), "%.*s", (int)at, text);
            for (size_t n = strlen(c->key); n > 0 && c->key[n - 1] == ' '; n--)
                c->key[n - 1] = '\0';
            c->op = strcmp(ops[i], "==") == 0 ? "=" : ops[i];
            c->value = text + at + strlen(ops[i]);
            c->value += strspn(c->value, " ");
            return TT_OK;
        }
    return TT_FAIL(x->ctx, TT_EINVAL,
                   "--where '%s' is not of the form KEY=VALUE; the signs are = != < <= > >= and ~ "
                   "(contains)",
                   text);
}

// Takes the runs for which a condition does not hold out of the table "chosen".
static tt_status keep_where(const cli_index *x, const char *text)
{
    condition c;
    char sql[1024], compare[128], *end;
    sqlite3_stmt *s = NULL;
    TT_TRY(parse(x, text, &c));
    TT_TRY(check_key(x, c.key));
    double number = strtod(c.value, &end);
    bool is_number = end != c.value && *end == '\0', is_not = strcmp(c.op, "!=") == 0;
    const char *op = is_not ? "=" : c.op;
    if (strcmp(op, "~") == 0)
        snprintf(compare, sizeof(compare), "instr(value, ?2) > 0");
    else if (strcmp(c.key, "hash") == 0 && strcmp(op, "=") == 0)
        snprintf(compare, sizeof(compare), "substr(value, 1, length(?2)) = ?2");
    else
        snprintf(compare, sizeof(compare), "%s %s ?2", is_number ? "number" : "value", op);
    snprintf(sql, sizeof(sql),
             "DELETE FROM chosen WHERE id %s (SELECT run FROM facts WHERE %s AND %s)",
             is_not ? "IN" : "NOT IN", same_key, compare);
    if (sqlite3_prepare_v2(x->db, sql, -1, &s, NULL) != SQLITE_OK)
        return cli_index_failed(x);
    sqlite3_bind_text(s, 1, c.key, -1, SQLITE_STATIC);
    if (is_number && strstr(compare, "number") != NULL)
        sqlite3_bind_double(s, 2, number);
    else
        sqlite3_bind_text(s, 2, c.value, -1, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    sqlite3_finalize(s);
    return rc == SQLITE_DONE ? TT_OK : cli_index_failed(x);
}

static void copy(sqlite3_stmt *s, int column, char *out, size_t room)
{
    const char *text = (const char *)sqlite3_column_text(s, column);
    snprintf(out, room, "%s", text != NULL ? text : "");
}

static void read_row(const cli_index *x, sqlite3_stmt *s, cli_row *r)
{
    *r = (cli_row){.sorted = NAN};
    snprintf(r->path, sizeof(r->path), "%s/%s", x->root, (const char *)sqlite3_column_text(s, 0));
    r->info.state = (tti_run_state)sqlite3_column_int(s, 1);
    r->info.time = sqlite3_column_double(s, 2);
    r->info.n_starts = sqlite3_column_int(s, 3);
    r->info.step = sqlite3_column_int64(s, 4);
    r->info.steps = sqlite3_column_int64(s, 5);
    copy(s, 6, r->info.best_name, sizeof(r->info.best_name));
    r->info.best = sqlite3_column_type(s, 7) == SQLITE_NULL ? NAN : sqlite3_column_double(s, 7);
    copy(s, 8, r->info.hash, sizeof(r->info.hash));
    copy(s, 9, r->info.why, sizeof(r->info.why));
    copy(s, 10, r->shown, sizeof(r->shown));
    if (sqlite3_column_type(s, 11) != SQLITE_NULL)
        r->sorted = sqlite3_column_double(s, 11);
    copy(s, 12, r->tags, sizeof(r->tags));
}

static tt_status select_rows(const cli_index *x, const cli_query *q, cli_row **out, int64_t *n)
{
    char sql[2048];
    int64_t cap = 0;
    sqlite3_stmt *s = NULL;
    bool is_down = q->sort != NULL && q->sort[0] == '-';
    const char *key = q->sort == NULL ? "" : q->sort + is_down, *way = is_down ? "DESC" : "ASC";
    if (key[0] != '\0')
        TT_TRY(check_key(x, key));
    snprintf(sql, sizeof(sql),
             "SELECT name, state, time, starts, step, steps, best_name, best, hash, why, "
             "(SELECT value FROM facts WHERE run = r.id AND %s LIMIT 1) AS shown, "
             "(SELECT number FROM facts WHERE run = r.id AND %s LIMIT 1) AS sorted, "
             "(SELECT group_concat(value, ', ') FROM facts WHERE run = r.id AND key = (SELECT id "
             "FROM keys WHERE key = 'tag')) "
             "FROM runs r WHERE id IN (SELECT id FROM chosen) ORDER BY %s %s %s time DESC, name "
             "DESC LIMIT %lld",
             same_key, same_key, key[0] != '\0' ? "shown IS NULL, sorted" : "",
             key[0] != '\0' ? way : "",
             key[0] != '\0' ? is_down ? ", shown DESC," : ", shown," : "",
             (long long)(q->most > 0 ? q->most : -1));
    if (sqlite3_prepare_v2(x->db, sql, -1, &s, NULL) != SQLITE_OK)
        return cli_index_failed(x);
    sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
    tt_status st = TT_OK;
    while (st == TT_OK && sqlite3_step(s) == SQLITE_ROW) {
        if (!tti_grow(x->ctx, out, &cap, *n + 1, sizeof(**out)))
            st = TT_ENOMEM;
        else
            read_row(x, s, &(*out)[(*n)++]);
    }
    sqlite3_finalize(s);
    return st;
}

tt_status cli_index_answer(const cli_index *x, const cli_query *q, cli_row **out, int64_t *n)
{
    TT_TRY(cli_index_run(x, "CREATE TEMP TABLE chosen AS SELECT id FROM runs"));
    for (int i = 0; q->where != NULL && i < q->where->n; i++)
        TT_TRY(keep_where(x, q->where->v[i]));
    return select_rows(x, q, out, n);
}
#endif
