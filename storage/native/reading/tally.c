/* Sums of columns by key, a segment at a time. The reference is _by_key of
 * analytics/kernels/partials.py, which also takes segments of many keys.
 */
#include "native.h"
#include <stdlib.h>

enum { SLOT_BITS = 12, SLOTS = 1 << SLOT_BITS, MOST_KEYS = SLOTS / 4, COLUMNS = 4 };

typedef struct {
    int64_t key, count, sum; /* free where the count is 0 */
} Slot;

typedef struct {
    Slot slots[SLOTS];
    Slot *used[MOST_KEYS];
    int keys;
} Tally;

/* The slot of a key, NULL if there are too many keys. */
static Slot *slot_of(Tally *tally, int64_t key)
{
    uint64_t at = (uint64_t)key * 0x9E3779B97F4A7C15u >> (64 - SLOT_BITS);
    for (; tally->slots[at].count; at = (at + 1) % SLOTS)
        if (tally->slots[at].key == key)
            return &tally->slots[at];
    if (tally->keys == MOST_KEYS)
        return NULL;
    tally->slots[at].key = key;
    return tally->used[tally->keys++] = &tally->slots[at];
}

static int add_rows(Tally *tally, const int64_t *keys, const int64_t *sizes, int64_t count)
{
    Slot *slot = NULL;
    for (int64_t i = 0; i < count; i++) {
        if (slot == NULL || slot->key != keys[i]) {
            slot = slot_of(tally, keys[i]);
            if (slot == NULL)
                return -1;
        }
        slot->count++;
        slot->sum = (int64_t)((uint64_t)slot->sum + (uint64_t)sizes[i]);
    }
    return 0;
}

static int by_key(const void *one, const void *other)
{
    const int64_t a = (*(Slot *const *)one)->key, b = (*(Slot *const *)other)->key;
    return (a > b) - (a < b);
}

/* Moves the sums of a segment to the rows; -1 without memory. */
static int move(Tally *tally, int64_t segment, int64_t **rows, int64_t *used)
{
    int64_t *more = realloc(*rows, (size_t)(*used + tally->keys + 1) * COLUMNS * sizeof **rows);
    if (more == NULL)
        return -1;
    *rows = more;
    qsort(tally->used, (size_t)tally->keys, sizeof *tally->used, by_key);
    for (int i = 0; i < tally->keys; i++) {
        Slot *slot = tally->used[i];
        const int64_t row[COLUMNS] = {segment, slot->key, slot->count, slot->sum};
        memcpy(*rows + (*used)++ * COLUMNS, row, sizeof row);
        *slot = (Slot){0, 0, 0};
    }
    tally->keys = 0;
    return 0;
}

static int are_columns(const Py_buffer *keys, const Py_buffer *sizes, const Py_buffer *starts)
{
    const int64_t *start = starts->buf;
    const int64_t rows = keys->len / 8, segments = starts->len / 8;
    int good = keys->len == sizes->len && keys->len % 8 == 0 && starts->len % 8 == 0;
    for (int64_t i = 0; good && i < segments; i++)
        good = start[i] >= (i ? start[i - 1] : 0) && start[i] <= rows;
    return good;
}

PyDoc_STRVAR(tally_doc,
             "tally(keys, sizes, starts)\n\n"
             "Rows of segment, key, number of its rows and sum of their sizes, 8 bytes each, in the\n"
             "order of segment and key; None if a segment has more than 1,024 keys.");
static PyObject *tally(PyObject *module, PyObject *args)
{
    Py_buffer keys, sizes, starts;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*y*", &keys, &sizes, &starts))
        return NULL;
    int64_t *rows = NULL, used = 0;
    PyObject *found = NULL;
    int failed = 0, many = 0;
    Tally *sums = calloc(1, sizeof *sums);
    if (!are_columns(&keys, &sizes, &starts))
        PyErr_SetString(PyExc_ValueError, "columns of int64 and ascending starts are needed");
    else if (sums == NULL)
        PyErr_NoMemory();
    else {
        const int64_t *start = starts.buf;
        const int64_t segments = starts.len / 8, count = keys.len / 8;
        Py_BEGIN_ALLOW_THREADS;
        for (int64_t i = 0; i < segments && !failed && !many; i++) {
            const int64_t first = start[i], end = i + 1 < segments ? start[i + 1] : count;
            const int64_t *key = (const int64_t *)keys.buf + first;
            many = add_rows(sums, key, (const int64_t *)sizes.buf + first, end - first) < 0;
            failed = !many && move(sums, i, &rows, &used) < 0;
        }
        Py_END_ALLOW_THREADS;
        if (failed)
            PyErr_NoMemory();
        else if (many)
            found = Py_NewRef(Py_None);
        else
            found = PyBytes_FromStringAndSize((const char *)rows, (Py_ssize_t)(used * COLUMNS * 8));
    }
    free(sums);
    free(rows);
    PyBuffer_Release(&keys);
    PyBuffer_Release(&sizes);
    PyBuffer_Release(&starts);
    return found;
}

PyMethodDef tally_functions[] = {
    {"tally", tally, METH_VARARGS, tally_doc},
    {NULL, NULL, 0, NULL},
};
