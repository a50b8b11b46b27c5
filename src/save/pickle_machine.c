/*
 * pickle_machine.c - the operations of the machine (pickle_machine.h). What Python would call is
 * known by name, and refused where it is not in the list.
 */
#include "save/pickle_machine.h"
#include <string.h>

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

tt_status tti_pk_damaged(const tti_pk_machine *m, const char *what)
{
    return TT_FAIL(m->ctx, TT_EPARSE, "%s: its pickle is damaged: %s", m->file, what);
}

static tt_status push(tti_pk_machine *m, tti_pk_value v)
{
    if (!tti_grow(m->ctx, &m->values, &m->cap, m->n + 1, sizeof(v)) ||
        !tti_grow(m->ctx, &m->stack, &m->cap_stack, m->n_stack + 1, sizeof(*m->stack)))
        return TT_ENOMEM;
    m->values[m->n] = v;
    m->stack[m->n_stack++] = m->n++;
    return TT_OK;
}

static tti_pk_value *pop(tti_pk_machine *m)
{
    return m->n_stack > 0 ? &m->values[m->stack[--m->n_stack]] : NULL;
}

tti_pk_value *tti_pk_top(tti_pk_machine *m)
{
    return m->n_stack > 0 ? &m->values[m->stack[m->n_stack - 1]] : NULL;
}

// The place of the last mark on the stack; -1: there is none.
static int64_t mark(const tti_pk_machine *m)
{
    for (int64_t i = m->n_stack - 1; i >= 0; i--)
        if (m->values[m->stack[i]].kind == TTI_PK_MARK)
            return i;
    return -1;
}

// A tuple of the stack's values from place on.
static tt_status tuple(tti_pk_machine *m, int64_t from, int64_t drop)
{
    int64_t n = m->n_stack - from;
    tti_pk_value v = {.kind = TTI_PK_TUPLE, .first = m->n_items, .n = n};
    if (!tti_grow(m->ctx, &m->items, &m->cap_items, m->n_items + n + 1, sizeof(*m->items)))
        return TT_ENOMEM;
    memcpy(m->items + m->n_items, m->stack + from, sizeof(*m->items) * (size_t)n);
    m->n_items += n;
    m->n_stack = from - drop;
    return push(m, v);
}

tti_pk_value *tti_pk_item(tti_pk_machine *m, const tti_pk_value *t, int64_t i)
{
    return t != NULL && t->kind == TTI_PK_TUPLE && i < t->n ? &m->values[m->items[t->first + i]]
                                                            : NULL;
}

// Sets pairs of the stack from place on in the dictionary below them.
static tt_status set_items(tti_pk_machine *m, int64_t from, int64_t drop)
{
    int64_t below = from - drop - 1, n = m->n_stack - from;
    tti_pk_value *d = below >= 0 ? &m->values[m->stack[below]] : NULL;
    if (d == NULL || d->kind != TTI_PK_DICT || n % 2 != 0)
        return tti_pk_damaged(m, "items without a dictionary");
    if (!tti_grow(m->ctx, &m->pieces, &m->cap_pieces, m->n_pieces + n / 2 + 1, sizeof(*m->pieces)))
        return TT_ENOMEM;
    for (int64_t i = from; i < m->n_stack; i += 2) {
        tti_pk_piece *p = &m->pieces[m->n_pieces];
        *p = (tti_pk_piece){m->stack[i], m->stack[i + 1], -1};
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

const char *tti_pk_storage_type(const tti_pk_value *storage)
{
    return strchr(names[storage->a], ' ') + 1;
}

// ---- what Python would call ------------------------------------------------------------------

static bool is_name(const tti_pk_value *v, int i)
{
    return v != NULL && v->kind == TTI_PK_NAME && v->text == names[i];
}

static tt_status refused(const tti_pk_machine *m, const char *name, size_t length)
{
    return TT_FAIL(m->ctx, TT_EUNSUPPORTED,
                   "%s: needs Python's '%.*s', but code in a file is never run: save only the "
                   "weights, torch.save(model.state_dict(), \"model.pt\"), or a safetensors file, "
                   "safetensors.torch.save_file(model.state_dict(), \"model.safetensors\")",
                   m->file, (int)TTI_MIN(length, 100), name);
}

static tt_status push_name(tti_pk_machine *m, const char *module, size_t n, const char *name,
                           size_t k)
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
            return push(m, (tti_pk_value){.kind = TTI_PK_NAME, .text = names[i], .number = i});
    whole[n] = '.';
    return refused(m, whole, n + 1 + k);
}

static tt_status rebuild_tensor(tti_pk_machine *m, const tti_pk_value *args)
{
    const tti_pk_value *storage = tti_pk_item(m, args, 0), *offset = tti_pk_item(m, args, 1),
                       *shape = tti_pk_item(m, args, 2), *stride = tti_pk_item(m, args, 3);
    if (storage == NULL || storage->kind != TTI_PK_STORAGE || offset == NULL ||
        offset->kind != TTI_PK_INT || shape == NULL || shape->kind != TTI_PK_TUPLE ||
        stride == NULL || stride->kind != TTI_PK_TUPLE || shape->n != stride->n)
        return tti_pk_damaged(m, "a tensor without a storage");
    return push(m, (tti_pk_value){.kind = TTI_PK_TENSOR,
                                  .number = offset->number,
                                  .a = storage - m->values,
                                  .b = shape - m->values,
                                  .c = stride - m->values});
}

static tt_status reduce(tti_pk_machine *m)
{
    const tti_pk_value *args = pop(m), *what = pop(m);
    if (what == NULL || what->kind != TTI_PK_NAME || args->kind != TTI_PK_TUPLE)
        return tti_pk_damaged(m, "a call of something that is not a name");
    if (is_name(what, 0))
        return args->n == 0 ? push(m, (tti_pk_value){.kind = TTI_PK_DICT})
                            : refused(m, "OrderedDict with arguments", 26);
    if (is_name(what, 1))
        return rebuild_tensor(m, args);
    if (is_name(what, 2)) {
        const tti_pk_value *t = tti_pk_item(m, args, 0);
        return t != NULL && t->kind == TTI_PK_TENSOR
                   ? push(m, *t)
                   : tti_pk_damaged(m, "a parameter without a tensor");
    }
    return tti_pk_damaged(m, "a call of a storage's type");
}

// ('storage', type, key, place, elements)
static tt_status persistent(tti_pk_machine *m)
{
    const tti_pk_value *t = pop(m), *type = tti_pk_item(m, t, 1), *key = tti_pk_item(m, t, 2),
                       *n = tti_pk_item(m, t, 4);
    if (type == NULL || type->kind != TTI_PK_NAME || type->number < 3 || key == NULL ||
        key->kind != TTI_PK_TEXT || n == NULL || n->kind != TTI_PK_INT || n->number < 0)
        return tti_pk_damaged(m, "an invalid storage");
    return push(m, (tti_pk_value){.kind = TTI_PK_STORAGE,
                                  .text = key->text,
                                  .length = key->length,
                                  .number = n->number,
                                  .a = type->number});
}

// State of an object: attributes of a dictionary ("_metadata") do not matter.
static tt_status build(tti_pk_machine *m)
{
    const tti_pk_value *state = pop(m), *object = tti_pk_top(m);
    if (object == NULL || object->kind != TTI_PK_DICT || state->kind != TTI_PK_DICT)
        return tti_pk_damaged(m, "a state that is not a dictionary");
    return TT_OK;
}

// ---- operations ------------------------------------------------------------------------------

// n bytes that follow the operation; NULL: they are not there.
static const unsigned char *take(tti_pk_machine *m, size_t n)
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

static tt_status push_int(tti_pk_machine *m, int bytes, bool is_signed)
{
    const unsigned char *p = take(m, (size_t)bytes);
    if (p == NULL)
        return tti_pk_damaged(m, "it is cut short");
    int64_t v = (int64_t)little(p, bytes);
    if (is_signed && bytes < 8 && bytes > 0 && (p[bytes - 1] & 0x80) != 0)
        v -= INT64_C(1) << 8 * bytes;
    return push(m, (tti_pk_value){.kind = TTI_PK_INT, .number = v});
}

static tt_status push_long(tti_pk_machine *m)
{
    const unsigned char *n = take(m, 1);
    if (n == NULL || *n > 8)
        return tti_pk_damaged(m, "a number of more than 64 bits");
    return push_int(m, *n, true);
}

static tt_status push_text(tti_pk_machine *m, int length_bytes)
{
    const unsigned char *n = take(m, (size_t)length_bytes);
    uint64_t length = n != NULL ? little(n, length_bytes) : 0;
    const unsigned char *text = n != NULL ? take(m, (size_t)length) : NULL;
    if (text == NULL || memchr(text, '\0', (size_t)length) != NULL)
        return tti_pk_damaged(m, "a text is cut short");
    return push(m, (tti_pk_value){
                       .kind = TTI_PK_TEXT, .text = (const char *)text, .length = (size_t)length});
}

// c: "module\nname\n"
static tt_status push_global(tti_pk_machine *m)
{
    const unsigned char *module = m->p, *a = memchr(m->p, '\n', (size_t)(m->end - m->p)),
                        *name = a != NULL ? a + 1 : m->end,
                        *b = memchr(name, '\n', (size_t)(m->end - name));
    if (a == NULL || b == NULL)
        return tti_pk_damaged(m, "a name is cut short");
    m->p = b + 1;
    return push_name(m, (const char *)module, (size_t)(a - module), (const char *)name,
                     (size_t)(b - name));
}

static tt_status stack_global(tti_pk_machine *m)
{
    const tti_pk_value *name = pop(m), *module = pop(m);
    if (module == NULL || module->kind != TTI_PK_TEXT || name->kind != TTI_PK_TEXT)
        return tti_pk_damaged(m, "a name that is not a string");
    return push_name(m, module->text, module->length, name->text, name->length);
}

static tt_status put(tti_pk_machine *m, uint64_t at)
{
    if (m->n_stack == 0 || at > (uint64_t)m->bytes) // each took an operation
        return tti_pk_damaged(m, "an empty memo");
    if (!tti_grow(m->ctx, &m->memo, &m->cap_memo, (int64_t)at + 1, sizeof(*m->memo)))
        return TT_ENOMEM;
    while (m->n_memo <= (int64_t)at)
        m->memo[m->n_memo++] = -1;
    m->memo[at] = m->stack[m->n_stack - 1];
    return TT_OK;
}

static tt_status get(tti_pk_machine *m, uint64_t at)
{
    if (at >= (uint64_t)m->n_memo || m->memo[at] < 0)
        return tti_pk_damaged(m, "a memo that does not exist");
    if (!tti_grow(m->ctx, &m->stack, &m->cap_stack, m->n_stack + 1, sizeof(*m->stack)))
        return TT_ENOMEM;
    m->stack[m->n_stack++] = m->memo[at];
    return TT_OK;
}

static tt_status memo(tti_pk_machine *m, int bytes, bool puts)
{
    const unsigned char *p = take(m, (size_t)bytes);
    if (p == NULL)
        return tti_pk_damaged(m, "it is cut short");
    return puts ? put(m, little(p, bytes)) : get(m, little(p, bytes));
}

static tt_status up_to_mark(tti_pk_machine *m,
                            tt_status (*fn)(tti_pk_machine *m, int64_t from, int64_t drop))
{
    int64_t at = mark(m);
    return at < 0 ? tti_pk_damaged(m, "a mark is missing") : fn(m, at + 1, 1);
}

static tt_status last(tti_pk_machine *m, int64_t n,
                      tt_status (*fn)(tti_pk_machine *m, int64_t from, int64_t drop))
{
    return m->n_stack < n ? tti_pk_damaged(m, "the stack is empty") : fn(m, m->n_stack - n, 0);
}

static tt_status skip(tti_pk_machine *m, size_t n)
{
    return take(m, n) != NULL ? TT_OK : tti_pk_damaged(m, "it is cut short");
}

// Items of a list: none is looked at.
static tt_status append(tti_pk_machine *m, int64_t from, int64_t drop)
{
    if (from - drop < 1)
        return tti_pk_damaged(m, "items without a list");
    m->n_stack = from - drop;
    return TT_OK;
}

tt_status tti_pk_operation(tti_pk_machine *m, int op, bool *over)
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
        return push(m, (tti_pk_value){.kind = TTI_PK_DICT});
    case ']':
    case ')':
        return push(m, (tti_pk_value){.kind = TTI_PK_TUPLE, .first = m->n_items});
    case '(':
        return push(m, (tti_pk_value){.kind = TTI_PK_MARK});
    case 'N':
        return push(m, (tti_pk_value){.kind = TTI_PK_NONE});
    case 0x88: // True
    case 0x89:
        return push(m, (tti_pk_value){.kind = TTI_PK_INT, .number = op == 0x88});
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
        return push(m, (tti_pk_value){.kind = TTI_PK_NONE});
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
