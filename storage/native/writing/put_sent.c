/* A plain message that a producer sends, from the Message to its result, in one step: what
 * Sender.send of broker/send/send.py does where it has a template
 * (storage/append/send_template.py). All other messages are left to Sender.send; a test compares
 * both.
 */
#include "appending.h"

/* The indexes of a SendTemplate. The first five are the first of inner_message's arguments, except
 * the queue id, which is separate. */
enum {
    WAY_TOPIC, WAY_QUEUES, WAY_AFTER, WAY_LARGEST, WAY_ORIGIN, WAY_CHANGES, WAY_UNTIL, WAY_HOST,
    WAY_RESULT, WAY_STATUS, WAY_OPTIONS, WAY_FIELDS
};
enum { RESULT_FIELDS = 6, OFFSET_DIGITS = 16, LONGEST_HOST = 40 };

/* Whether the template is valid now; 0 without an error if not. */
static int is_way_open(Appending *a, PyObject *way, int64_t now)
{
    int64_t changes, until;
    return a->has_words && number_of(PyTuple_GetItem(way, WAY_CHANGES), &changes) == 0
           && number_of(PyTuple_GetItem(way, WAY_UNTIL), &until) == 0 && now <= until
           && ((volatile int64_t *)a->words.buf)[CONFIGS] == changes;
}

/* The offsetMsgId, as message_id.py makes it; NULL without an error if the host is none. */
static PyObject *offset_id(PyObject *host, int64_t offset)
{
    static const char digits[] = "0123456789ABCDEF";
    char text[LONGEST_HOST + OFFSET_DIGITS];
    Py_ssize_t size;
    const char *begun = text_of(host, &size);
    if (begun == NULL || size > LONGEST_HOST)
        return NULL;
    char *at = (char *)memcpy(text, begun, (size_t)size) + size;
    for (int shift = 4 * (OFFSET_DIGITS - 1); shift >= 0; shift -= 4)
        *at++ = digits[(uint64_t)offset >> shift & 15];
    return PyUnicode_FromStringAndSize(text, at - text);
}

/* The SendResult of the put; NULL with an error set. */
static PyObject *told(PyObject *way, PyObject *queue, PyObject *id, const Shell *shell)
{
    PyObject *const log = PyTuple_GetItem(shell->found, 1), *at = PyTuple_GetItem(log, 0);
    int64_t offset;
    PyObject *place = number_of(at, &offset) < 0
                          ? NULL
                          : offset_id(PyTuple_GetItem(way, WAY_HOST), offset);
    PyTypeObject *type = (PyTypeObject *)PyTuple_GetItem(way, WAY_RESULT);
    PyObject *result = place == NULL ? NULL : PyType_GenericAlloc(type, RESULT_FIELDS);
    if (result == NULL) {
        Py_XDECREF(place);
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "this is no template");
        return NULL;
    }
    PyTuple_SetItem(result, 0, owned(PyTuple_GetItem(way, WAY_STATUS)));
    PyTuple_SetItem(result, 1, owned(queue));
    PyTuple_SetItem(result, 2, owned(PyTuple_GetItem(PyTuple_GetItem(shell->found, 2), 0)));
    PyTuple_SetItem(result, 3, owned(id));
    PyTuple_SetItem(result, 4, place);
    PyTuple_SetItem(result, 5, owned(PyTuple_GetItem(shell->found, 3)));
    PyObject_GC_UnTrack(result); /* it is in no cycle, so the collector need not track it */
    return result;
}

/* The queue of a number, borrowed; NULL without an error if there is none. */
static PyObject *queue_of(PyObject *way, PyObject *queue_id)
{
    PyObject *queues = PyTuple_GetItem(way, WAY_QUEUES);
    int64_t number;
    if (!PyTuple_CheckExact(queues) || number_of(queue_id, &number) < 0 || number < 0
        || number >= PyTuple_Size(queues))
        return NULL;
    return PyTuple_GetItem(queues, (Py_ssize_t)number);
}

const char put_sent_doc[] =
    "put_sent(message, queue_id, way)\n\n"
    "Put a plain message that has its id, and give its SendResult; None: nothing is done. ``way`` is"
    " a SendTemplate.";
PyObject *put_sent(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Appending *a = (Appending *)self;
    Shell shell;
    int64_t now;
    PyObject *id, *queue, *const way = count == 3 ? args[2] : NULL;
    if (!are_arguments(count, 3))
        return NULL;
    if (!PyTuple_Check(way) || PyTuple_Size(way) != WAY_FIELDS
        || !PyType_Check(PyTuple_GetItem(way, WAY_RESULT))
        || !PyType_IsSubtype((PyTypeObject *)PyTuple_GetItem(way, WAY_RESULT), &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "a SendTemplate is required");
        return NULL;
    }
    if (a->write_lock == NULL || a->syncs || (queue = queue_of(way, args[1])) == NULL)
        Py_RETURN_NONE;
    if (time_of(a, &now) < 0)
        return NULL;
    if (!is_way_open(a, way, now) || !is_log_there(a, now))
        Py_RETURN_NONE;
    PyObject *const given_parts[] = {PyTuple_GetItem(way, WAY_TOPIC), args[1],
                                     PyTuple_GetItem(way, WAY_AFTER),
                                     PyTuple_GetItem(way, WAY_LARGEST),
                                     PyTuple_GetItem(way, WAY_ORIGIN)};
    PyObject *inner = inner_of_sent(args[0], given_parts, &id);
    if (inner == NULL) {
        if (PyErr_Occurred())
            return NULL;
        Py_RETURN_NONE;
    }
    if (allocate(a, &shell) < 0) {
        Py_DECREF(inner);
        return NULL;
    }
    Py_INCREF(id);
    /* Other code may have run during an allocation. */
    const int done = is_way_open(a, way, now) ? put_record(a, inner, now, &shell) : 0;
    PyObject *result = done > 0 ? told(way, queue, id, &shell) : NULL;
    if (!done)
        result = owned(Py_None);
    Py_DECREF(id);
    Py_DECREF(inner);
    Py_XDECREF(given(&shell, done)); /* it releases the rest */
    return result;
}
