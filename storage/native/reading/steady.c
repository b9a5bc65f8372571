/* See steady.h. The references are the methods of Python named there. */
#include "kernel.h"
#include "steady.h"

enum { KNOWN_FIELDS = 4, LOCK_FIELDS = 4, PLACE_FIELDS = 9, WORDS = 64 };

static PyObject *observed_name;

PyObject *unknown(void)
{
    PyErr_Clear();
    Py_RETURN_NONE;
}

/* Whether the lock file is the one that is known, and its time that of a word: 1, 0 or -1, as
 * JavaStart.ns of storage/coordination/java_start.py knows without a look at its name. */
static int is_lock_known(PyObject *known, int64_t modified)
{
    struct stat found;
    struct timespec now;
    if (!PyTuple_Check(known) || PyTuple_Size(known) != LOCK_FIELDS) {
        PyErr_SetString(PyExc_TypeError, "what is known of the lock file is a tuple");
        return -1;
    }
    const int64_t fd = PyLong_AsLongLong(PyTuple_GetItem(known, 0));
    const int64_t changed = PyLong_AsLongLong(PyTuple_GetItem(known, 1));
    const int64_t known_modified = PyLong_AsLongLong(PyTuple_GetItem(known, 2));
    const double until = PyFloat_AsDouble(PyTuple_GetItem(known, 3));
    if (PyErr_Occurred())
        return -1;
    if (fd < 0 || fd > INT32_MAX || known_modified != modified
        || clock_gettime(CLOCK_MONOTONIC, &now) < 0
        || (double)now.tv_sec + 1e-9 * (double)now.tv_nsec >= until
        || fstat((int)fd, &found) < 0)
        return 0;
    return found.CHANGED.tv_sec * 1000000000ll + found.CHANGED.tv_nsec == changed;
}

/* Read the place of a queue; 1, 0 if it is no longer that, -1 with an error set. */
static int take_queue(const Steady *steady, PyObject *place, int64_t generation, QueueEnd *queue)
{
    if (!PyTuple_Check(place) || PyTuple_Size(place) != PLACE_FIELDS) {
        PyErr_SetString(PyExc_TypeError, "the place of a queue is a tuple");
        return -1;
    }
    int64_t *const numbers[] = {
        &queue->word, &queue->min_offset, &queue->only_first, &queue->units_per_file,
        &queue->log_min, &queue->log_file_size, NULL,
    };
    const int64_t its_generation = PyLong_AsLongLong(PyTuple_GetItem(place, 0));
    for (int i = 0; numbers[i] != NULL; i++)
        *numbers[i] = PyLong_AsLongLong(PyTuple_GetItem(place, i + 1));
    queue->units_opened = PyTuple_GetItem(place, 7);
    queue->log_opened = PyTuple_GetItem(place, 8);
    if (PyErr_Occurred())
        return -1;
    if (!PyDict_Check(queue->units_opened) || !PyDict_Check(queue->log_opened)
        || queue->log_file_size <= 0 || queue->units_per_file <= 0) {
        PyErr_SetString(PyExc_TypeError, "these are no files of a store");
        return -1;
    }
    if (its_generation != generation || queue->word < 0
        || queue->word >= steady->buffer.len / (Py_ssize_t)sizeof(int64_t))
        return 0;
    queue->end = steady->words[queue->word];
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    /* Else the queue may have been deleted and made anew meanwhile: its files are others. */
    return queue->end >= queue->min_offset && queue->min_offset >= 0
           && steady->words[FILES_GENERATION] == generation;
}

int take_steady(Steady *steady, PyObject *known, PyObject *place, QueueEnd *queue)
{
    if (!PyTuple_Check(known) || PyTuple_Size(known) != KNOWN_FIELDS) {
        PyErr_SetString(PyExc_TypeError, "what is known of a store is a tuple");
        return -1;
    }
    PyObject *lock = PyTuple_GetItem(known, 1);
    const int64_t made = PyLong_AsLongLong(PyTuple_GetItem(known, 2));
    const int64_t generation = PyLong_AsLongLong(PyTuple_GetItem(known, 3));
    if (PyErr_Occurred()
        || PyObject_GetBuffer(PyTuple_GetItem(known, 0), &steady->buffer, PyBUF_SIMPLE) < 0)
        return -1;
    const volatile int64_t *words = steady->words = steady->buffer.buf;
    int holds = steady->buffer.len >= WORDS * (Py_ssize_t)sizeof(int64_t);
    if (holds && lock != Py_None) {
        holds = words[MAGIC] == SHARED_STATE_MAGIC && words[MADE] == made;
        holds = holds ? is_lock_known(lock, words[LOCK_MTIME]) : 0;
    }
    if (holds > 0)
        holds = words[FILES_GENERATION] == generation;
    if (holds > 0 && place != NULL) {
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        holds = take_queue(steady, place, generation, queue);
    }
    if (holds <= 0)
        let_steady_go(steady);
    return holds;
}
void let_steady_go(Steady *steady)
{
    PyBuffer_Release(&steady->buffer);
}

int open_units(LogFile *file, int64_t first, int64_t end, int64_t count)
{
    if (count * UNIT > FEW_BYTES) { /* as ReadOnlyFiles.at: it turns read-ahead on first */
        PyObject *number = PyLong_FromLongLong(first * UNIT);
        PyObject *map = number ? PyDict_GetItemWithError(file->opened, number) : NULL;
        PyObject *observed = map ? PyObject_GetAttr(map, observed_name) : NULL;
        Py_XDECREF(number);
        Py_XDECREF(observed);
        if (observed != Py_False)
            return PyErr_Occurred() ? -1 : 0;
    }
    int opened = open_file(file, first * UNIT);
    return opened > 0 ? file->bytes.len >= (end - first) * UNIT : opened;
}

int prepare_steady(void)
{
    observed_name = PyUnicode_InternFromString("observed");
    return observed_name ? 0 : -1;
}
