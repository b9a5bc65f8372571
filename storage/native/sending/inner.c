/* The stored form of a message that a producer sends: a MessageInner. The reference is
 * MessageBuilder of broker/send; a test compares both.
 */
#include "plain.h"

enum { INNER_FIELDS = 15 };
static PyObject *zero, *minus_one;

/* The id and the parts of KEYS, as split_keys of storage/format/message.py divides them. */
static PyObject *keys_of(PyObject *unique_id, const struct text *keys)
{
    Py_ssize_t parts = 0;
    if (keys->size && !memchr(keys->at, ' ', (size_t)keys->size))
        return PyTuple_Pack(2, unique_id, keys->object);
    const char *at = keys->size ? keys->at : "", *const end = at + keys->size;
    for (const char *c = at; c < end; c++)
        parts += *c != ' ' && (c == at || c[-1] == ' ');
    PyObject *found = PyTuple_New(1 + parts);
    if (found == NULL)
        return NULL;
    Py_INCREF(unique_id);
    PyTuple_SetItem(found, 0, unique_id);
    for (Py_ssize_t number = 1; number <= parts; number++) {
        while (*at == ' ')
            at++;
        const char *stop = memchr(at, ' ', end - at);
        if (stop == NULL)
            stop = end;
        PyObject *part = PyUnicode_DecodeUTF8(at, stop - at, "strict");
        if (part == NULL || PyTuple_SetItem(found, number, part) < 0) {
            Py_DECREF(found);
            return NULL;
        }
        at = stop;
    }
    return found;
}

/* Properties as they are stored: the message's own, an id if it has none, the broker's. NULL
 * without an error if that is too long. */
static PyObject *stored_properties(const struct plain *found, PyObject *given_id, const char *after,
                                   Py_ssize_t after_size)
{
    Py_ssize_t size = found->size, id_size = 0;
    const char *id = NULL;
    if (given_id != NULL) {
        if ((id = plain_text(given_id, &id_size)) == NULL)
            return NULL;
        size += (size > 0) + UNIQ_KEY_SIZE + id_size;
    }
    if (after_size)
        size += (size > 0) + after_size;
    if (size > LONGEST_PROPERTIES)
        return NULL;
    PyObject *encoded = PyBytes_FromStringAndSize(NULL, size);
    if (encoded == NULL)
        return NULL;
    unsigned char *const first = (unsigned char *)PyBytes_AsString(encoded);
    unsigned char *at = write_properties(found, first);
    if (id != NULL) {
        if (at != first)
            *at++ = 2;
        memcpy(at, UNIQ_KEY, UNIQ_KEY_SIZE);
        memcpy(at + UNIQ_KEY_SIZE, id, id_size);
        at += UNIQ_KEY_SIZE + id_size;
    }
    if (after_size) {
        if (at != first)
            *at++ = 2;
        memcpy(at, after, after_size);
    }
    return encoded;
}

/* The common fields of all messages of one send: arguments of the function below. */
struct shared {
    PyObject *topic, *queue_id;
    const char *after;
    Py_ssize_t after_size, largest;
    PyObject *origin[5]; /* born timestamp, born host, store host, sysFlag, reconsume times */
};
static int shared_of(PyObject *const *arguments, struct shared *shared)
{
    shared->topic = arguments[0];
    shared->queue_id = arguments[1];
    char *after;
    if (PyBytes_AsStringAndSize(arguments[2], &after, &shared->after_size) < 0)
        return -1;
    shared->after = after;
    shared->largest = PyLong_AsSsize_t(arguments[3]);
    if (shared->largest == -1 && PyErr_Occurred())
        return -1;
    if (!PyTuple_Check(arguments[4]) || PyTuple_Size(arguments[4]) != 5) {
        PyErr_SetString(PyExc_TypeError, "an Origin is required");
        return -1;
    }
    for (int number = 0; number < 5; number++)
        shared->origin[number] = PyTuple_GetItem(arguments[4], number);
    if (inner_type == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "bind_inner comes first");
        return -1;
    }
    return 0;
}

static void set(PyObject *inner, int field, PyObject *value)
{
    Py_INCREF(value);
    PyTuple_SetItem(inner, field, value);
}

/* A MessageInner of a plain message, and its id (borrowed); NULL without an error if it is not
 * plain after all. */
static PyObject *inner_of(PyObject *message, PyObject *given_id, const struct shared *shared,
                          PyObject **id)
{
    struct plain found;
    if (!is_plain(message, &found) || found.body_size > shared->largest)
        return NULL;
    if (found.id != NULL && found.unique_id == NULL
        && (found.unique_id = id_of((Late *)found.properties)) == NULL)
        return NULL;
    *id = found.unique_id != NULL ? found.unique_id : given_id;
    if (*id == NULL)
        return NULL;
    PyObject *properties = stored_properties(&found, found.unique_id != NULL ? NULL : given_id,
                                             shared->after, shared->after_size);
    if (properties == NULL)
        return NULL;
    PyObject *keys = keys_of(*id, &found.keys);
    allocfunc new_inner = (allocfunc)PyType_GetSlot(inner_type, Py_tp_alloc);
    PyObject *inner = keys == NULL ? NULL : new_inner(inner_type, INNER_FIELDS);
    if (inner == NULL) {
        Py_DECREF(properties);
        Py_XDECREF(keys);
        return NULL;
    }
    set(inner, 0, shared->topic);
    set(inner, 1, shared->queue_id);
    set(inner, 2, slot_of(message, SENT_BODY));
    PyTuple_SetItem(inner, 3, properties);
    set(inner, 4, shared->origin[0]);
    set(inner, 5, shared->origin[1]);
    set(inner, 6, shared->origin[2]);
    set(inner, 7, slot_of(message, SENT_FLAG));
    set(inner, 8, shared->origin[3]);
    set(inner, 9, shared->origin[4]);
    set(inner, 10, zero);
    set(inner, 11, found.tags.object == NULL ? Py_None : found.tags.object);
    PyTuple_SetItem(inner, 12, keys);
    set(inner, 13, zero);
    set(inner, 14, minus_one);
    PyObject_GC_UnTrack(keys); /* they are in no cycle, so the collector need not track them */
    PyObject_GC_UnTrack(inner);
    return inner;
}

PyDoc_STRVAR(message_doc,
             "inner_message(topic, queue_id, after, largest_body, origin, message, unique_id)\n\n"
             "The stored form of a plain message, and its id; None for another.\n\n"
             "``unique_id`` is for a message without one; ``after`` are encoded properties that"
             " the broker adds.");
static PyObject *inner_message(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    struct shared shared;
    PyObject *id;
    (void)module;
    if (count != 7) {
        PyErr_SetString(PyExc_TypeError, "inner_message takes 7 arguments");
        return NULL;
    }
    if (shared_of(arguments, &shared) < 0)
        return NULL;
    PyObject *inner = inner_of(arguments[5], arguments[6], &shared, &id);
    if (inner != NULL)
        return Py_BuildValue("NO", inner, id);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

/* See native.h. */
PyObject *inner_of_sent(PyObject *message, PyObject *const *arguments, PyObject **id)
{
    struct shared shared;
    if (Py_TYPE(message) != sent_type || shared_of(arguments, &shared) < 0)
        return NULL;
    PyObject *topic = slot_of(message, SENT_TOPIC);
    if (topic == NULL
        || (topic != shared.topic
            && (!PyUnicode_CheckExact(topic) || PyUnicode_Compare(topic, shared.topic))))
        return NULL;
    return inner_of(message, NULL, &shared, id);
}

PyMethodDef inner_functions[] = {
    {"inner_message", (PyCFunction)(void (*)(void))inner_message, METH_FASTCALL, message_doc},
    {NULL, NULL, 0, NULL},
};

int prepare_inner(void)
{
    zero = PyLong_FromLong(0);
    minus_one = PyLong_FromLong(-1);
    return zero && minus_one ? 0 : -1;
}
