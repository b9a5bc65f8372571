/* How a group stands in its queues, a column at a time: what was observed of it, how fast it reads,
 * and what is unread. The references are in storage/configs/offset_samples.py, and Trend.rate_out,
 * GroupInQueue and add_up of analytics/lag, which are called for each queue that is unusual: without
 * progress, past the end, or to be judged by what was observed earlier.
 */
#include "native.h"

enum { UNREAD_COLUMNS = 4 };
#define LARGEST ((int64_t)1 << 53) /* a double has all numbers up to this one */

/* A usual offset or time. */
static int is_number(PyObject *object, int64_t *value)
{
    int overflow;
    if (object == NULL || !PyLong_CheckExact(object))
        return 0;
    *value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return !overflow && *value >= 0 && *value <= LARGEST;
}

/* A pair of a list: the time, and the offset, or None. */
static int is_change(PyObject *changes, Py_ssize_t number, int64_t *at, PyObject **offset)
{
    PyObject *pair = PyList_GetItem(changes, number);
    if (pair == NULL || !PyTuple_Check(pair) || PyTuple_Size(pair) != 2)
        return 0;
    *offset = PyTuple_GetItem(pair, 1);
    return is_number(PyTuple_GetItem(pair, 0), at);
}

static int is_empty(PyObject *changes)
{
    return PyList_CheckExact(changes) ? !PyList_Size(changes)
                                      : PyTuple_CheckExact(changes) && !PyTuple_Size(changes);
}

static int are_lists(PyObject *const *args, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        if (!PyList_CheckExact(args[i]) || PyList_Size(args[i]) != PyList_Size(args[0])) {
            PyErr_SetString(PyExc_TypeError, "equally long lists are required");
            return 0;
        }
    return 1;
}

/* Whether a row's last offset is the one that is observed now; -1 with an error. */
static int is_last(PyObject *row, PyObject *offset)
{
    const Py_ssize_t size = PyList_Size(row);
    PyObject *last = size > 0 ? PyList_GetItem(row, size - 1) : NULL;
    if (size < 0 || (last != NULL && !PyTuple_Check(last)))
        return -1;
    if (last == NULL)
        return 0;
    last = PyTuple_GetItem(last, 1);
    return last == NULL ? -1 : PyObject_RichCompareBool(last, offset, Py_EQ);
}

PyDoc_STRVAR(note_changes_doc,
             "note_changes(rows, offsets, at)\n\nSee storage.configs.offset_samples.");
static PyObject *note_changes(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!are_arguments(count, 3) || !are_lists(args, 2))
        return NULL;
    const Py_ssize_t rows = PyList_Size(args[0]);
    for (Py_ssize_t i = 0; i < rows; i++) {
        PyObject *row = PyList_GetItem(args[0], i), *offset = PyList_GetItem(args[1], i);
        const int same = is_last(row, offset);
        if (same == 1)
            continue;
        PyObject *change = same < 0 ? NULL : PyTuple_Pack(2, args[2], offset);
        const int failed = change == NULL || PyList_Append(row, change) < 0;
        Py_XDECREF(change);
        if (failed) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "pairs are required");
            return NULL;
        }
    }
    Py_RETURN_NONE;
}

/* The messages that were read since a time, by the changes and the offset after them; -1 for an
 * unusual queue. */
static int64_t read_of(PyObject *changes, int64_t later, int64_t known_from)
{
    int64_t at, before, read = 0;
    PyObject *known;
    for (Py_ssize_t number = PyList_Size(changes) - 1; number >= 0; number--) {
        if (!is_change(changes, number, &at, &known))
            return -1;
        if (known != Py_None) {
            if (!is_number(known, &before))
                return -1;
            read += later > before ? later - before : 0;
            later = before;
            if (read > LARGEST)
                return -1;
        }
        if (at <= known_from)
            break;
    }
    return read;
}

typedef struct {
    int64_t start, known_from;
    double span; /* 0: no part is long enough for a rate */
} Trend;

/* A rate, or None; NULL without an error for an unusual queue. */
static PyObject *rate_of(const Trend *trend, PyObject *changes, PyObject *offset)
{
    int64_t at, before, later;
    PyObject *known;
    if (offset == Py_None || is_empty(changes))
        Py_RETURN_NONE;
    if (!is_number(offset, &later) || !PyList_CheckExact(changes))
        return NULL;
    if (!is_change(changes, PyList_Size(changes) - 1, &at, &known))
        return NULL;
    if (known != Py_None && !is_number(known, &before))
        return NULL;
    if (known != Py_None && before == later && at <= trend->start)
        return PyFloat_FromDouble(0.0);
    if (trend->span == 0)
        Py_RETURN_NONE;
    const int64_t read = read_of(changes, later, trend->known_from);
    return read < 0 ? NULL : PyFloat_FromDouble((double)read / trend->span);
}

PyDoc_STRVAR(rates_out_doc,
             "rates_out(changes, offsets, start, known_from, span_s, one)\n\n"
             "See analytics.lag.trend.");
static PyObject *rates_out(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Trend trend = {0, 0, 0};
    (void)module;
    if (!are_arguments(count, 6) || !are_lists(args, 2))
        return NULL;
    trend.start = PyLong_AsLongLong(args[2]);
    if (trend.start == -1 && PyErr_Occurred())
        return NULL;
    if (args[4] != Py_None) {
        trend.known_from = PyLong_AsLongLong(args[3]);
        trend.span = PyFloat_AsDouble(args[4]);
        if (PyErr_Occurred())
            return NULL;
    }
    Py_ssize_t rows = PyList_Size(args[0]);
    PyObject *found = PyList_New(rows);
    for (Py_ssize_t row = 0; found != NULL && row < rows; row++) {
        PyObject *changes = PyList_GetItem(args[0], row), *offset = PyList_GetItem(args[1], row);
        PyObject *rate = rate_of(&trend, changes, offset);
        if (rate == NULL && !PyErr_Occurred())
            rate = PyObject_CallFunctionObjArgs(args[5], changes, offset, NULL);
        if (rate == NULL || PyList_SetItem(found, row, rate) < 0)
            Py_CLEAR(found);
    }
    return found;
}

typedef struct {
    int64_t as_of, patience;
    PyObject *ok, *stuck, *none, *zero;
} Judgement;

/* The cells of a row, borrowed; 0 for an unusual queue. */
static int judged(const Judgement *by, PyObject *queue, PyObject *committed, PyObject *changes,
                  PyObject **cells)
{
    int64_t low, high, done, stored, at, observed, since = by->as_of;
    PyObject *known;
    if (!PyTuple_Check(queue) || PyTuple_Size(queue) != 5 || !is_number(committed, &done)
        || !is_number(PyTuple_GetItem(queue, 0), &low)
        || !is_number(PyTuple_GetItem(queue, 1), &high))
        return 0;
    cells[0] = by->zero, cells[1] = cells[3] = by->none, cells[2] = by->ok;
    if (done == high)
        return 1;
    PyObject *heads = PyTuple_GetItem(queue, 4);
    if (done > high || low >= high || !PyDict_Check(heads))
        return 0;
    PyObject *first = done > low ? committed : PyTuple_GetItem(queue, 0);
    PyObject *head = PyDict_GetItemWithError(heads, first);
    if (head == NULL || !PyTuple_Check(head) || PyTuple_Size(head) != 3
        || !is_number(PyTuple_GetItem(head, 1), &stored))
        return 0;
    cells[0] = PyTuple_GetItem(head, 0);
    cells[1] = PyTuple_GetItem(head, 1);
    cells[3] = PyTuple_GetItem(head, 2);
    if (by->as_of - stored < by->patience)
        return 1;
    if (!is_empty(changes)) {
        if (!PyList_CheckExact(changes)
            || !is_change(changes, PyList_Size(changes) - 1, &at, &known))
            return 0;
        if (is_number(known, &observed) && observed == done)
            since = at;
    }
    cells[2] = by->stuck;
    return by->as_of - (since > stored ? since : stored) >= by->patience;
}

PyDoc_STRVAR(unread_of_doc,
             "unread_of(queues, committed, changes, as_of, patience, ok, stuck, one)\n\n"
             "See analytics.lag.lag_snapshot.");
static PyObject *unread_of(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!are_arguments(count, 8) || !are_lists(args, 3))
        return NULL;
    Judgement by = {PyLong_AsLongLong(args[3]), PyLong_AsLongLong(args[4]), args[5], args[6],
                    Py_None, NULL};
    if (PyErr_Occurred() || (by.zero = PyLong_FromLong(0)) == NULL)
        return NULL;
    Py_ssize_t rows = PyList_Size(args[0]);
    PyObject *found = PyTuple_New(UNREAD_COLUMNS);
    for (int column = 0; found != NULL && column < UNREAD_COLUMNS; column++) {
        PyObject *cells = PyList_New(rows);
        if (cells == NULL || PyTuple_SetItem(found, column, cells) < 0)
            Py_CLEAR(found);
    }
    for (Py_ssize_t row = 0; found != NULL && row < rows; row++) {
        PyObject *queue = PyList_GetItem(args[0], row), *committed = PyList_GetItem(args[1], row);
        PyObject *changes = PyList_GetItem(args[2], row), *made = NULL;
        PyObject *cells[UNREAD_COLUMNS];
        if (!judged(&by, queue, committed, changes, cells)) {
            if (!PyErr_Occurred())
                made = PyObject_CallFunctionObjArgs(args[7], queue, committed, changes, NULL);
            if (made == NULL || !PyTuple_Check(made) || PyTuple_Size(made) != UNREAD_COLUMNS) {
                if (made != NULL)
                    PyErr_SetString(PyExc_TypeError, "a tuple of four is required");
                Py_XDECREF(made);
                Py_CLEAR(found);
                break;
            }
            for (int column = 0; column < UNREAD_COLUMNS; column++)
                cells[column] = PyTuple_GetItem(made, column);
        }
        for (int column = 0; found != NULL && column < UNREAD_COLUMNS; column++) {
            Py_INCREF(cells[column]);
            if (PyList_SetItem(PyTuple_GetItem(found, column), row, cells[column]) < 0)
                Py_CLEAR(found);
        }
        Py_XDECREF(made);
    }
    Py_DECREF(by.zero);
    return found;
}

/* The least of some values; the object is that of a queue, borrowed, so that it is there once. */
typedef struct {
    int64_t value;
    PyObject *object; /* None without any */
} Least;

typedef struct {
    int64_t lag, most, lost, bytes;
    Least stored, risk;
    Py_ssize_t unknown_bytes;
    PyObject *worst, *status; /* borrowed; worst is the id of the queue with most */
    int none_in, none_out, states_differ;
} Sums;

/* Take in a value, or None: 1, or 0 for an unusual one. */
static int take_least(PyObject *cell, Least *least)
{
    int64_t value;
    if (cell == Py_None)
        return 1;
    if (!is_number(cell, &value))
        return 0;
    if (least->object == Py_None || value < least->value)
        *least = (Least){value, cell};
    return 1;
}

/* Take in a queue: 1, or 0 for an unusual one. */
static int take_sums(Sums *sums, PyObject *queue)
{
    int64_t low, done, high, bytes = 0;
    if (!PyTuple_Check(queue) || PyTuple_Size(queue) != 8)
        return 0;
    PyObject *position = PyTuple_GetItem(queue, 1), *size = PyTuple_GetItem(queue, 2);
    if (!PyTuple_Check(position) || PyTuple_Size(position) != 3
        || !is_number(PyTuple_GetItem(position, 0), &low)
        || !is_number(PyTuple_GetItem(position, 1), &done)
        || !is_number(PyTuple_GetItem(position, 2), &high) || done > high
        || (size != Py_None && !is_number(size, &bytes))
        || !take_least(PyTuple_GetItem(queue, 3), &sums->stored)
        || !take_least(PyTuple_GetItem(queue, 7), &sums->risk))
        return 0;
    sums->lag += high - done;
    sums->bytes += bytes;
    sums->unknown_bytes += size == Py_None;
    sums->lost += low > done ? low - done : 0;
    if (high - done > sums->most) {
        sums->most = high - done;
        sums->worst = PyTuple_GetItem(queue, 0);
    }
    sums->none_in |= PyTuple_GetItem(queue, 4) == Py_None;
    sums->none_out |= PyTuple_GetItem(queue, 5) == Py_None;
    PyObject *status = PyTuple_GetItem(queue, 6);
    sums->states_differ |= sums->status != NULL && sums->status != status;
    sums->status = status;
    return sums->lag <= LARGEST && sums->bytes <= LARGEST && sums->lost <= LARGEST;
}

PyDoc_STRVAR(sums_known_doc, "sums_known(queues)\n\nSee analytics.lag.totals.");
static PyObject *sums_known(PyObject *module, PyObject *queues)
{
    Sums sums = {.stored = {0, Py_None}, .risk = {0, Py_None}, .worst = Py_None};
    (void)module;
    const Py_ssize_t count = PyList_CheckExact(queues) ? PyList_Size(queues) : 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!take_sums(&sums, PyList_GetItem(queues, i)))
            Py_RETURN_NONE;
    if (!count)
        Py_RETURN_NONE;
    PyObject *bytes = Py_None;
    if (sums.unknown_bytes < count)
        bytes = PyLong_FromLongLong(sums.bytes);
    else
        Py_INCREF(bytes);
    if (bytes == NULL)
        return NULL;
    return Py_BuildValue("(LNOLLOnOOOO)", (long long)sums.lag, bytes, sums.stored.object,
                         (long long)sums.most, (long long)sums.lost, sums.risk.object,
                         sums.unknown_bytes, sums.worst,
                         sums.states_differ ? Py_None : sums.status,
                         sums.none_in ? Py_True : Py_False, sums.none_out ? Py_True : Py_False);
}

PyMethodDef lag_column_functions[] = {
    {"note_changes", (PyCFunction)(void (*)(void))note_changes, METH_FASTCALL, note_changes_doc},
    {"rates_out", (PyCFunction)(void (*)(void))rates_out, METH_FASTCALL, rates_out_doc},
    {"sums_known", sums_known, METH_O, sums_known_doc},
    {"unread_of", (PyCFunction)(void (*)(void))unread_of, METH_FASTCALL, unread_of_doc},
    {NULL, NULL, 0, NULL},
};
