/* From a time to a message of a queue, by halves. The reference is halve of
 * storage/read/by_time.py; a test compares both.
 */
#include "log_file.h"
#include "steady.h"

/* The store time of a unit's record, -1 if it cannot be read, -2 with an error set. */
static int64_t time_of(const unsigned char *unit, int64_t file_size, LogFile *file)
{
    int64_t offset = long_at(unit), position = offset % file_size;
    int32_t size = int_at(unit + 8);
    int opened = open_file(file, offset - position);
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

/* Units of one file of a queue, and a question. */
typedef struct {
    const unsigned char *units;
    int64_t low, high, log_min, timestamp, file_size;
} Search;
enum { UNREADABLE = -2, FAILED = -3 };

/* Number of the unit that is nearest to a time, -1 if there is none; UNREADABLE, or FAILED with an
 * error set. */
static int64_t nearest_of(const Search *asked, LogFile *file)
{
    int64_t low = asked->low, high = asked->high, timestamp = asked->timestamp;
    int64_t left = -1, right = -1, left_time = -1, right_time = -1;
    while (high >= low) {
        int64_t middle = low + (high - low) / 2;
        const unsigned char *unit = asked->units + middle * UNIT;
        if (long_at(unit) < asked->log_min) {
            left = middle;
            low = middle + 1;
            continue;
        }
        int64_t time = time_of(unit, asked->file_size, file);
        if (time < 0)
            return time == -1 ? UNREADABLE : FAILED;
        if (time == timestamp)
            return middle;
        if (time > timestamp) {
            right = middle;
            right_time = time;
            high = middle - 1;
        } else {
            left = middle;
            left_time = time;
            low = middle + 1;
        }
    }
    if (left_time < 0)
        return right;
    if (right_time < 0)
        return left;
    return timestamp - left_time > right_time - timestamp ? right : left;
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
    Search asked = {
        .low = PyLong_AsLongLong(args[1]), .high = PyLong_AsLongLong(args[2]),
        .log_min = PyLong_AsLongLong(args[3]), .timestamp = PyLong_AsLongLong(args[4]),
        .file_size = PyLong_AsLongLong(args[5]),
    };
    LogFile file = {.at = args[6], .first = -1};
    if (PyErr_Occurred() || PyObject_GetBuffer(args[0], &units, PyBUF_SIMPLE) < 0)
        return NULL;
    asked.units = units.buf;
    int64_t nearest = FAILED;
    if (asked.low < 0 || asked.log_min < 0 || asked.file_size <= 0
        || asked.high >= (int64_t)(units.len / UNIT))
        PyErr_SetString(PyExc_ValueError, "the units are missing");
    else
        nearest = nearest_of(&asked, &file);
    close_file(&file);
    PyBuffer_Release(&units);
    if (nearest == FAILED)
        return NULL;
    return nearest == UNREADABLE ? Py_NewRef(Py_None) : PyLong_FromLongLong(nearest);
}

PyDoc_STRVAR(nearest_doc,
             "nearest_at_once(steady, place, timestamp)\n\n"
             "The queue offset that is nearest to a time, in a queue of one file; see\n"
             "TimeSearch.offset of storage.read.by_time. None: that must be asked.");
static PyObject *nearest_at_once(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!are_arguments(count, 3))
        return NULL;
    Steady steady;
    QueueEnd queue;
    int overflow;
    int64_t timestamp = PyLong_AsLongLongAndOverflow(args[2], &overflow), nearest = UNREADABLE;
    if (overflow || timestamp < 0)
        return unknown();
    int holds = take_steady(&steady, args[0], args[1], &queue);
    if (holds <= 0)
        return holds < 0 ? NULL : Py_NewRef(Py_None);
    LogFile units = {.opened = queue.units_opened, .first = -1};
    LogFile log = {.opened = queue.log_opened, .first = -1};
    const int64_t first = queue.only_first;
    if (first >= 0 && first < queue.end && queue.end - first <= queue.units_per_file
        && open_units(&units, first, queue.end, queue.end - first) > 0) {
        Search asked = {
            .units = units.bytes.buf, .low = queue.min_offset > first ? queue.min_offset - first : 0,
            .high = queue.end - first - 1, .log_min = queue.log_min, .timestamp = timestamp,
            .file_size = queue.log_file_size,
        };
        nearest = nearest_of(&asked, &log);
    }
    close_file(&units);
    close_file(&log);
    let_steady_go(&steady);
    if (PyErr_Occurred())
        return NULL;
    if (nearest == UNREADABLE)
        Py_RETURN_NONE;
    return PyLong_FromLongLong(first + nearest < 0 ? 0 : first + nearest);
}

PyMethodDef time_search_functions[] = {
    {"halve", (PyCFunction)(void (*)(void))halve, METH_FASTCALL, halve_doc},
    {"nearest_at_once", (PyCFunction)(void (*)(void))nearest_at_once, METH_FASTCALL, nearest_doc},
    {NULL, NULL, 0, NULL},
};
