/* From a key to its messages: the entries of the index, and the records that they name. The
 * reference is the second half of query_message in storage/read/by_key.py, which takes all unusual
 * records; a test compares both.
 */
#include "index_file.h"
#include "lookups.h"
#include "steady.h"

typedef struct {
    LogFile file;
    int64_t file_size, end;
    int32_t unusual;
} Log;

enum { COMMON_FIELDS = 6 };

/* Append the messages of hits, the last one first, which have to ascend then: 1, 0 if one of them
 * is unusual, -1 with an error set. */
static int append_messages(Log *log, PyObject *hits, PyObject *messages)
{
    int64_t before = 0;
    for (Py_ssize_t i = PyList_Size(hits) - 1; i >= 0; i--) {
        int64_t offset = PyLong_AsLongLong(PyList_GetItem(hits, i));
        if (offset < before || offset >= log->end)
            return 0;
        before = offset;
        int64_t position = offset % log->file_size;
        int taken = open_file(&log->file, offset - position);
        if (taken <= 0)
            return taken;
        int64_t limit = log->end - log->file.first;
        if (limit > log->file.bytes.len)
            limit = log->file.bytes.len;
        PyObject *message = message_at(&log->file.bytes, position, limit, offset, log->unusual);
        if (message == NULL)
            return PyErr_Occurred() ? -1 : 0;
        int failed = PyList_Append(messages, message);
        Py_DECREF(message);
        if (failed)
            return -1;
    }
    return 1;
}

/* Time and log offset of the newest entry; 0 if the file is too short for them, or full: there may
 * be a newer one then. -1 with an error set. */
static int newest_entry(PyObject *map, int64_t entries, int64_t *time, int64_t *offset)
{
    Py_buffer file;
    if (PyObject_GetBuffer(map, &file, PyBUF_SIMPLE) < 0)
        return -1;
    const unsigned char *at = file.buf;
    int known = file.len >= HEADER && int_at(at + NEXT_NUMBER) < entries;
    if (known) {
        *time = long_at(at + LAST_TIME);
        *offset = long_at(at + LAST_OFFSET);
    }
    PyBuffer_Release(&file);
    return known;
}

static PyObject *result_of(PyObject *messages, PyObject *hits, int64_t time, int64_t offset)
{
    PyObject *when = PyLong_FromLongLong(time), *where = PyLong_FromLongLong(offset);
    PyObject *result = when && where ? PyTuple_Pack(4, messages, hits, when, where) : NULL;
    Py_XDECREF(when);
    Py_XDECREF(where);
    return result;
}

/* The answer to a question; None for records that must be read one by one. */
static PyObject *answer(PyObject *files, const Question *asked, Log *log, int64_t wanted)
{
    int64_t time, offset;
    int known = newest_entry(PyTuple_GetItem(files, 0), asked->entries, &time, &offset);
    if (known <= 0)
        return known < 0 ? NULL : Py_NewRef(Py_None);
    PyObject *hits = PyList_New(0), *messages = PyList_New(0), *found = NULL;
    if (hits != NULL && messages != NULL && search_files(files, asked, wanted, hits) >= 0) {
        int are_usual = append_messages(log, hits, messages);
        if (PyList_Size(hits) == 0)
            time = offset = 0; /* as a broker answers */
        if (are_usual > 0)
            found = result_of(messages, hits, time, offset);
        else if (are_usual == 0)
            found = Py_NewRef(Py_None);
    }
    close_file(&log->file);
    Py_XDECREF(hits);
    Py_XDECREF(messages);
    return found;
}

PyDoc_STRVAR(query_key_doc,
             "query_key(files, slots, entries, topic, key, begin, end, below, most, opened,"
             " file_size, log_end, unusual)\n\n"
             "Messages of a key in index files (newest first), oldest first; their log\n"
             "offsets, newest first; time and log offset of the newest entry. None for records"
             " that\n"
             "must be read one by one. See query_message of storage.read.by_key.");
static PyObject *query_key(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!are_arguments(count, 13))
        return NULL;
    PyObject *files = args[0];
    const Question asked = {
        .slots = PyLong_AsLongLong(args[1]), .entries = PyLong_AsLongLong(args[2]),
        .begin = PyLong_AsLongLong(args[5]), .end = PyLong_AsLongLong(args[6]),
        .below = PyLong_AsLongLong(args[7]), .has_below = 1, .follow_slots = 1,
        .most = PyLong_AsLongLong(args[8]),
    };
    Log log = {
        .file = {.opened = args[9], .first = -1}, .file_size = PyLong_AsLongLong(args[10]),
        .end = PyLong_AsLongLong(args[11]), .unusual = (int32_t)PyLong_AsLongLong(args[12]),
    };
    if (PyErr_Occurred())
        return NULL;
    if (!PyTuple_Check(files) || !PyDict_Check(log.file.opened) || asked.slots <= 0
        || asked.slots > INT32_MAX || log.file_size <= 0) {
        PyErr_SetString(PyExc_ValueError, "these are no files of a store");
        return NULL;
    }
    int64_t wanted = hash_of(args[3], args[4]);
    if (wanted < 0 || PyTuple_Size(files) == 0)
        Py_RETURN_NONE;
    return answer(files, &asked, &log, wanted);
}

PyDoc_STRVAR(query_at_once_doc,
             "query_at_once(steady, common, files, topic, key, begin, end, most)\n\n"
             "The same, of a store that is as it was known. None where KeyReader.messages must\n"
             "look itself.");
static PyObject *query_at_once(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!are_arguments(count, 8))
        return NULL;
    PyObject *common = args[1], *files = args[2];
    Question asked = {
        .begin = PyLong_AsLongLong(args[5]), .end = PyLong_AsLongLong(args[6]),
        .most = PyLong_AsLongLong(args[7]), .has_below = 1, .follow_slots = 1,
    };
    if (PyErr_Occurred() || !PyTuple_Check(files) || PyTuple_Size(files) == 0)
        return unknown(); /* no machine word holds a time, or none is mapped yet */
    if (!PyTuple_Check(common) || PyTuple_Size(common) != COMMON_FIELDS) {
        PyErr_SetString(PyExc_TypeError, "what is common to queries is a tuple");
        return NULL;
    }
    asked.slots = PyLong_AsLongLong(PyTuple_GetItem(common, 0));
    asked.entries = PyLong_AsLongLong(PyTuple_GetItem(common, 1));
    const int64_t most = PyLong_AsLongLong(PyTuple_GetItem(common, 2));
    asked.most = asked.most < most ? asked.most : most;
    Log log = {
        .file = {.opened = PyTuple_GetItem(common, 3), .first = -1},
        .file_size = PyLong_AsLongLong(PyTuple_GetItem(common, 4)),
        .unusual = (int32_t)PyLong_AsLongLong(PyTuple_GetItem(common, 5)),
    };
    if (PyErr_Occurred())
        return NULL;
    if (!PyDict_Check(log.file.opened) || asked.slots <= 0 || asked.slots > INT32_MAX
        || log.file_size <= 0) {
        PyErr_SetString(PyExc_ValueError, "these are no files of a store");
        return NULL;
    }
    int64_t wanted = hash_of(args[3], args[4]);
    Steady steady;
    int holds = wanted < 0 ? 0 : take_steady(&steady, args[0], NULL, NULL);
    if (holds <= 0)
        return holds < 0 ? NULL : unknown();
    asked.below = steady.words[KEYS_FROM]; /* first, as KeyReader.offsets says */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    log.end = steady.words[LOG_END];
    let_steady_go(&steady);
    if (asked.below < log.end) /* some keys are in no file yet */
        Py_RETURN_NONE;
    return answer(files, &asked, &log, wanted);
}

PyMethodDef key_query_functions[] = {
    {"query_key", (PyCFunction)(void (*)(void))query_key, METH_FASTCALL, query_key_doc},
    {"query_at_once", (PyCFunction)(void (*)(void))query_at_once, METH_FASTCALL, query_at_once_doc},
    {NULL, NULL, 0, NULL},
};
