/* Tables of numbers in JSON as rmqctl writes them: {"name":{"0":5,"1":[0,7]}}; and the offsets of
 * their rows. The callers' general way is the reference: storage/configs/number_tables.py and
 * progress_table.py; tests compare both.
 */
#include "native.h"

#include <limits.h>

enum { DIGITS = 19, ID_DIGITS = 9 }; /* each number of them fits an unsigned long long */

typedef struct {
    const char *at, *end;
    PyObject *make; /* makes the value of a tuple of two, or Py_None: values are single numbers */
} Text;

static int skip(Text *text, char wanted)
{
    if (text->at >= text->end || *text->at != wanted)
        return 0;
    text->at++;
    return 1;
}

/* The number here, in decimal digits without a zero before it, up to that of a Java long; 0 if
 * there is none. */
static int number(Text *text, int most, long long *found)
{
    const char *from = text->at;
    unsigned long long value = 0;
    while (text->at < text->end && *text->at >= '0' && *text->at <= '9' && text->at - from < most)
        value = value * 10 + (unsigned)(*text->at++ - '0');
    if (text->at == from || (*from == '0' && text->at - from > 1) || value > LLONG_MAX)
        return 0;
    *found = (long long)value;
    return text->at >= text->end || *text->at < '0' || *text->at > '9';
}

/* A number or null, as an object; NULL where there is another value, or with an error set. */
static PyObject *number_or_null(Text *text)
{
    long long value;
    if (text->end - text->at >= 4 && !memcmp(text->at, "null", 4)) {
        text->at += 4;
        Py_RETURN_NONE;
    }
    return number(text, DIGITS, &value) ? PyLong_FromLongLong(value) : NULL;
}

static PyObject *value_of(Text *text)
{
    long long first;
    if (text->make == Py_None)
        return number_or_null(text);
    if (!skip(text, '[') || !number(text, DIGITS, &first) || !skip(text, ','))
        return NULL;
    PyObject *second = number_or_null(text);
    if (second == NULL)
        return NULL;
    PyObject *pair = skip(text, ']') ? Py_BuildValue("(LO)", first, second) : NULL;
    Py_DECREF(second);
    if (pair == NULL)
        return NULL;
    PyObject *made = PyObject_CallFunctionObjArgs(text->make, pair, NULL);
    Py_DECREF(pair);
    return made;
}

/* The members of an object of numbers, after its brace. */
static PyObject *row_of(Text *text)
{
    PyObject *row = PyDict_New();
    Py_ssize_t count = 0;
    if (row == NULL || skip(text, '}'))
        return row;
    do {
        long long id;
        if (!skip(text, '"') || !number(text, ID_DIGITS, &id) || !skip(text, '"')
            || !skip(text, ':'))
            break;
        PyObject *key = PyLong_FromLongLong(id), *value = key ? value_of(text) : NULL;
        int failed = value == NULL || PyDict_SetItem(row, key, value) < 0;
        Py_XDECREF(key);
        Py_XDECREF(value);
        if (failed)
            break;
        count++;
        if (skip(text, '}')) {
            if (PyDict_Size(row) != count) /* a name comes twice */
                break;
            return row;
        }
    } while (skip(text, ','));
    Py_DECREF(row);
    return NULL;
}

/* A text without escapes, after its quote. */
static PyObject *name_of(Text *text)
{
    const char *from = text->at;
    while (text->at < text->end && *text->at != '"') {
        if (*text->at == '\\' || (unsigned char)*text->at < ' ')
            return NULL;
        text->at++;
    }
    Py_ssize_t length = text->at - from;
    return skip(text, '"') ? PyUnicode_DecodeUTF8(from, length, NULL) : NULL;
}

static PyObject *table_of(Text *text)
{
    PyObject *table = PyDict_New();
    Py_ssize_t count = 0;
    if (table == NULL)
        return NULL;
    if (!skip(text, '{'))
        goto other;
    if (skip(text, '}'))
        return table;
    do {
        PyObject *name = skip(text, '"') ? name_of(text) : NULL;
        PyObject *row = name && skip(text, ':') && skip(text, '{') ? row_of(text) : NULL;
        int failed = row == NULL || PyDict_SetItem(table, name, row) < 0;
        Py_XDECREF(name);
        Py_XDECREF(row);
        if (failed)
            break;
        count++;
        if (skip(text, '}')) {
            if (PyDict_Size(table) != count)
                break;
            return table;
        }
    } while (skip(text, ','));
other:
    Py_DECREF(table);
    return NULL;
}

PyDoc_STRVAR(number_table_doc,
             "number_table(data, start, make)\n\nSee storage.configs.number_tables.");
static PyObject *number_table(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer data;
    (void)module;
    if (!are_arguments(count, 3))
        return NULL;
    Py_ssize_t start = PyLong_AsSsize_t(args[1]);
    if (start == -1 && PyErr_Occurred())
        return NULL;
    if (PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *table = NULL;
    Text text = {.at = data.buf, .end = (const char *)data.buf + data.len, .make = args[2]};
    if (start >= 0 && start <= data.len) {
        text.at += start;
        table = table_of(&text);
    }
    Py_ssize_t end = text.at - (const char *)data.buf;
    PyBuffer_Release(&data);
    if (table != NULL) {
        PyObject *found = Py_BuildValue("(Nn)", table, end);
        return found;
    }
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
            return NULL;
        PyErr_Clear();
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(offsets_in_doc, "offsets_in(row)\n\nSee storage.configs.progress_table.");
static PyObject *offsets_in(PyObject *module, PyObject *row)
{
    PyObject *key, *value, *found = PyDict_CheckExact(row) ? PyDict_New() : NULL;
    Py_ssize_t at = 0;
    long long before = -1;
    (void)module;
    while (found != NULL && PyDict_Next(row, &at, &key, &value)) {
        PyObject *offset = NULL;
        if (PyTuple_Check(value) && PyTuple_Size(value) == 2)
            offset = PyTuple_GetItem(value, 1);
        if (offset == Py_None)
            continue;
        int too_large = 1;
        long long id = -1, number = -1;
        if (offset != NULL && PyLong_CheckExact(key) && PyLong_CheckExact(offset)) {
            id = PyLong_AsLongLongAndOverflow(key, &too_large);
            if (!too_large)
                number = PyLong_AsLongLongAndOverflow(offset, &too_large);
        }
        if (too_large || id <= before || number < 0)
            Py_CLEAR(found);
        else if (PyDict_SetItem(found, key, offset) < 0) {
            Py_DECREF(found);
            return NULL;
        }
        before = id;
    }
    return found != NULL || PyErr_Occurred() ? found : Py_NewRef(Py_None);
}

PyMethodDef number_table_functions[] = {
    {"number_table", (PyCFunction)(void (*)(void))number_table, METH_FASTCALL, number_table_doc},
    {"offsets_in", offsets_in, METH_O, offsets_in_doc},
    {NULL, NULL, 0, NULL},
};
