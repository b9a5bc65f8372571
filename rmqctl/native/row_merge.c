/* Rows of several queues in the order of the log. The reference is merged_rows of
 * rmqctl/output/row_block.py; a test compares both.
 */
#include "functions.h"

enum { MOST_PARTS = 255 };

/* The rows of one queue: they ascend by their places in the log. */
typedef struct {
    Py_buffer places, text, ends, kept;
    Py_ssize_t first, count, at;
    int64_t place; /* of the row that is next */
    unsigned char number;
} Part;

static int64_t long_of(const Py_buffer *numbers, Py_ssize_t at)
{
    int64_t value;
    memcpy(&value, (const char *)numbers->buf + 8 * at, 8);
    return value;
}

static int open_part(Part *part, PyObject *given)
{
    PyObject *kept;
    if (!PyArg_ParseTuple(given, "y*y*y*nO", &part->places, &part->text, &part->ends, &part->first,
                          &kept))
        return -1;
    if (kept != Py_None && PyObject_GetBuffer(kept, &part->kept, PyBUF_SIMPLE) < 0)
        return -1;
    part->count = part->places.len / 8;
    const Py_ssize_t last = part->first + part->count;
    int is_wrong = part->first < 0 || last + 1 > part->ends.len / 8
                   || (part->kept.buf != NULL && last > part->kept.len);
    for (Py_ssize_t at = part->first; !is_wrong && at <= last; at++) {
        const int64_t end = long_of(&part->ends, at);
        is_wrong = end < 0 || end > part->text.len
                   || (at > part->first && end < long_of(&part->ends, at - 1));
    }
    if (is_wrong)
        PyErr_SetString(PyExc_ValueError, "rows have wrong ends");
    else if (part->count)
        part->place = long_of(&part->places, 0);
    return is_wrong ? -1 : 0;
}

static int is_earlier(const Part *part, const Part *other)
{
    return part->place < other->place
           || (part->place == other->place && part->number < other->number);
}

/* Puts the first part of a heap where it belongs. */
static void sink_down(Part **heap, Py_ssize_t count)
{
    Py_ssize_t at = 0;
    for (;;) {
        Py_ssize_t least = at, child = 2 * at + 1;
        if (child < count && is_earlier(heap[child], heap[least]))
            least = child;
        if (child + 1 < count && is_earlier(heap[child + 1], heap[least]))
            least = child + 1;
        if (least == at)
            return;
        Part *moved = heap[at];
        heap[at] = heap[least];
        heap[least] = moved;
        at = least;
    }
}

static void put_long(unsigned char *to, Py_ssize_t at, int64_t value)
{
    memcpy(to + 8 * at, &value, 8);
}

typedef struct {
    unsigned char *text, *ends, *order, *kept;
    Py_ssize_t rows, used;
} Merged;

static void take_row(Merged *merged, Part *part)
{
    const int64_t begin = long_of(&part->ends, part->first + part->at);
    const Py_ssize_t length = (Py_ssize_t)(long_of(&part->ends, part->first + part->at + 1) - begin);
    memcpy(merged->text + merged->used, (const char *)part->text.buf + begin, (size_t)length);
    if (merged->kept != NULL)
        merged->kept[merged->rows] =
            part->kept.buf == NULL ? 1 : ((const unsigned char *)part->kept.buf)[part->first + part->at];
    merged->used += length;
    merged->order[merged->rows++] = part->number;
    put_long(merged->ends, merged->rows, merged->used);
    if (++part->at < part->count)
        part->place = long_of(&part->places, part->at);
}

static void merge_parts(Merged *merged, Part *parts, Py_ssize_t count)
{
    Part *heap[MOST_PARTS];
    Py_ssize_t waiting = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (parts[i].count) {
            Py_ssize_t at = waiting++; /* up to where its parent is not later */
            for (; at && is_earlier(&parts[i], heap[(at - 1) / 2]); at = (at - 1) / 2)
                heap[at] = heap[(at - 1) / 2];
            heap[at] = &parts[i];
        }
    put_long(merged->ends, 0, 0);
    while (waiting) {
        take_row(merged, heap[0]);
        if (heap[0]->at == heap[0]->count)
            heap[0] = heap[--waiting];
        sink_down(heap, waiting);
    }
}

static unsigned char *bytes_for(PyObject **object, Py_ssize_t size)
{
    *object = PyByteArray_FromStringAndSize(NULL, size);
    return *object == NULL ? NULL : (unsigned char *)PyByteArray_AsString(*object);
}

static PyObject *merged_of(Part *parts, Py_ssize_t count)
{
    Py_ssize_t rows = 0, size = 0;
    int has_kept = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        rows += parts[i].count;
        size += (Py_ssize_t)(long_of(&parts[i].ends, parts[i].first + parts[i].count)
                             - long_of(&parts[i].ends, parts[i].first));
        has_kept |= parts[i].kept.buf != NULL;
    }
    PyObject *text = NULL, *ends = NULL, *order = NULL, *kept = NULL, *made = NULL;
    Merged merged = {bytes_for(&text, size), bytes_for(&ends, 8 * (rows + 1)),
                     bytes_for(&order, rows), has_kept ? bytes_for(&kept, rows) : NULL, 0, 0};
    if (text != NULL && ends != NULL && order != NULL && (kept != NULL || !has_kept)) {
        merge_parts(&merged, parts, count);
        made = PyTuple_Pack(4, text, ends, order, has_kept ? kept : Py_None);
    }
    Py_XDECREF(text);
    Py_XDECREF(ends);
    Py_XDECREF(order);
    Py_XDECREF(kept);
    return made;
}

PyDoc_STRVAR(merged_rows_doc, "merged_rows(parts)\n\nSee rmqctl.output.row_block.");
static PyObject *merged_rows(PyObject *module, PyObject *given)
{
    (void)module;
    if (!PyTuple_Check(given) || PyTuple_Size(given) > MOST_PARTS) {
        PyErr_Format(PyExc_ValueError, "rows of at most %d queues are put in order", MOST_PARTS);
        return NULL;
    }
    const Py_ssize_t count = PyTuple_Size(given);
    Part *parts = PyMem_Calloc((size_t)count + 1, sizeof *parts);
    PyObject *made = NULL;
    if (parts == NULL)
        return PyErr_NoMemory();
    int failed = 0;
    for (Py_ssize_t i = 0; !failed && i < count; i++) {
        parts[i].number = (unsigned char)i;
        failed = open_part(&parts[i], PyTuple_GetItem(given, i)) < 0;
    }
    if (!failed)
        made = merged_of(parts, count);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyBuffer_Release(&parts[i].places);
        PyBuffer_Release(&parts[i].text);
        PyBuffer_Release(&parts[i].ends);
        PyBuffer_Release(&parts[i].kept);
    }
    PyMem_Free(parts);
    return made;
}

PyMethodDef merge_functions[] = {
    {"merged_rows", merged_rows, METH_O, merged_rows_doc},
    {NULL, NULL, 0, NULL},
};
