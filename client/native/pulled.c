/* A client's work on all messages of a pull: adding properties to them, and checking whether they
 * are one run of ascending offsets. The pure forms are add_property_bytes of
 * client/consumer/pull_result.py and run_of of client/listener/process_queue.py; a test holds
 * each against its other one.
 */
#include "pulled.h"
#include "structmember.h"

enum { ADDED, QUEUE_OFFSET, STORED_BODY, STORED, SLOTS };
static const char *const NAMES[SLOTS] = {
    "added_property_bytes", "queue_offset", "stored_body", "_stored",
};

static PyTypeObject *message_type; /* once it is bound; owned */
static Py_ssize_t places[SLOTS];
static PyObject *divider;

int find_places(PyObject *type, const char *const *names, int count, Py_ssize_t *places_found)
{
    Py_ssize_t found[MOST_SLOTS];
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "a class is wanted");
        return -1;
    }
    for (int slot = 0; slot < count; slot++) {
        PyTypeObject *of = (PyTypeObject *)type;
        found[slot] = 0;
        while (!found[slot] && of != NULL && PyType_GetFlags(of) & Py_TPFLAGS_HEAPTYPE) {
            PyMemberDef *member = PyType_GetSlot(of, Py_tp_members);
            for (; member != NULL && member->name != NULL; member++)
                if (member->type == T_OBJECT_EX && !strcmp(member->name, names[slot]))
                    found[slot] = member->offset;
            of = PyType_GetSlot(of, Py_tp_base);
        }
        if (!found[slot]) {
            PyErr_Format(PyExc_TypeError, "the class has no slot %s", names[slot]);
            return -1;
        }
    }
    memcpy(places_found, found, (size_t)count * sizeof found[0]);
    return 0;
}

PyDoc_STRVAR(bind_doc,
             "bind_pulled(message_class)\n\n"
             "Bind the class of messages; before add_property_bytes, run_of and call_quickly.");
static PyObject *bind(PyObject *module, PyObject *type)
{
    (void)module;
    if (find_places(type, NAMES, SLOTS, places) < 0)
        return NULL;
    Py_INCREF(type);
    Py_XDECREF((PyObject *)message_type);
    message_type = (PyTypeObject *)type;
    Py_RETURN_NONE;
}

/* How many messages a list or tuple has, -1 with an error set for anything else. */
static Py_ssize_t count_of(PyObject *messages)
{
    if (PyList_Check(messages))
        return PyList_Size(messages);
    if (PyTuple_Check(messages))
        return PyTuple_Size(messages);
    PyErr_SetString(PyExc_TypeError, "a list or a tuple of messages is wanted");
    return -1;
}
/* One of them, borrowed; NULL with an error set if it is none. */
static PyObject *message_at(PyObject *messages, Py_ssize_t number)
{
    PyObject *message = PyList_Check(messages) ? PyList_GetItem(messages, number)
                                               : PyTuple_GetItem(messages, number);
    if (message != NULL && (message_type == NULL || !PyObject_TypeCheck(message, message_type))) {
        PyErr_SetString(PyExc_TypeError, "a message of the bound class is wanted");
        return NULL;
    }
    return message;
}
/* The value of a slot, borrowed; NULL with an error set if it is empty. */
static PyObject **slot_at(PyObject *message, int slot)
{
    PyObject **place = (PyObject **)((char *)message + places[slot]);
    if (*place == NULL)
        PyErr_SetString(PyExc_AttributeError, NAMES[slot]);
    return *place ? place : NULL;
}

/* The queue offset of a message, which may still lie in the head of its record only (see
 * storage/native/reading/messages.c); -1 with an error set. */
static long long queue_offset_of(PyObject *message)
{
    PyObject *offset = *(PyObject **)((char *)message + places[QUEUE_OFFSET]);
    PyObject *stored = *(PyObject **)((char *)message + places[STORED]);
    if (offset == NULL && stored != NULL && PyBytes_Check(stored) && PyBytes_Size(stored) >= HEAD)
        return long_at((const unsigned char *)PyBytes_AsString(stored) + QUEUE_OFFSET_AT);
    PyObject **place = slot_at(message, QUEUE_OFFSET);
    return place ? PyLong_AsLongLong(*place) : -1;
}

/* The sum of two properties; a new reference. */
static PyObject *sum_of(PyObject *own, PyObject *items)
{
    if (PyBytes_Check(own) && PyBytes_Size(own) == 0) {
        Py_INCREF(items);
        return items;
    }
    PyObject *start = PySequence_Concat(own, divider);
    PyObject *sum = start ? PySequence_Concat(start, items) : NULL;
    Py_XDECREF(start);
    return sum;
}

int add_properties(PyObject *messages, Added *added)
{
    Py_ssize_t count = count_of(messages);
    for (Py_ssize_t number = 0; number < count; number++) {
        PyObject *message = message_at(messages, number);
        PyObject **place = message ? slot_at(message, ADDED) : NULL;
        if (place == NULL)
            return -1;
        PyObject *own = *place;
        if (own != added->known) {
            PyObject *both = sum_of(own, added->items);
            if (both == NULL)
                return -1;
            let_go(added);
            Py_INCREF(own);
            added->known = own;
            added->both = both;
        }
        Py_INCREF(added->both);
        *place = added->both;
        Py_DECREF(own);
    }
    return count < 0 ? -1 : 0;
}

void let_go(Added *added)
{
    Py_CLEAR(added->known);
    Py_CLEAR(added->both);
}

PyDoc_STRVAR(add_property_bytes_doc,
             "add_property_bytes(messages, items)\n\n"
             "See client.consumer.pull_result.add_property_bytes.");
static PyObject *add_property_bytes(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    (void)module;
    if (!are_arguments(given, 2))
        return NULL;
    if (!PyBytes_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "properties are bytes, as they are stored");
        return NULL;
    }
    Added added = {args[1], NULL, NULL};
    int failed = add_properties(args[0], &added) < 0;
    let_go(&added);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(run_of_doc,
             "run_of(messages, last)\n\n"
             "The last queue offset of messages and the bytes of their stored bodies, if offsets\n"
             "ascend from ``last`` + 1 or more, else None. See client.listener.process_queue.");
static PyObject *run_of(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    (void)module;
    if (!are_arguments(given, 2))
        return NULL;
    long long last = PyLong_AsLongLong(args[1]), size = 0;
    if (PyErr_Occurred())
        return NULL;
    Py_ssize_t count = count_of(args[0]);
    for (Py_ssize_t number = 0; number < count; number++) {
        PyObject *message = message_at(args[0], number);
        long long value = message ? queue_offset_of(message) : -1;
        PyObject **body = PyErr_Occurred() ? NULL : slot_at(message, STORED_BODY);
        if (body == NULL)
            return NULL;
        Py_ssize_t length = PyBytes_Check(*body) ? PyBytes_Size(*body) : PyObject_Size(*body);
        if (PyErr_Occurred())
            return NULL;
        if (value <= last)
            Py_RETURN_NONE;
        last = value;
        size += length;
    }
    return count < 0 ? NULL : Py_BuildValue("LL", last, size);
}

PyMethodDef pulled_functions[] = {
    {"bind_pulled", bind, METH_O, bind_doc},
    {"add_property_bytes", (PyCFunction)(void (*)(void))add_property_bytes, METH_FASTCALL,
     add_property_bytes_doc},
    {"run_of", (PyCFunction)(void (*)(void))run_of, METH_FASTCALL, run_of_doc},
    {NULL, NULL, 0, NULL},
};

int prepare_pulled(void)
{
    divider = PyBytes_FromStringAndSize("\2", 1);
    return divider ? 0 : -1;
}
