/* Units beside the log: whether those of consecutive queue offsets are those of some records, and
 * which parts of the log no unit names. The references are _compare_queue of
 * storage/tools/fsck/queue_compare.py, which also reports the difference, and
 * storage/queue/coverage.py.
 */
#include "native.h"
#include <stdlib.h>

PyDoc_STRVAR(match_doc,
             "units_match(units, rows, offsets, sizes, tags_codes)\n\n"
             "Whether unit i is that of record ``rows[i]`` of the columns.");
static PyObject *units_match(PyObject *module, PyObject *args)
{
    Py_buffer units, rows, offsets, sizes, codes;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*", &units, &rows, &offsets, &sizes, &codes))
        return NULL;
    const unsigned char *unit = units.buf;
    const int64_t *row = rows.buf, *offset = offsets.buf, *size = sizes.buf, *code = codes.buf;
    Py_ssize_t count = rows.len / 8, records = offsets.len / 8;
    int match = units.len >= count * UNIT && sizes.len == offsets.len && codes.len == offsets.len;
    for (Py_ssize_t i = 0; match && i < count; i++, unit += UNIT)
        match = row[i] >= 0 && row[i] < records && long_at(unit) == offset[row[i]]
                && int_at(unit + 8) == size[row[i]] && long_at(unit + 12) == code[row[i]];
    PyBuffer_Release(&units);
    PyBuffer_Release(&rows);
    PyBuffer_Release(&offsets);
    PyBuffer_Release(&sizes);
    PyBuffer_Release(&codes);
    return PyBool_FromLong(match);
}

typedef struct {
    int64_t begin, stop; /* of a record */
} Place;

/* The end of the places from ``at`` on that are in order. */
static Py_ssize_t run_end(const Place *places, Py_ssize_t at, Py_ssize_t count)
{
    for (at++; at < count && places[at - 1].begin <= places[at].begin; at++)
        ;
    return at;
}

/* Sorts places by their begin; ``other`` is room for as many. Gives where they are then. Those of a
 * queue are in order as a rule, so runs are merged: that takes a third of the time of qsort. */
static Place *sort_places(Place *places, Place *other, Py_ssize_t count)
{
    for (Py_ssize_t runs = 2; runs > 1;) {
        runs = 0;
        for (Py_ssize_t first = 0, end = 0; first < count; first = end, runs++) {
            const Py_ssize_t middle = run_end(places, first, count);
            Py_ssize_t one = first, two = middle, to = first;
            end = middle < count ? run_end(places, middle, count) : middle;
            while (one < middle && two < end)
                other[to++] = places[two].begin < places[one].begin ? places[two++] : places[one++];
            memcpy(other + to, places + one, (size_t)(middle - one) * sizeof *places);
            to += middle - one;
            memcpy(other + to, places + two, (size_t)(end - two) * sizeof *places);
        }
        Place *sorted = other;
        other = places, places = sorted;
    }
    return places;
}

/* Takes the places in [start, end) that some units name; gives how many. */
static Py_ssize_t take_places(const unsigned char *unit, Py_ssize_t count, int64_t start, int64_t end,
                              Place *to)
{
    Py_ssize_t taken = 0;
    for (const unsigned char *stop = unit + count * UNIT; unit < stop; unit += UNIT) {
        const int64_t begin = long_at(unit), size = int_at(unit + 8);
        if (begin >= start && begin < end && size > 0 && size <= end - begin)
            to[taken++] = (Place){begin, begin + size};
    }
    return taken;
}

/* Adds a part of the log to a list; 0 with an error. */
static int add_part(PyObject *parts, int64_t begin, int64_t stop)
{
    PyObject *part = Py_BuildValue("LL", (long long)begin, (long long)stop);
    const int added = part != NULL && PyList_Append(parts, part) == 0;
    Py_XDECREF(part);
    return added;
}

/* The parts of [start, end) between places, which are in order. */
static PyObject *parts_between(const Place *places, Py_ssize_t count, int64_t start, int64_t end)
{
    PyObject *parts = PyList_New(0);
    for (Py_ssize_t i = 0; parts != NULL && i < count; i++) {
        if (places[i].begin > start && !add_part(parts, start, places[i].begin))
            Py_CLEAR(parts);
        start = places[i].stop > start ? places[i].stop : start;
    }
    if (parts != NULL && start < end && !add_part(parts, start, end))
        Py_CLEAR(parts);
    return parts;
}

PyDoc_STRVAR(uncovered_doc, "uncovered(blocks, start, end)\n\nSee storage.queue.coverage.");
static PyObject *uncovered(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!are_arguments(count, 3))
        return NULL;
    const int64_t start = PyLong_AsLongLong(args[1]);
    const int64_t end = PyErr_Occurred() ? 0 : PyLong_AsLongLong(args[2]);
    if (!PyErr_Occurred() && !PyList_CheckExact(args[0]))
        PyErr_SetString(PyExc_TypeError, "a list of units is required");
    if (PyErr_Occurred())
        return NULL;
    const Py_ssize_t blocks = PyList_Size(args[0]);
    Py_ssize_t units = 0, taken = 0;
    for (Py_ssize_t i = 0; i < blocks; i++) {
        const Py_ssize_t size = PyBytes_Size(PyList_GetItem(args[0], i));
        if (size < 0)
            return NULL;
        units += size / UNIT;
    }
    Place *places = malloc(2 * ((size_t)units + 1) * sizeof *places);
    if (places == NULL)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < blocks; i++) {
        PyObject *block = PyList_GetItem(args[0], i);
        const unsigned char *at = (const unsigned char *)PyBytes_AsString(block);
        taken += take_places(at, PyBytes_Size(block) / UNIT, start, end, places + taken);
    }
    const Place *sorted;
    Py_BEGIN_ALLOW_THREADS;
    sorted = sort_places(places, places + units + 1, taken);
    Py_END_ALLOW_THREADS;
    PyObject *parts = parts_between(sorted, taken, start, end);
    free(places);
    return parts;
}

PyMethodDef unit_functions[] = {
    {"units_match", units_match, METH_VARARGS, match_doc},
    {"uncovered", (PyCFunction)(void (*)(void))uncovered, METH_FASTCALL, uncovered_doc},
    {NULL, NULL, 0, NULL},
};
