/* Whether records lie one after the other, as far as they are plain: version 1, IPv4 hosts, a body.
 * The reference is the loop of scan_records in storage/format/check.py, which takes all unusual and
 * wrong records.
 */
#include "native.h"

int64_t plain_size(const unsigned char *at, int64_t left, int check_crc)
{
    if (left < LEAST || int_at(at + 4) != MAGIC_V1 || int_at(at + 36) & V6_BITS)
        return 0;
    int64_t size = int_at(at), body = int_at(at + 84), properties;
    if (size > left || body <= 0 || body > size - LEAST)
        return 0;
    properties = HEAD + body + 1 + at[HEAD + body] + 2;
    if (at[HEAD + body] > 127 || properties > size || at[properties - 2] > 127)
        return 0;
    if (properties + (int64_t)big(at + properties - 2, 2) != size)
        return 0;
    if (check_crc && (int32_t)(crc32_of(at + HEAD, (size_t)body) & CRC_MASK) != int_at(at + 8))
        return 0;
    return size;
}

PyDoc_STRVAR(scan_doc,
             "scan_plain(buffer, position, limit, most, check_crc)\n\n"
             "Sizes, 8 bytes each, of the plain records at ``position``, at most ``most``, and\n"
             "where they end.");
static PyObject *scan_plain(PyObject *module, PyObject *args)
{
    Py_buffer buffer;
    long long position, limit, most;
    int check_crc;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*LLLp", &buffer, &position, &limit, &most, &check_crc))
        return NULL;
    if (limit > buffer.len)
        limit = buffer.len;
    int64_t count = 0, possible = 0;
    if (position >= 0 && position < limit)
        possible = (limit - position) / LEAST;
    most = most < 0 ? 0 : most > possible ? possible : most;
    int64_t *sizes = PyMem_Malloc((size_t)most * sizeof *sizes + 1);
    if (sizes == NULL) {
        PyBuffer_Release(&buffer);
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS;
    const unsigned char *at = (const unsigned char *)buffer.buf + position;
    for (; count < most; count++) {
        int64_t size = plain_size(at, limit - position, check_crc);
        if (!size)
            break;
        sizes[count] = size;
        at += size;
        position += size;
    }
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&buffer);
    PyObject *found = Py_BuildValue(
        "NL", PyBytes_FromStringAndSize((const char *)sizes, (Py_ssize_t)(count * 8)), position);
    PyMem_Free(sizes);
    return found;
}

PyMethodDef scan_functions[] = {
    {"scan_plain", scan_plain, METH_VARARGS, scan_doc},
    {NULL, NULL, 0, NULL},
};
