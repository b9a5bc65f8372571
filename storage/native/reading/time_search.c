/* From a time to a message of a queue, by halves. The reference is halve of
 * storage/read/by_time.py; a test compares both.
 */
#include "native.h"

/* The file of the log that was read last. */
typedef struct {
    int64_t first; /* -1 before there is any */
    Py_buffer bytes;
} LogFile;

static void close_file(LogFile *file)
{
    if (file->first >= 0)
        PyBuffer_Release(&file->bytes);
    file->first = -1;
}

/* Make ``file`` the one that begins at ``first``: 1, 0 if it is missing, -1 with an error set. */
static int open_file(LogFile *file, int64_t first, PyObject *at)
{
    if (file->first == first)
        return 1;
    close_file(file);
    PyObject *map = PyObject_CallFunction(at, "L", (long long)first);
    if (map == NULL || map == Py_None) {
        Py_XDECREF(map);
        return map ? 0 : -1;
    }
    PyObject *view = PyObject_GetAttrString(map, "view");
    Py_DECREF(map);
    if (view == NULL)
        return -1;
    int failed = PyObject_GetBuffer(view, &file->bytes, PyBUF_SIMPLE); /* keeps the map alive */
    Py_DECREF(view);
    if (failed)
        return -1;
    file->first = first;
    return 1;
}

/* The store time of a unit's record, -1 if it cannot be read, -2 with an error set. */
static int64_t time_of(const unsigned char *unit, int64_t file_size, LogFile *file, PyObject *at)
{
    int64_t offset = long_at(unit), position = offset % file_size;
    int32_t size = int_at(unit + 8);
    int opened = open_file(file, offset - position, at);
    if (opened <= 0)
        return opened ? -2 : -1;
    if (size < LEAST || size > file->bytes.len - position)
        return -1;
    const unsigned char *record = (const unsigned char *)file->bytes.buf + position;
    int32_t magic = int_at(record + 4);
    if (int_at(record) != size || (magic != MAGIC_V1 && magic != MAGIC_V2))
        return -1;
    int64_t time = long_at(record + (int_at(record + 36) & BORN_V6 ? 68 : 56));
    return time < 0 ? -1 : time;
}

PyDoc_STRVAR(halve_doc,
             "halve(units, low, high, log_min, timestamp, file_size, at)\n\n"
             "Number of the unit among low .. high that is nearest to a time; see halve in\n"
             "storage.read.by_time. ``at`` gives the log file that begins at an offset.");
static PyObject *halve(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer units;
    (void)module;
    if (!are_arguments(count, 7))
        return NULL;
    int64_t low = PyLong_AsLongLong(args[1]), high = PyLong_AsLongLong(args[2]);
    int64_t log_min = PyLong_AsLongLong(args[3]), timestamp = PyLong_AsLongLong(args[4]);
    int64_t file_size = PyLong_AsLongLong(args[5]);
    PyObject *at = args[6];
    if (PyErr_Occurred() || PyObject_GetBuffer(args[0], &units, PyBUF_SIMPLE) < 0)
        return NULL;
    LogFile file = {.first = -1};
    int64_t left = -1, right = -1, left_time = -1, right_time = -1, nearest = -1, time = 0;
    int found = 0;
    if (low < 0 || log_min < 0 || file_size <= 0 || high >= (int64_t)(units.len / UNIT)) {
        PyErr_SetString(PyExc_ValueError, "the units are missing");
        time = -2;
    }
    while (time >= 0 && high >= low && !found) {
        int64_t middle = low + (high - low) / 2;
        const unsigned char *unit = (const unsigned char *)units.buf + middle * UNIT;
        if (long_at(unit) < log_min) {
            left = middle;
            low = middle + 1;
            continue;
        }
        time = time_of(unit, file_size, &file, at);
        if (time == timestamp) {
            nearest = middle;
            found = time >= 0;
        } else if (time > timestamp) {
            right = middle;
            right_time = time;
            high = middle - 1;
        } else {
            left = middle;
            left_time = time;
            low = middle + 1;
        }
    }
    close_file(&file);
    PyBuffer_Release(&units);
    if (time == -2)
        return NULL;
    if (time < 0)
        Py_RETURN_NONE;
    if (!found) {
        if (left_time < 0)
            nearest = right;
        else if (right_time < 0)
            nearest = left;
        else
            nearest = timestamp - left_time > right_time - timestamp ? right : left;
    }
    return PyLong_FromLongLong(nearest);
}

PyMethodDef time_search_functions[] = {
    {"halve", (PyCFunction)(void (*)(void))halve, METH_FASTCALL, halve_doc},
    {NULL, NULL, 0, NULL},
};
