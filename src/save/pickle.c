/*
 * pickle.c - the machine (pickle.h). Values are numbered; a container lists the numbers of its
 * items. Every operation makes at most one value, so memory is bounded by the pickle's size.
 */
#include "save/pickle.h"
#include <string.h>

typedef enum kind {
    K_NONE,
    K_INT,
    K_TEXT,
    K_TUPLE, // and lists
    K_DICT,  // keys and values in turn
    K_NAME,  // module and name of something in Python
    K_STORAGE,
    K_TENSOR,
    K_MARK,
} kind;

typedef struct value {
    kind kind;
    int64_t number;   // of an integer; of a storage its elements; of a tensor its offset
    const char *text; // of a text, a storage's key, a name "module name"
    size_t length;    // of the text
    int64_t first, n; // items, in the machine's list
    int64_t a, b, c;  // tensor: storage, shape, stride; storage: its type
} value;

// The item lists of dictionaries grow as items are set: each is a chain of pieces.
typedef struct piece {
    int64_t key, value, next; // next -1: the last
} piece;

typedef struct machine {
    tt_ctx *ctx;
    const char *file;
    const unsigned char *p, *end;
    size_t bytes;
    value *values;
    int64_t n, cap;
    int64_t *items; // of tuples
    int64_t n_items, cap_items;
    piece *pieces; // of dictionaries
    int64_t n_pieces, cap_pieces;
    int64_t *stack;
    int64_t n_stack, cap_stack;
    int64_t *memo;
    int64_t n_memo, cap_memo;
} machine;

static const char *const names[] = {
    "collections OrderedDict",
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_parameter",
    "torch FloatStorage",
    "torch DoubleStorage",
    "torch HalfStorage",
    "torch BFloat16Storage",
    "torch LongStorage",
    "torch IntStorage",
    "torch ShortStorage",
    "torch CharStorage",
    "torch ByteStorage",
    "torch BoolStorage",
};

// ---- values ----------------------------------------------------------------------------------

static tt_status damaged(const machine *m, const char *what)
{
    return TT_FAIL(m->ctx, TT_EPARSE, "%s: its pickle is damaged: %s", m->file, what);
}

static tt_status push(machine *m, value v)
{
    if (!tti_grow(m->ctx, &m->values, &m->cap, m->n + 1, sizeof(v)) ||
        !tti_grow(m->ctx, &m->stack, &m->cap_stack, m->n_stack + 1, sizeof(*m->stack)))
        return TT_ENOMEM;
    m->values[m->n] = v;
    m->stack[m->n_stack++] = m->n++;
    return TT_OK;
}

static value *pop(machine *m)
{
    return m->n_stack > 0 ? &m->values[m->stack[--m->n_stack]] : NULL;
}

static value *top(machine *m)
{
    return m->n_stack > 0 ? &m->values[m->stack[m->n_stack - 1]] : NULL;
}

// The place of the last mark on the stack; -1: there is none.
static int64_t mark(const machine *m)
{
    for (int64_t i = m->n_stack - 1; i >= 0; i--)
        if (m->values[m->stack[i]].kind == K_MARK)
            return i;
    return -1;
}

// A tuple of the stack's values from place on.
static tt_status tuple(machine *m, int64_t from, int64_t drop)
{
    int64_t n = m->n_stack - from;
    value v = {.kind = K_TUPLE, .first = m->n_items, .n = n};
    if (!tti_grow(m->ctx, &m->items, &m->cap_items, m->n_items + n + 1, sizeof(*m->items)))
        return TT_ENOMEM;
    memcpy(m->items + m->n_items, m->stack + from, sizeof(*m->items) * (size_t)n);
    m->n_items += n;
    m->n_stack = from - drop;
    return push(m, v);
}

static value *item(machine *m, const value *t, int64_t i)
{
    return t != NULL && t->kind == K_TUPLE && i < t->n ? &m->values[m->items[t->first + i]] : NULL;
}

// Sets pairs of the stack from place on in the dictionary below them.
static tt_status set_items(machine *m, int64_t from, int64_t drop)
{
    int64_t below = from - drop - 1, n = m->n_stack - from;
    value *d = below >= 0 ? &m->values[m->stack[below]] : NULL;
    if (d == NULL || d->kind != K_DICT || n % 2 != 0)
        return damaged(m, "items without a dictionary");
    if (!tti_grow(m->ctx, &m->pieces, &m->cap_pieces, m->n_pieces + n / 2 + 1, sizeof(*m->pieces)))
        return TT_ENOMEM;
    for (int64_t i = from; i < m->n_stack; i += 2) {
        piece *p = &m->pieces[m->n_pieces];
        *p = (piece){m->stack[i], m->stack[i + 1], -1};
        if (d->n > 0)
            m->pieces[d->a].next = m->n_pieces;
        else
            d->first = m->n_pieces;
        d->a = m->n_pieces++; // the last one
        d->n++;
    }
    m->n_stack = below + 1;
    return TT_OK;
}

// ---- what Python would call ------------------------------------------------------------------

static bool is_name(const value *v, int i)
{
    return v != NULL && v->kind == K_NAME && v->text == names[i];
}

static tt_status refused(const machine *m, const char *name, size_t length)
{
    return TT_FAIL(m->ctx, TT_EUNSUPPORTED,
                   "%s: needs Python's '%.*s', but code in a file is never run: save only the "
                   "weights, torch.save(model.state_dict(), \"model.pt\"), or a safetensors file, "
                   "safetensors.torch.save_file(model.state_dict(), \"model.safetensors\")",
                   m->file, (int)TTI_MIN(length, 100), name);
}

static tt_status push_name(machine *m, const char *module, size_t n, const char *name, size_t k)
{
    char whole[256];
    if (n + k + 2 > sizeof(whole))
        return refused(m, module, n);
    memcpy(whole, module, n);
    whole[n] = ' ';
    memcpy(whole + n + 1, name, k);
    whole[n + 1 + k] = '\0';
    for (int i = 0; i < TTI_COUNT(names); i++)
        if (strcmp(names[i], whole) == 0)
            return push(m, (value){.kind = K_NAME, .text = names[i], .number = i});
    whole[n] = '.';
    return refused(m, whole, n + 1 + k);
}

static tt_status rebuild_tensor(machine *m, const value *args)
{
    const value *storage = item(m, args, 0), *offset = item(m, args, 1), *shape = item(m, args, 2),
                *stride = item(m, args, 3);
    if (storage == NULL || storage->kind != K_STORAGE || offset == NULL || offset->kind != K_INT ||
        shape == NULL || shape->kind != K_TUPLE || stride == NULL || stride->kind != K_TUPLE ||
        shape->n != stride->n)
        return damaged(m, "a tensor without a storage");
    return push(m, (value){.kind = K_TENSOR,
                           .number = offset->number,
                           .a = storage - m->values,
                           .b = shape - m->values,
                           .c = stride - m->values});
}

static tt_status reduce(machine *m)
{
    const value *args = pop(m), *what = pop(m);
    if (what == NULL || what->kind != K_NAME || args->kind != K_TUPLE)
        return damaged(m, "a call of something that is not a name");
    if (is_name(what, 0))
        return args->n == 0 ? push(m, (value){.kind = K_DICT})
                            : refused(m, "OrderedDict with arguments", 26);
    if (is_name(what, 1))
        return rebuild_tensor(m, args);
    if (is_name(what, 2)) {
        const value *t = item(m, args, 0);
        return t != NULL && t->kind == K_TENSOR ? push(m, *t)
                                                : damaged(m, "a parameter without a tensor");
    }
    return damaged(m, "a call of a storage's type");
}

// ('storage', type, key, place, elements)
static tt_status persistent(machine *m)
{
    const value *t = pop(m), *type = item(m, t, 1), *key = item(m, t, 2), *n = item(m, t, 4);
    if (type == NULL || type->kind != K_NAME || type->number < 3 || key == NULL ||
        key->kind != K_TEXT || n == NULL || n->kind != K_INT || n->number < 0)
        return damaged(m, "an invalid storage");
    return push(m, (value){.kind = K_STORAGE,
                           .text = key->text,
                           .length = key->length,
                           .number = n->number,
                           .a = type->number});
}

// State of an object: attributes of a dictionary ("_metadata") do not matter.
static tt_status build(machine *m)
{
    const value *state = pop(m), *object = top(m);
    if (object == NULL || object->kind != K_DICT || state->kind != K_DICT)
        return damaged(m, "a state that is not a dictionary");
    return TT_OK;
}

// ---- operations ------------------------------------------------------------------------------

// n bytes that follow the operation; NULL: they are not there.
static const unsigned char *take(machine *m, size_t n)
{
    if ((size_t)(m->end - m->p) < n)
        return NULL;
    const unsigned char *at = m->p;
    m->p += n;
    return at;
}

static uint64_t little(const unsigned char *p, int n)
{
    uint64_t v = 0;
    for (int i = n - 1; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static tt_status push_int(machine *m, int bytes, bool is_signed)
{
    const unsigned char *p = take(m, (size_t)bytes);
    if (p == NULL)
        return damaged(m, "it is cut short");
    int64_t v = (int64_t)little(p, bytes);
    if (is_signed && bytes < 8 && bytes > 0 && (p[bytes - 1] & 0x80) != 0)
        v -= INT64_C(1) << 8 * bytes;
    return push(m, (value){.kind = K_INT, .number = v});
}

static tt_status push_long(machine *m)
{
    const unsigned char *n = take(m, 1);
    if (n == NULL || *n > 8)
        return damaged(m, "a number of more than 64 bits");
    return push_int(m, *n, true);
}

static tt_status push_text(machine *m, int length_bytes)
{
    const unsigned char *n = take(m, (size_t)length_bytes);
    uint64_t length = n != NULL ? little(n, length_bytes) : 0;
    const unsigned char *text = n != NULL ? take(m, (size_t)length) : NULL;
    if (text == NULL || memchr(text, '\0', (size_t)length) != NULL)
        return damaged(m, "a text is cut short");
    return push(m, (value){.kind = K_TEXT, .text = (const char *)text, .length = (size_t)length});
}

// c: "module\nname\n"
static tt_status push_global(machine *m)
{
    const unsigned char *module = m->p, *a = memchr(m->p, '\n', (size_t)(m->end - m->p)),
                        *name = a != NULL ? a + 1 : m->end,
                        *b = memchr(name, '\n', (size_t)(m->end - name));
    if (a == NULL || b == NULL)
        return damaged(m, "a name is cut short");
    m->p = b + 1;
    return push_name(m, (const char *)module, (size_t)(a - module), (const char *)name,
                     (size_t)(b - name));
}

static tt_status stack_global(machine *m)
{
    const value *name = pop(m), *module = pop(m);
    if (module == NULL || module->kind != K_TEXT || name->kind != K_TEXT)
        return damaged(m, "a name that is not a string");
    return push_name(m, module->text, module->length, name->text, name->length);
}

static tt_status put(machine *m, uint64_t at)
{
    if (m->n_stack == 0 || at > (uint64_t)m->bytes) // each took an operation
        return damaged(m, "an empty memo");
    if (!tti_grow(m->ctx, &m->memo, &m->cap_memo, (int64_t)at + 1, sizeof(*m->memo)))
        return TT_ENOMEM;
    while (m->n_memo <= (int64_t)at)
        m->memo[m->n_memo++] = -1;
    m->memo[at] = m->stack[m->n_stack - 1];
    return TT_OK;
}

static tt_status get(machine *m, uint64_t at)
{
    if (at >= (uint64_t)m->n_memo || m->memo[at] < 0)
        return damaged(m, "a memo that does not exist");
    if (!tti_grow(m->ctx, &m->stack, &m->cap_stack, m->n_stack + 1, sizeof(*m->stack)))
        return TT_ENOMEM;
    m->stack[m->n_stack++] = m->memo[at];
    return TT_OK;
}

static tt_status memo(machine *m, int bytes, bool puts)
{
    const unsigned char *p = take(m, (size_t)bytes);
    if (p == NULL)
        return damaged(m, "it is cut short");
    return puts ? put(m, little(p, bytes)) : get(m, little(p, bytes));
}

static tt_status up_to_mark(machine *m, tt_status (*fn)(machine *m, int64_t from, int64_t drop))
{
    int64_t at = mark(m);
    return at < 0 ? damaged(m, "a mark is missing") : fn(m, at + 1, 1);
}

static tt_status last(machine *m, int64_t n,
                      tt_status (*fn)(machine *m, int64_t from, int64_t drop))
{
    return m->n_stack < n ? damaged(m, "the stack is empty") : fn(m, m->n_stack - n, 0);
}

static tt_status skip(machine *m, size_t n)
{
    return take(m, n) != NULL ? TT_OK : damaged(m, "it is cut short");
}

// Items of a list: none is looked at.
static tt_status append(machine *m, int64_t from, int64_t drop)
{
    if (from - drop < 1)
        return damaged(m, "items without a list");
    m->n_stack = from - drop;
    return TT_OK;
}

static tt_status operation(machine *m, int op, bool *over)
{
    switch (op) {
    case 0x80: // PROTO
        return skip(m, 1);
    case 0x95: // FRAME
        return skip(m, 8);
    case '.':
        *over = true;
        return TT_OK;
    case '}':
        return push(m, (value){.kind = K_DICT});
    case ']':
    case ')':
        return push(m, (value){.kind = K_TUPLE, .first = m->n_items});
    case '(':
        return push(m, (value){.kind = K_MARK});
    case 'N':
        return push(m, (value){.kind = K_NONE});
    case 0x88: // True
    case 0x89:
        return push(m, (value){.kind = K_INT, .number = op == 0x88});
    case 'J':
        return push_int(m, 4, true);
    case 'K':
        return push_int(m, 1, false);
    case 'M':
        return push_int(m, 2, false);
    case 0x8a:
        return push_long(m);
    case 'G': // a float: of no use here
        TT_TRY(skip(m, 8));
        return push(m, (value){.kind = K_NONE});
    case 'X':
        return push_text(m, 4);
    case 0x8c:
        return push_text(m, 1);
    case 'c':
        return push_global(m);
    case 0x93:
        return stack_global(m);
    case 'q':
        return memo(m, 1, true);
    case 'r':
        return memo(m, 4, true);
    case 0x94:
        return put(m, (uint64_t)m->n_memo);
    case 'h':
        return memo(m, 1, false);
    case 'j':
        return memo(m, 4, false);
    case 't':
        return up_to_mark(m, tuple);
    case 0x85:
    case 0x86:
    case 0x87:
        return last(m, op - 0x84, tuple);
    case 's':
        return last(m, 2, set_items);
    case 'u':
        return up_to_mark(m, set_items);
    case 'a':
        return last(m, 1, append);
    case 'e':
        return up_to_mark(m, append);
    case 'Q':
        return persistent(m);
    case 'R':
        return reduce(m);
    case 'b':
        return build(m);
    default:
        return TT_FAIL(m->ctx, TT_EUNSUPPORTED,
                       "%s: its pickle has the operation 0x%02x, which no file of tensors needs: "
                       "save it as safetensors",
                       m->file, (unsigned)op);
    }
}

// ---- the result ------------------------------------------------------------------------------

static char *copy_text(tt_ctx *ctx, const value *v)
{
    char *s = tti_alloc(ctx, v->length + 1);
    if (s != NULL) {
        memcpy(s, v->text, v->length);
        s[v->length] = '\0';
    }
    return s;
}

static tt_status add_tensor(machine *m, const value *name, const value *t, tti_pickle *out)
{
    const value *storage = &m->values[t->a], *shape = &m->values[t->b], *stride = &m->values[t->c];
    tti_pickled *p = &out->tensors[out->n];
    *p = (tti_pickled){.type = strchr(names[storage->a], ' ') + 1,
                       .numel = storage->number,
                       .offset = t->number,
                       .rank = (int)TTI_MIN(shape->n, TT_MAX_RANK + 1)};
    for (int64_t i = 0; i < shape->n && i < TT_MAX_RANK; i++) {
        const value *a = item(m, shape, i), *b = item(m, stride, i);
        if (a->kind != K_INT || b->kind != K_INT)
            return damaged(m, "a shape that is not a list of numbers");
        p->shape[i] = a->number;
        p->stride[i] = b->number;
    }
    p->name = copy_text(m->ctx, name);
    p->key = copy_text(m->ctx, storage);
    out->n++;
    return p->name != NULL && p->key != NULL ? TT_OK : TT_ENOMEM;
}

static bool is_text(const value *v, const char *s)
{
    return v->kind == K_TEXT && v->length == strlen(s) && memcmp(v->text, s, v->length) == 0;
}

// The dictionary of tensors: the whole, or what a training script put it into.
static const value *find_dict(const machine *m, const value *d)
{
    static const char *const usual[] = {"state_dict", "model_state_dict", "model"};
    for (int64_t i = d->n > 0 ? d->first : -1; i >= 0; i = m->pieces[i].next) {
        const value *v = &m->values[m->pieces[i].value];
        for (int k = 0; k < TTI_COUNT(usual); k++)
            if (v->kind == K_DICT && is_text(&m->values[m->pieces[i].key], usual[k]))
                return v;
    }
    return d;
}

static tt_status collect(machine *m, tti_pickle *out)
{
    const value *d = top(m);
    if (d == NULL || d->kind != K_DICT)
        return TT_FAIL(m->ctx, TT_EUNSUPPORTED,
                       "%s: is not a dictionary of tensors; write one with "
                       "torch.save(model.state_dict(), ...)",
                       m->file);
    d = find_dict(m, d);
    out->tensors = tti_calloc(m->ctx, (size_t)d->n + 1, sizeof(*out->tensors));
    if (out->tensors == NULL)
        return TT_ENOMEM;
    for (int64_t i = d->n > 0 ? d->first : -1; i >= 0; i = m->pieces[i].next) {
        const value *key = &m->values[m->pieces[i].key], *v = &m->values[m->pieces[i].value];
        if (key->kind == K_TEXT && v->kind == K_TENSOR)
            TT_TRY(add_tensor(m, key, v, out));
        else
            out->others++;
    }
    if (out->n == 0)
        return TT_FAIL(m->ctx, TT_EUNSUPPORTED, "%s: has no tensors in it", m->file);
    return TT_OK;
}

void tti_pickle_free(tt_ctx *ctx, tti_pickle *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        tti_free(ctx, p->tensors[i].name);
        tti_free(ctx, p->tensors[i].key);
    }
    tti_free(ctx, p->tensors);
    *p = (tti_pickle){0};
}

tt_status tti_pickle_read(tt_ctx *ctx, const char *file, const void *data, size_t bytes,
                          tti_pickle *out)
{
    machine m = {.ctx = ctx,
                 .file = file,
                 .p = data,
                 .end = (const unsigned char *)data + bytes,
                 .bytes = bytes};
    tt_status st = TT_OK;
    bool over = false;
    *out = (tti_pickle){0};
    while (st == TT_OK && !over)
        st = m.p < m.end ? operation(&m, *m.p++, &over) : damaged(&m, "it is cut short");
    if (st == TT_OK)
        st = collect(&m, out);
    tti_free(ctx, m.values);
    tti_free(ctx, m.items);
    tti_free(ctx, m.pieces);
    tti_free(ctx, m.stack);
    tti_free(ctx, m.memo);
    if (st != TT_OK)
        tti_pickle_free(ctx, out);
    return st;
}
