/* A plain message that a producer sends, or a batch of them, from the Message to its result, in one
 * step: what Sender.send and send_batch of broker/send/send.py do where they have a template
 * (storage/append/send_template.py). All other messages are left to them; a test compares both.
 */
#include "appending.h"

/* The indexes of a SendTemplate. The first five are the first of inner_message's arguments, except
 * the queue id, which is separate. */
enum {
    WAY_TOPIC, WAY_QUEUES, WAY_AFTER, WAY_LARGEST, WAY_ORIGIN, WAY_CHANGES, WAY_UNTIL, WAY_HOST,
    WAY_RESULT, WAY_STATUS, WAY_OPTIONS, WAY_AFTER_ITEMS, WAY_FIELDS
};
/* The parts of an encoded batch (encode_sent): those before IDS are put_batch's arguments. */
enum { IDS = 4, BATCH_PARTS = 5 };
enum { RESULT_FIELDS = 6 };

/* Whether the template is valid now; 0 without an error if not. */
static int is_way_open(Appending *a, PyObject *way, int64_t now)
{
    int64_t changes, until;
    return a->has_words && number_of(PyTuple_GetItem(way, WAY_CHANGES), &changes) == 0
           && number_of(PyTuple_GetItem(way, WAY_UNTIL), &until) == 0 && now <= until
           && ((volatile int64_t *)a->words.buf)[CONFIGS] == changes;
}

/* The offsetMsgIds of a column of log offsets; NULL, maybe without an error, for no host. */
static PyObject *offset_ids(PyObject *host, PyObject *offsets)
{
    Py_buffer view;
    Py_ssize_t size;
    const char *begun = text_of(host, &size);
    if (begun == NULL || PyObject_GetBuffer(offsets, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *ids = joined_offset_ids(begun, size, view.buf, view.len / 8);
    PyBuffer_Release(&view);
    return ids;
}

/* The offsetMsgId of one offset; NULL, maybe without an error, for anything else. */
static PyObject *offset_id(PyObject *host, PyObject *number)
{
    int64_t offset;
    Py_ssize_t size;
    const char *begun = text_of(host, &size);
    if (begun == NULL || number_of(number, &offset) < 0)
        return NULL;
    return joined_offset_ids(begun, size, &offset, 1);
}

/* The SendResult of a put, with ids that it takes; NULL with an error set. */
static PyObject *sent_result(PyObject *way, PyObject *queue, PyObject *put, PyObject *id,
                             PyObject *offset_id)
{
    PyTypeObject *type = (PyTypeObject *)PyTuple_GetItem(way, WAY_RESULT);
    PyObject *first = PySequence_GetItem(PyTuple_GetItem(put, 2), 0);
    PyObject *result = first == NULL || offset_id == NULL || id == NULL
                           ? NULL
                           : PyType_GenericAlloc(type, RESULT_FIELDS);
    if (result == NULL) {
        Py_XDECREF(first);
        Py_XDECREF(id);
        Py_XDECREF(offset_id);
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "this is no template");
        return NULL;
    }
    PyTuple_SetItem(result, 0, owned(PyTuple_GetItem(way, WAY_STATUS)));
    PyTuple_SetItem(result, 1, owned(queue));
    PyTuple_SetItem(result, 2, first);
    PyTuple_SetItem(result, 3, id);
    PyTuple_SetItem(result, 4, offset_id);
    PyTuple_SetItem(result, 5, owned(PyTuple_GetItem(put, 3)));
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

/* The queue that a put by this template goes to, borrowed, and the time; NULL, maybe with an error,
 * if it is left to the general path. */
static PyObject *queue_by_way(Appending *a, PyObject *way, PyObject *queue_id, int64_t *now)
{
    PyObject *queue;
    if (!PyTuple_Check(way) || PyTuple_Size(way) != WAY_FIELDS
        || !PyType_Check(PyTuple_GetItem(way, WAY_RESULT))
        || !PyType_IsSubtype((PyTypeObject *)PyTuple_GetItem(way, WAY_RESULT), &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "a SendTemplate is required");
        return NULL;
    }
    if (a->write_lock == NULL || a->syncs || (queue = queue_of(way, queue_id)) == NULL
        || time_of(a, now) < 0 || !is_way_open(a, way, *now) || !is_log_there(a, *now))
        return NULL;
    return queue;
}

static PyObject *error_or_none(void)
{
    return PyErr_Occurred() ? NULL : owned(Py_None);
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
    PyObject *id, *const way = count == 3 ? args[2] : NULL;
    if (!are_arguments(count, 3))
        return NULL;
    PyObject *const queue = queue_by_way(a, way, args[1], &now);
    if (queue == NULL)
        return error_or_none();
    PyObject *const given_parts[] = {PyTuple_GetItem(way, WAY_TOPIC), args[1],
                                     PyTuple_GetItem(way, WAY_AFTER),
                                     PyTuple_GetItem(way, WAY_LARGEST),
                                     PyTuple_GetItem(way, WAY_ORIGIN)};
    PyObject *inner = inner_of_sent(args[0], given_parts, &id);
    if (inner == NULL)
        return error_or_none();
    if (allocate(a, &shell) < 0) {
        Py_DECREF(inner);
        return NULL;
    }
    Py_INCREF(id);
    /* Other code may have run during an allocation. */
    const int done = is_way_open(a, way, now) ? put_record(a, inner, now, &shell) : 0;
    PyObject *result = NULL;
    if (done > 0)
        result = sent_result(way, queue, shell.found, owned(id),
                      offset_id(PyTuple_GetItem(way, WAY_HOST),
                                PyTuple_GetItem(PyTuple_GetItem(shell.found, 1), 0)));
    else if (!done)
        result = owned(Py_None);
    Py_DECREF(id);
    Py_DECREF(inner);
    Py_XDECREF(given(&shell, done)); /* it releases the rest */
    return result;
}

const char put_sent_batch_doc[] =
    "put_sent_batch(messages, queue_id, way)\n\n"
    "Put a list or tuple of plain messages of one topic that have their ids, and give their"
    " SendResult. If they cannot be put at once, it gives what encode_sent gives, or None;"
    " nothing is done then.";
PyObject *put_sent_batch(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Appending *a = (Appending *)self;
    int64_t now;
    PyObject *const way = count == 3 ? args[2] : NULL;
    if (!are_arguments(count, 3))
        return NULL;
    PyObject *const queue = queue_by_way(a, way, args[1], &now);
    if (queue == NULL)
        return error_or_none();
    PyObject *encoded = encode_sent_batch(
        PyTuple_GetItem(way, WAY_TOPIC), args[1], PyTuple_GetItem(way, WAY_AFTER_ITEMS),
        PyTuple_GetItem(way, WAY_LARGEST), PyTuple_GetItem(way, WAY_ORIGIN), args[0], Py_None);
    if (encoded == NULL || encoded == Py_None)
        return encoded;
    if (!is_way_open(a, way, now)) { /* other code may have run during an allocation */
        Py_DECREF(encoded);
        Py_RETURN_NONE;
    }
    PyObject *parts[BATCH_PARTS];
    for (Py_ssize_t i = 0; i < BATCH_PARTS; i++)
        parts[i] = PyTuple_GetItem(encoded, i);
    PyObject *put = put_batch(self, parts, IDS), *result = encoded;
    if (put == NULL)
        result = NULL;
    else if (Py_TYPE(put) == (PyTypeObject *)a->result_type)
        result = sent_result(way, queue, put, owned(parts[IDS]),
                      offset_ids(PyTuple_GetItem(way, WAY_HOST), PyTuple_GetItem(put, 1)));
    Py_XDECREF(put);
    if (result != encoded)
        Py_DECREF(encoded);
    return result;
}
