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

/* Offsets as a column of native longs, as put_batch gives them; 0 for any other value. */
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

PyDoc_STRVAR(ids_doc, "offset_msg_ids(store_host, offsets)\n\n"
                      "The ids of messages at offsets (a sequence of int), joined by commas.");
static PyObject *offset_msg_ids(PyObject *module, PyObject *arguments)
{
    enum { DIGITS = 16 };
    char *host;
    Py_ssize_t host_size;
    PyObject *store_host, *offsets, *fast = NULL;
    Py_buffer view;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "SO", &store_host, &offsets)
        || PyBytes_AsStringAndSize(store_host, &host, &host_size) < 0)
        return NULL;
    const int is_column = column_of(offsets, &view);
    if (!is_column && (fast = PySequence_Tuple(offsets)) == NULL)
        return NULL;
    Py_ssize_t count = is_column ? view.len / 8 : PyTuple_Size(fast);
    const Py_ssize_t width = 2 * host_size + DIGITS;
    PyObject *joined = NULL;
    char *const text = PyMem_Malloc((size_t)(count * (width + 1) + 1));
    char *at = text;
    if (text == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t number = 0; text != NULL && number < count; number++) {
        uint64_t offset;
        if (is_column)
            memcpy(&offset, (const char *)view.buf + number * 8, 8);
        else
            offset = PyLong_AsUnsignedLongLongMask(PyTuple_GetItem(fast, number));
        if (offset == (uint64_t)-1 && PyErr_Occurred())
            break;
        if (number) {
            *at++ = ',';
            memcpy(at, text, (size_t)(2 * host_size)); /* all have one host */
            at += 2 * host_size;
        } else {
            at = put_hex(at, host, host_size);
        }
        at = put_hex_word(at, (uint32_t)(offset >> 32));
        at = put_hex_word(at, (uint32_t)offset);
    }
    if (text != NULL && !PyErr_Occurred())
        joined = PyUnicode_FromStringAndSize(text, at - text);
    PyMem_Free(text);
    if (is_column)
        PyBuffer_Release(&view);
    Py_XDECREF(fast);
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
