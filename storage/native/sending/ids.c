/* Ids of many messages, the broker's and the producer's: the pure forms are offset_msg_ids_pure and
 * _numbered of storage/format/message_id.py. */
#include "native.h"

static const char digits[] = "0123456789ABCDEF";

PyDoc_STRVAR(ids_doc, "offset_msg_ids(store_host, offsets)\n\n"
                      "The ids of messages at offsets (a list or tuple of int), joined by commas.");
static PyObject *offset_msg_ids(PyObject *module, PyObject *arguments)
{
    const unsigned char *host;
    Py_ssize_t host_size;
    PyObject *offsets;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y#O", &host, &host_size, &offsets))
        return NULL;
    PyObject *fast = PySequence_Tuple(offsets);
    if (fast == NULL)
        return NULL;
    Py_ssize_t count = PyTuple_Size(fast), width = 2 * host_size + 16;
    PyObject *joined = NULL;
    char *const text = PyMem_Malloc((size_t)(count * (width + 1) + 1));
    char *at = text;
    if (text == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t number = 0; text != NULL && number < count; number++) {
        unsigned long long offset = PyLong_AsUnsignedLongLongMask(PyTuple_GetItem(fast, number));
        if (offset == (unsigned long long)-1 && PyErr_Occurred())
            break;
        if (number)
            *at++ = ',';
        for (Py_ssize_t place = 0; place < host_size; place++) {
            *at++ = digits[host[place] >> 4];
            *at++ = digits[host[place] & 15];
        }
        for (int shift = 60; shift >= 0; shift -= 4)
            *at++ = digits[offset >> shift & 15];
    }
    if (text != NULL && !PyErr_Occurred())
        joined = PyUnicode_FromStringAndSize(text, at - text);
    PyMem_Free(text);
    Py_DECREF(fast);
    return joined;
}

PyDoc_STRVAR(numbered_doc, "numbered(prefix, first, end)\n\n"
                           "The prefix with each counter of [first, end) behind it as four digits.");
static PyObject *numbered(PyObject *module, PyObject *arguments)
{
    const char *prefix;
    Py_ssize_t size;
    unsigned int first, end;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y#II", &prefix, &size, &first, &end))
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

PyMethodDef id_functions[] = {
    {"numbered", numbered, METH_VARARGS, numbered_doc},
    {"offset_msg_ids", offset_msg_ids, METH_VARARGS, ids_doc},
    {NULL, NULL, 0, NULL},
};
