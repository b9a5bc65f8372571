/* Set the offsets of records that were encoded before these were known. The references are place
 * and units of storage/format/prepared.py. */
#include "rows.h"

/* A table and how many rows it has; -1 with an error set if it is none. */
static int rows_of(PyObject *table, const Row **rows, Py_ssize_t *count)
{
    char *at;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(table, &at, &length) < 0)
        return -1;
    if (length % (Py_ssize_t)sizeof(Row)) {
        PyErr_SetString(PyExc_ValueError, "no table");
        return -1;
    }
    *rows = (const Row *)at;
    *count = length / (Py_ssize_t)sizeof(Row);
    return 0;
}

static PyObject *list_of(const int64_t *numbers, Py_ssize_t count)
{
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);
        if (number == NULL || PyList_SetItem(list, i, number) < 0)
            Py_CLEAR(list);
    }
    return list;
}

PyDoc_STRVAR(place_doc,
             "place(buffer, table, offset, queue_offsets, store_timestamp)\n\n"
             "Write offsets and times into the buffer; gives the records' offsets, in the log"
             " and in their queues.");
static PyObject *place(PyObject *module, PyObject *args)
{
    PyObject *buffer, *table, *next_offsets, *found = NULL;
    long long offset, store_timestamp;
    const Row *rows;
    Py_ssize_t count;
    (void)module;
    if (!PyArg_ParseTuple(args, "YOLO!L", &buffer, &table, &offset, &PyList_Type, &next_offsets,
                          &store_timestamp)
        || rows_of(table, &rows, &count) < 0)
        return NULL;
    Py_ssize_t queues = PyList_Size(next_offsets), length = PyByteArray_Size(buffer);
    unsigned char *at = (unsigned char *)PyByteArray_AsString(buffer);
    int64_t *numbers = PyMem_Malloc(sizeof(int64_t) * (size_t)(2 * count + queues + 1));
    if (numbers == NULL)
        return PyErr_NoMemory();
    int64_t *in_log = numbers, *in_queue = numbers + count, *following = in_queue + count;
    int good = 1;
    for (Py_ssize_t i = 0; good && i < queues; i++)
        good = number_of(PyList_GetItem(next_offsets, i), following + i) == 0;
    for (Py_ssize_t i = 0; good && i < count; i++) {
        const Row *row = rows + i;
        good = row->start >= 0 && row->size >= LEAST && row->size <= length - row->start
               && row->queue >= 0 && row->queue < queues;
        if (!good)
            break;
        in_log[i] = offset + row->start;
        in_queue[i] = row->has_unit ? following[row->queue]++ : 0;
        place_record(at + row->start, in_queue[i], in_log[i], store_timestamp);
    }
    if (!good) {
        PyErr_SetString(PyExc_ValueError, "the table is of another buffer, or of other queues");
    } else {
        PyObject *log_list = list_of(in_log, count), *queue_list = list_of(in_queue, count);
        if (log_list != NULL && queue_list != NULL)
            found = PyTuple_Pack(2, log_list, queue_list);
        Py_XDECREF(log_list);
        Py_XDECREF(queue_list);
    }
    PyMem_Free(numbers);
    return found;
}

PyDoc_STRVAR(units_doc, "units(table, queues, offset, store_timestamp)\n\n"
                        "Per queue with units: its number, how many, and the units.");
static PyObject *units(PyObject *module, PyObject *args)
{
    PyObject *table;
    Py_ssize_t queues, count;
    long long offset, store_timestamp;
    const Row *rows;
    (void)module;
    if (!PyArg_ParseTuple(args, "OnLL", &table, &queues, &offset, &store_timestamp)
        || rows_of(table, &rows, &count) < 0)
        return NULL;
    int64_t *counts = PyMem_Calloc((size_t)queues + 1, sizeof(int64_t));
    unsigned char **to = PyMem_Calloc((size_t)queues + 1, sizeof(char *));
    PyObject *found = PyList_New(0);
    if (counts == NULL || to == NULL)
        Py_CLEAR(found);
    for (Py_ssize_t i = 0; found != NULL && i < count; i++) {
        if (rows[i].queue < 0 || rows[i].queue >= queues) {
            PyErr_SetString(PyExc_ValueError, "the table is of other queues");
            Py_CLEAR(found);
        } else {
            counts[rows[i].queue] += rows[i].has_unit != 0;
        }
    }
    for (Py_ssize_t number = 0; found != NULL && number < queues; number++) {
        if (!counts[number])
            continue;
        PyObject *block = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)counts[number] * UNIT);
        PyObject *item =
            block ? Py_BuildValue("(nLO)", number, (long long)counts[number], block) : NULL;
        if (item == NULL || PyList_Append(found, item) < 0)
            Py_CLEAR(found);
        else
            to[number] = (unsigned char *)PyBytes_AsString(block);
        Py_XDECREF(item);
        Py_XDECREF(block); /* the list owns it */
    }
    for (Py_ssize_t i = 0; found != NULL && i < count; i++) {
        const Row *row = rows + i;
        if (row->has_unit)
            to[row->queue] = put_unit(to[row->queue], row, offset, store_timestamp);
    }
    PyMem_Free(counts);
    PyMem_Free(to);
    return found;
}

PyDoc_STRVAR(key_places_doc, "key_places(table, offset)\n\n"
                             "Each record's log offset, once for each of its keys: native longs.");
static PyObject *key_places(PyObject *module, PyObject *args)
{
    PyObject *table;
    long long offset;
    const Row *rows;
    Py_ssize_t count, keys = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "OL", &table, &offset) || rows_of(table, &rows, &count) < 0)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        keys += (Py_ssize_t)rows[i].keys;
    PyObject *found = PyBytes_FromStringAndSize(NULL, keys * 8);
    if (found == NULL)
        return NULL;
    int64_t *to = (int64_t *)PyBytes_AsString(found);
    for (Py_ssize_t i = 0; i < count; i++)
        for (int64_t key = 0; key < rows[i].keys; key++)
            *to++ = offset + rows[i].start;
    return found;
}

PyMethodDef table_functions[] = {
    {"place", place, METH_VARARGS, place_doc},
    {"units", units, METH_VARARGS, units_doc},
    {"key_places", key_places, METH_VARARGS, key_places_doc},
    {NULL, NULL, 0, NULL},
};
