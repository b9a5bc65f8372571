/* Ids of many messages, the broker's and the producer's: the references are offset_msg_ids_pure and
 * _numbered of storage/format/message_id.py. */
#include "native.h"

static const char digits[] = "0123456789ABCDEF";

/* Eight digits of 32 bits: each half byte in a byte of its own, then its digit. */
static char *put_hex_word(char *to, uint32_t word)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t halves = word;
    halves = (halves << 16 | halves) & 0x0000FFFF0000FFFFu;
    halves = (halves << 8 | halves) & 0x00FF00FF00FF00FFu;
    halves = (halves << 4 | halves) & 0x0F0F0F0F0F0F0F0Fu;
    const uint64_t letters = (halves + 6 * ones) >> 4 & ones;
    halves = __builtin_bswap64(halves + '0' * ones + letters * ('A' - '9' - 1));
    memcpy(to, &halves, 8);
    return to + 8;
}

/* Each byte as two digits. */
static char *put_hex(char *to, const unsigned char *at, Py_ssize_t size)
{
    for (Py_ssize_t place = 0; place < size; place++) {
        *to++ = digits[at[place] >> 4];
        *to++ = digits[at[place] & 15];
    }
    return to;
}

PyObject *joined_offset_ids(const char *host, Py_ssize_t size, const int64_t *offsets,
                            Py_ssize_t count)
{
    enum { DIGITS = 16 };
    char *const text = PyMem_Malloc((size_t)(count * (size + DIGITS + 1) + 1)), *at = text;
    if (text == NULL)
        return PyErr_NoMemory();
    for (Py_ssize_t number = 0; number < count; number++) {
        const uint64_t offset = (uint64_t)offsets[number];
        if (number)
            *at++ = ',';
        memcpy(at, host, (size_t)size);
        at = put_hex_word(at + size, (uint32_t)(offset >> 32));
        at = put_hex_word(at, (uint32_t)offset);
    }
    PyObject *joined = PyUnicode_FromStringAndSize(text, at - text);
    PyMem_Free(text);
    return joined;
}

/* Whether offsets are a column of native longs, as put_batch gives them. */
static int column_of(PyObject *offsets, Py_buffer *view)
{
    if (!PyMemoryView_Check(offsets))
        return 0;
    if (PyObject_GetBuffer(offsets, view, PyBUF_ND | PyBUF_FORMAT) < 0) {
        PyErr_Clear();
        return 0;
    }
    if (view->ndim == 1 && view->itemsize == 8 && view->format && !strcmp(view->format, "q"))
        return 1;
    PyBuffer_Release(view);
    return 0;
}

/* Numbers in a sequence as native longs; NULL with an error set. */
static int64_t *longs_of(PyObject *numbers, Py_ssize_t *count)
{
    PyObject *fast = PySequence_Tuple(numbers);
    int64_t *longs = NULL;
    if (fast != NULL) {
        *count = PyTuple_Size(fast);
        longs = PyMem_Malloc((size_t)(*count + 1) * 8);
        if (longs == NULL)
            PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; longs != NULL && i < *count; i++)
        longs[i] = (int64_t)PyLong_AsUnsignedLongLongMask(PyTuple_GetItem(fast, i));
    Py_XDECREF(fast);
    if (PyErr_Occurred()) {
        PyMem_Free(longs);
        return NULL;
    }
    return longs;
}

PyDoc_STRVAR(ids_doc, "offset_msg_ids(store_host, offsets)\n\n"
                      "The ids of messages at offsets (a sequence of int), joined by commas.");
static PyObject *offset_msg_ids(PyObject *module, PyObject *arguments)
{
    enum { LONGEST_HOST = 20 };
    char *host, text[2 * LONGEST_HOST];
    Py_ssize_t host_size, count = 0;
    PyObject *store_host, *offsets, *joined;
    Py_buffer view;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "SO", &store_host, &offsets)
        || PyBytes_AsStringAndSize(store_host, &host, &host_size) < 0)
        return NULL;
    if (host_size > LONGEST_HOST) {
        PyErr_SetString(PyExc_ValueError, "this is no host");
        return NULL;
    }
    put_hex(text, (const unsigned char *)host, host_size);
    if (column_of(offsets, &view)) {
        joined = joined_offset_ids(text, 2 * host_size, view.buf, view.len / 8);
        PyBuffer_Release(&view);
        return joined;
    }
    int64_t *longs = longs_of(offsets, &count);
    joined = longs == NULL ? NULL : joined_offset_ids(text, 2 * host_size, longs, count);
    PyMem_Free(longs);
    return joined;
}

PyDoc_STRVAR(numbered_doc, "numbered(prefix, first, end)\n\n"
                           "The prefix followed by each counter of [first, end) as four digits.");
static PyObject *numbered(PyObject *module, PyObject *arguments)
{
    char *prefix;
    Py_ssize_t size;
    PyObject *bytes;
    unsigned int first, end;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "SII", &bytes, &first, &end)
        || PyBytes_AsStringAndSize(bytes, &prefix, &size) < 0)
        return NULL;
    if (first > end || end > 1 << 16) {
        PyErr_SetString(PyExc_ValueError, "counters have four digits");
        return NULL;
    }
    PyObject *joined = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(end - first) * (size + 4));
    if (joined == NULL)
        return NULL;
    char *at = PyBytes_AsString(joined);
    for (unsigned int number = first; number < end; number++) {
        memcpy(at, prefix, (size_t)size);
        at += size;
        for (int shift = 12; shift >= 0; shift -= 4)
            *at++ = digits[number >> shift & 15];
    }
    return joined;
}

PyDoc_STRVAR(unique_id_doc, "unique_id(fixed, time, counter)\n\n"
                            "A text followed by eight digits of the time and four of the counter.");
static PyObject *unique_id(PyObject *module, PyObject *arguments)
{
    enum { LONGEST = 64, TIME = 8, COUNTER = 4 };
    const char *fixed;
    Py_ssize_t size;
    PyObject *begin;
    unsigned int time, counter;
    char text[LONGEST + TIME + COUNTER];
    (void)module;
    if (!PyArg_ParseTuple(arguments, "UII", &begin, &time, &counter)
        || (fixed = PyUnicode_AsUTF8AndSize(begin, &size)) == NULL)
        return NULL;
    if (size > LONGEST) {
        PyErr_SetString(PyExc_ValueError, "this is no id's beginning");
        return NULL;
    }
    char *at = (char *)memcpy(text, fixed, (size_t)size) + size;
    at = put_hex_word(at, time);
    for (int shift = 4 * (COUNTER - 1); shift >= 0; shift -= 4)
        *at++ = digits[counter >> shift & 15];
    return PyUnicode_FromStringAndSize(text, at - text);
}

PyMethodDef id_functions[] = {
    {"unique_id", unique_id, METH_VARARGS, unique_id_doc},
    {"numbered", numbered, METH_VARARGS, numbered_doc},
    {"offset_msg_ids", offset_msg_ids, METH_VARARGS, ids_doc},
    {NULL, NULL, 0, NULL},
};
