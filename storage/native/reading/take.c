/* Copies records that queues name, one after the other, if they are whole and what their units say.
 * The reference is storage/tools/carve/plain_records.py. A record is checked where it was copied to,
 * as the log may change meanwhile.
 */
#include "native.h"

enum { NUMBER, OFFSET, POSITION, SIZE, ROW_COLUMNS };

typedef struct {
    const unsigned char *at; /* the length of a topic, and its name */
    Py_ssize_t length;
} Field;

typedef struct {
    const unsigned char *log;
    int64_t length, first, count, ranges;
    const int64_t *columns[ROW_COLUMNS], *queue_ids;
    Field *fields;
} Rows;

/* Whether the bytes at ``at`` are the record of a row, except for the checksum. */
static int is_named(const Rows *rows, int64_t row, const unsigned char *at)
{
    const int64_t size = rows->columns[SIZE][row], number = rows->columns[NUMBER][row];
    if (plain_size(at, size, 0) != size || int_at(at + 12) != rows->queue_ids[number]
        || long_at(at + 20) != rows->columns[OFFSET][row]
        || long_at(at + 28) != rows->first + rows->columns[POSITION][row])
        return 0;
    const Field *field = &rows->fields[number];
    const int64_t body = int_at(at + HEAD - 4);
    return field->length && field->length <= size - HEAD - body - 2
        && !memcmp(at + HEAD + body, field->at, (size_t)field->length);
}

static const unsigned char *place_of(const Rows *rows, int64_t row)
{
    const int64_t position = rows->columns[POSITION][row], size = rows->columns[SIZE][row];
    if (position < 0 || size < LEAST || position > rows->length - size)
        return NULL;
    return rows->log + position;
}

/* Marks the rows whose records look good; gives the bytes of these. */
static int64_t mark(const Rows *rows, char *good)
{
    int64_t total = 0;
    for (int64_t row = 0; row < rows->count; row++) {
        const unsigned char *at = place_of(rows, row);
        good[row] = at != NULL && is_named(rows, row, at);
        total += good[row] ? rows->columns[SIZE][row] : 0;
    }
    return total;
}

/* Copies the marked records; the marks of bad ones are taken away. Gives the bytes of the others. */
static int64_t copy(const Rows *rows, unsigned char *to, char *good)
{
    const unsigned char *begin = to;
    for (int64_t row = 0; row < rows->count; row++) {
        if (!good[row])
            continue;
        const int64_t size = rows->columns[SIZE][row];
        const unsigned char *at = place_of(rows, row);
        memcpy(to, at, HEAD);
        const int64_t body = int_at(to + HEAD - 4);
        good[row] = body > 0 && body <= size - LEAST;
        if (!good[row])
            continue;
        const uint32_t crc = crc32_and_copy(to + HEAD, at + HEAD, (size_t)body) & CRC_MASK;
        memcpy(to + HEAD + body, at + HEAD + body, (size_t)(size - HEAD - body));
        good[row] = (int32_t)crc == int_at(to + 8) && is_named(rows, row, to);
        to += good[row] ? size : 0;
    }
    return to - begin;
}

static PyObject *taken(const Rows *rows)
{
    PyObject *good = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)rows->count);
    if (good == NULL)
        return NULL;
    char *marks = PyByteArray_AsString(good);
    int64_t bytes;
    Py_BEGIN_ALLOW_THREADS;
    bytes = mark(rows, marks);
    Py_END_ALLOW_THREADS;
    PyObject *records = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)bytes);
    if (records == NULL) {
        Py_DECREF(good);
        return NULL;
    }
    unsigned char *to = (unsigned char *)PyByteArray_AsString(records);
    int64_t copied;
    Py_BEGIN_ALLOW_THREADS;
    copied = copy(rows, to, marks);
    Py_END_ALLOW_THREADS;
    if (copied < bytes && PyByteArray_Resize(records, (Py_ssize_t)copied) < 0)
        Py_CLEAR(records);
    if (records == NULL) {
        Py_DECREF(good);
        return NULL;
    }
    return Py_BuildValue("NN", records, good);
}

/* Takes the topics; -1 with an error. */
static int take_fields(Rows *rows, PyObject *fields)
{
    rows->fields = PyMem_Calloc((size_t)rows->ranges + 1, sizeof *rows->fields);
    if (rows->fields == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int64_t i = 0; i < rows->ranges; i++) {
        char *at;
        if (PyBytes_AsStringAndSize(PyList_GetItem(fields, (Py_ssize_t)i), &at,
                                    &rows->fields[i].length) < 0)
            return -1;
        rows->fields[i].at = (const unsigned char *)at;
    }
    for (int64_t row = 0; row < rows->count; row++)
        if (rows->columns[NUMBER][row] < 0 || rows->columns[NUMBER][row] >= rows->ranges) {
            PyErr_SetString(PyExc_ValueError, "a row is of no range");
            return -1;
        }
    return 0;
}

PyDoc_STRVAR(take_doc, "take_records(log, first, rows, queue_ids, fields)\n\n"
                       "See storage.tools.carve.plain_records.");
static PyObject *take_records(PyObject *module, PyObject *args)
{
    Py_buffer log, columns, queue_ids;
    PyObject *fields, *found = NULL;
    long long first;
    Rows rows = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "y*Ly*y*O!", &log, &first, &columns, &queue_ids, &PyList_Type,
                          &fields))
        return NULL;
    rows.log = log.buf;
    rows.length = log.len;
    rows.first = first;
    rows.count = columns.len / 8 / ROW_COLUMNS;
    rows.ranges = PyList_Size(fields);
    rows.queue_ids = queue_ids.buf;
    for (int i = 0; i < ROW_COLUMNS; i++)
        rows.columns[i] = (const int64_t *)columns.buf + i * rows.count;
    if (columns.len % (8 * ROW_COLUMNS) || queue_ids.len != rows.ranges * 8)
        PyErr_SetString(PyExc_ValueError, "the columns do not fit");
    else if (take_fields(&rows, fields) == 0)
        found = taken(&rows);
    PyMem_Free(rows.fields);
    PyBuffer_Release(&log);
    PyBuffer_Release(&columns);
    PyBuffer_Release(&queue_ids);
    return found;
}

PyMethodDef take_functions[] = {
    {"take_records", take_records, METH_VARARGS, take_doc},
    {NULL, NULL, 0, NULL},
};
