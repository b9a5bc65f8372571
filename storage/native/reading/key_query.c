/* From a key to its messages: the entries of the index, and the records that they name. The
 * reference is the second half of query_message in storage/read/by_key.py, which takes all unusual
 * records; a test compares both.
 */
#include "index_file.h"
#include "lookups.h"

typedef struct {
    PyObject *opened; /* first offset -> ReadMap */
    int64_t file_size, end;
    int32_t unusual;
    int64_t first; /* of the file in bytes; -1: none */
    Py_buffer bytes;
} Log;

static PyObject *view_name;

static void let_go(Log *log)
{
    if (log->first >= 0)
        PyBuffer_Release(&log->bytes);
    log->first = -1;
}

/* Open the log file that begins at ``first``: 1, 0 if it is not mapped, -1 with an error set. */
static int take_file(Log *log, int64_t first)
{
    if (log->first == first)
        return 1;
    let_go(log);
    PyObject *number = PyLong_FromLongLong(first);
    PyObject *file = number == NULL ? NULL : PyDict_GetItemWithError(log->opened, number);
    Py_XDECREF(number);
    if (file == NULL)
        return PyErr_Occurred() ? -1 : 0;
    Py_INCREF(file); /* a thread that maps another one may drop it from the dict */
    PyObject *view = PyObject_GetAttr(file, view_name);
    Py_DECREF(file);
    if (view == NULL)
        return -1;
    int taken = PyObject_GetBuffer(view, &log->bytes, PyBUF_SIMPLE);
    Py_DECREF(view);
    if (taken == 0)
        log->first = first;
    return taken < 0 ? -1 : 1;
}

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
        int taken = take_file(log, offset - position);
        if (taken <= 0)
            return taken;
        int64_t limit = log->end - log->first;
        if (limit > log->bytes.len)
            limit = log->bytes.len;
        PyObject *message = message_at(&log->bytes, position, limit, offset, log->unusual);
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
        .opened = args[9], .file_size = PyLong_AsLongLong(args[10]),
        .end = PyLong_AsLongLong(args[11]), .unusual = (int32_t)PyLong_AsLongLong(args[12]),
        .first = -1,
    };
    if (PyErr_Occurred())
        return NULL;
    if (!PyTuple_Check(files) || !PyDict_Check(log.opened) || asked.slots <= 0
        || asked.slots > INT32_MAX || log.file_size <= 0) {
        PyErr_SetString(PyExc_ValueError, "these are no files of a store");
        return NULL;
    }
    int64_t wanted = hash_of(args[3], args[4]), time, offset;
    if (wanted < 0 || PyTuple_Size(files) == 0)
        Py_RETURN_NONE;
    int known = newest_entry(PyTuple_GetItem(files, 0), asked.entries, &time, &offset);
    if (known <= 0)
        return known < 0 ? NULL : Py_NewRef(Py_None);
    PyObject *hits = PyList_New(0), *messages = PyList_New(0), *found = NULL;
    if (hits != NULL && messages != NULL && search_files(files, &asked, wanted, hits) >= 0) {
        int are_usual = append_messages(&log, hits, messages);
        if (PyList_Size(hits) == 0)
            time = offset = 0; /* as a broker answers */
        if (are_usual > 0)
            found = result_of(messages, hits, time, offset);
        else if (are_usual == 0)
            found = Py_NewRef(Py_None);
    }
    let_go(&log);
    Py_XDECREF(hits);
    Py_XDECREF(messages);
    return found;
}

PyMethodDef key_query_functions[] = {
    {"query_key", (PyCFunction)(void (*)(void))query_key, METH_FASTCALL, query_key_doc},
    {NULL, NULL, 0, NULL},
};

int prepare_key_query(void)
{
    view_name = PyUnicode_InternFromString("view");
    return view_name ? 0 : -1;
}
