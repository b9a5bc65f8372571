/* A pull from the middle of a queue, in one step: what StoreView.get_message of storage/readonly.py
 * does where all files are mapped and all records are common ones.
 */
#include "lookups.h"
#include "steady.h"

enum { AHEAD = 2 }; /* units */

/* The messages of units that one file of the log has; NULL with or without an error set. */
static PyObject *pulled_of(const QueueEnd *queue, Run *run, PyObject *topic, int64_t count,
                           int64_t byte_limit, int64_t *total)
{
    const int64_t place = long_at(run->units.buf);
    LogFile log = {.opened = queue->log_opened, .first = -1};
    PyObject *found = NULL;
    int limited;
    if (place < 0 || open_file(&log, place - place % queue->log_file_size) <= 0)
        return NULL;
    run->log = log.bytes;
    run->first = log.first;
    found = messages_of(run, topic, count, byte_limit, total, &limited);
    close_file(&log);
    /* Else there is an unusual record, or one of the next file. */
    if (found != NULL && !limited && PyList_Size(found) != count)
        Py_CLEAR(found);
    return found;
}

PyDoc_STRVAR(pull_doc,
             "pull_at_once(steady, place, topic, field, queue_id, offset, most, byte_limit, unusual,"
             " status)\n\n"
             "The fields of a GetMessageResult, ``status`` first. None where\n"
             "StoreView.get_message must look itself: at the end of the queue, too.");
static PyObject *pull_at_once(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    (void)module;
    if (!are_arguments(given, 10))
        return NULL;
    PyObject *topic = args[2], *field = args[3], *messages = NULL;
    const int64_t offset = PyLong_AsLongLong(args[5]), most = PyLong_AsLongLong(args[6]);
    const int64_t byte_limit = PyLong_AsLongLong(args[7]);
    Run run = {
        .queue_id = PyLong_AsLongLong(args[4]), .queue_offset = offset,
        .unusual = (int32_t)PyLong_AsLongLong(args[8]),
    };
    if (PyErr_Occurred() || !PyBytes_Check(field) || !PyUnicode_Check(topic))
        return unknown();
    Steady steady;
    QueueEnd queue;
    int holds = take_steady(&steady, args[0], args[1], &queue);
    if (holds <= 0)
        return holds < 0 ? NULL : Py_NewRef(Py_None);
    let_steady_go(&steady);
    if (most <= 0 || offset < queue.min_offset || offset >= queue.end - most)
        Py_RETURN_NONE;
    const int64_t within = offset % queue.units_per_file, first = offset - within;
    const int64_t rest = queue.units_per_file - within, count = most < rest ? most : rest;
    LogFile units = {.opened = queue.units_opened, .first = -1};
    int64_t total = 0;
    if (open_units(&units, first, offset + count, count) > 0) {
        /* The objects of these are held by the caller, or by the file. */
        /* With those of the next pull's first records, which are fetched while this one is used. */
        const int64_t known = queue.end - offset < rest ? queue.end - offset : rest;
        const int64_t more = known < count + AHEAD ? known : count + AHEAD;
        const int64_t whole = units.bytes.len / UNIT - within;
        run.units = (Py_buffer){
            .buf = (char *)units.bytes.buf + within * UNIT,
            .len = (more < whole ? more : whole) * UNIT,
        };
        run.field = (Py_buffer){.buf = PyBytes_AsString(field), .len = PyBytes_Size(field)};
        messages = pulled_of(&queue, &run, topic, count, byte_limit, &total);
    }
    close_file(&units);
    if (messages == NULL)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    const long long following = offset + PyList_Size(messages);
    return Py_BuildValue("OLLLNLO", args[9], following, (long long)queue.min_offset,
                         (long long)queue.end, messages, (long long)total, Py_None);
}

PyMethodDef pull_functions[] = {
    {"pull_at_once", (PyCFunction)(void (*)(void))pull_at_once, METH_FASTCALL, pull_doc},
    {NULL, NULL, 0, NULL},
};
