/* Calling a listener for message after message, as long as it only succeeds: the loop of a push
 * consumer with a backlog. The pure form is ListenerLoop._run of client/listener/listener_loop.py; a
 * test holds both against each other.
 */
#include "pulled.h"
#include <time.h>

enum { QUEUE, LEVEL, ACK_INDEX, SLOTS };
static const char *const NAMES[SLOTS] = {
    "message_queue", "delay_level_when_next_consume", "ack_index",
};

/* The bound parts of calls; owned. */
static PyObject *context_type, *success, *ack_all;
static PyObject *zero, *dropped_name, *stopped_name, *adding_name;
static Py_ssize_t places[SLOTS];

static PyObject *slot_of(PyObject *context, int slot)
{
    return *(PyObject **)((char *)context + places[slot]);
}

PyDoc_STRVAR(bind_doc,
             "bind_calls(context_class, success, ack_all)\n\n"
             "Bind the context classes and the status of success; before call_quickly.");
static PyObject *bind(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    (void)module;
    if (!are_arguments(given, 3))
        return NULL;
    if (find_places(args[0], NAMES, SLOTS, places) < 0)
        return NULL;
    PyObject **owned[] = {&context_type, &success, &ack_all};
    for (int i = 0; i < 3; i++) {
        PyObject *before = *owned[i];
        Py_INCREF(args[i]);
        *owned[i] = args[i];
        Py_XDECREF(before);
    }
    Py_RETURN_NONE;
}

/* Whether a flag of an object is set; -1 with an error set. */
static int is_set(PyObject *object, PyObject *name)
{
    PyObject *flag = PyObject_GetAttr(object, name);
    int set = flag == Py_True ? 1 : flag == Py_False ? 0 : flag ? PyObject_IsTrue(flag) : -1;
    Py_XDECREF(flag);
    return set;
}

/* Whether it is ``until`` or later, in seconds since 1970; -1 with an error set. */
static int is_over(PyObject *seconds, double until)
{
    struct timespec now;
    if (seconds == Py_None && clock_gettime(CLOCK_REALTIME, &now) == 0)
        return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec >= until;
    PyObject *asked = PyObject_CallNoArgs(seconds);
    double value = asked ? PyFloat_AsDouble(asked) : -1;
    Py_XDECREF(asked);
    return PyErr_Occurred() ? -1 : value >= until;
}

/* A context for the next call: the last one again (owned), if it was not kept or changed. */
static int renew(PyObject **context, PyObject *queue)
{
    PyObject *last = *context;
    if (last != NULL && Py_REFCNT(last) == 1 && slot_of(last, QUEUE) == queue
        && slot_of(last, LEVEL) == zero && slot_of(last, ACK_INDEX) == ack_all)
        return 0;
    Py_XDECREF(last);
    *context = PyObject_CallFunctionObjArgs(context_type, queue, NULL);
    return *context ? 0 : -1;
}

/* The raised error, with its traceback; a new reference. */
static PyObject *raised(void)
{
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback != NULL && PyException_SetTraceback(error, traceback) < 0)
        PyErr_Clear();
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return error;
}

/* Properties for messages that are rows of a table (storage.read.message_rows); -1 with an error
 * set. */
static int add_to_rows(PyObject *rows, PyObject *items)
{
    PyObject *done = PyObject_CallMethodObjArgs(rows, adding_name, items, NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

PyDoc_STRVAR(call_quickly_doc,
             "call_quickly(requests, listen, queue, items, until, seconds, process_queue, pool,\n"
             "             finished)\n\n"
             "See ListenerLoop of client.listener.listener_loop; ``seconds`` None: the system's.");
static PyObject *call_quickly(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    (void)module;
    if (!are_arguments(given, 9))
        return NULL;
    PyObject *requests = args[0], *listen = args[1], *queue = args[2], *items = args[3];
    PyObject *seconds = args[5], *process_queue = args[6], *pool = args[7], *finished = args[8];
    double until = PyFloat_AsDouble(args[4]);
    if (PyErr_Occurred())
        return NULL;
    if (context_type == NULL || !PyIter_Check(requests) || !PyList_Check(finished)
        || !PyBytes_Check(items)) {
        PyErr_SetString(PyExc_TypeError, "bound classes, an iterator, bytes and a list are wanted");
        return NULL;
    }
    Added added = {items, NULL, NULL};
    PyObject *context = NULL, *messages, *end = NULL;
    while ((messages = PyIter_Next(requests)) != NULL) {
        const int has_them = PyTuple_Check(messages) ? add_properties(messages, &added)
                                                     : add_to_rows(messages, items);
        if (has_them < 0 || renew(&context, queue) < 0)
            break;
        PyObject *status = PyObject_CallFunctionObjArgs(listen, messages, context, NULL);
        int quick = status == success && slot_of(context, ACK_INDEX) == ack_all;
        if (quick) {
            int ends = is_over(seconds, until);
            ends = ends ? ends : is_set(process_queue, dropped_name);
            ends = ends ? ends : is_set(pool, stopped_name);
            quick = !ends;
            if (ends < 0) {
                Py_DECREF(status);
                break;
            }
        }
        if (!quick) {
            PyObject *error = status ? NULL : raised();
            end = PyTuple_Pack(4, messages, context, status ? status : Py_None,
                               error ? error : Py_None);
            Py_XDECREF(status);
            Py_XDECREF(error);
            break;
        }
        Py_DECREF(status);
        if (PyList_Append(finished, messages) < 0)
            break;
        Py_DECREF(messages);
    }
    Py_XDECREF(messages);
    Py_XDECREF(context);
    let_go(&added);
    if (end == NULL && !PyErr_Occurred())
        Py_RETURN_NONE;
    return end;
}

PyMethodDef call_functions[] = {
    {"bind_calls", (PyCFunction)(void (*)(void))bind, METH_FASTCALL, bind_doc},
    {"call_quickly", (PyCFunction)(void (*)(void))call_quickly, METH_FASTCALL, call_quickly_doc},
    {NULL, NULL, 0, NULL},
};

int prepare_calls(void)
{
    zero = PyLong_FromLong(0);
    dropped_name = PyUnicode_InternFromString("dropped");
    stopped_name = PyUnicode_InternFromString("stopped");
    adding_name = PyUnicode_InternFromString("add_property_bytes");
    return zero && dropped_name && stopped_name && adding_name ? 0 : -1;
}
