/* Putting one record: what MessageStore.put_message of storage/store.py does while this process holds
 * on to the gate; and what put_batch has in common with it. Nobody else is let in meanwhile, and
 * nothing of Python's runs, so that neither the gate's turn is taken nor a signal comes between.
 */
#include "appending.h"
#include <sys/stat.h>
#include <time.h>

static PyObject *holding_name, *heard_name;

const char guard_doc[] = "guard(gate, locked, clock, afterwards, exclusive)\n\n"
                         "Have put work: the gate, whether its turns are taken, a clock or None, and"
                         " what to call with the topic if somebody waits for the gate or a message.";
PyObject *guard(PyObject *self, PyObject *args)
{
    Appending *a = (Appending *)self;
    PyObject *gate, *locked, *clock, *afterwards;
    if (a->gate != NULL || !PyArg_ParseTuple(args, "OOOOp", &gate, &locked, &clock, &afterwards,
                                             &a->exclusive)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, "it is guarded");
        return NULL;
    }
    a->gate = owned(gate);
    a->locked = owned(locked);
    a->clock = clock == Py_None ? NULL : owned(clock);
    a->afterwards = owned(afterwards);
    Py_RETURN_NONE;
}

static int is_true(PyObject *found, int otherwise)
{
    int value = found == NULL ? otherwise : PyObject_IsTrue(found);
    Py_XDECREF(found);
    PyErr_Clear();
    return value;
}

int gate_is_ours(Appending *a)
{
    if (a->gate == NULL || !a->has_words) /* the store may have been closed meanwhile */
        return 0;
    if (is_true(PyObject_CallNoArgs(a->locked), 1)
        || !is_true(PyObject_GetAttr(a->gate, holding_name), 0))
        return 0;
    if (a->exclusive)
        return 1;
    PyObject *number = PyObject_GetAttr(a->gate, heard_name);
    int same = number != NULL && number_of(number, &a->heard) == 0
               && a->heard == ((volatile int64_t *)a->words.buf)[GATE_WANTED];
    Py_XDECREF(number);
    PyErr_Clear();
    return same;
}

int is_anybody_waiting(Appending *a)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!a->has_words)
        return 0;
    return memchr((char *)a->words.buf + WAITER_FLAGS, 1, MAX_WAITERS) != NULL
           || (!a->exclusive && a->heard != ((volatile int64_t *)a->words.buf)[GATE_WANTED]);
}

int call_afterwards(Appending *a, PyObject *topic)
{
    if (a->afterwards == NULL)
        return 0;
    PyObject *afterwards = owned(a->afterwards); /* which another thread's end() lets go of */
    PyObject *called = PyObject_CallFunctionObjArgs(afterwards, topic, NULL);
    Py_DECREF(afterwards);
    Py_XDECREF(called);
    return called == NULL ? -1 : 0;
}

int time_of(Appending *a, int64_t *now)
{
    struct timespec time;
    *now = -1;
    if (a->clock == NULL) {
        clock_gettime(CLOCK_REALTIME, &time);
        *now = (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
        return 0;
    }
    PyObject *clock = owned(a->clock), *number = PyObject_CallNoArgs(clock);
    Py_DECREF(clock);
    if (number == NULL)
        return -1;
    number_of(number, now);
    Py_DECREF(number);
    return 0;
}

int is_log_there(Appending *a, int64_t now)
{
    struct stat found;
    if (now == a->now)
        return 1;
    if (!a->in_run || fstat(a->log_fd, &found) < 0 || !found.st_nlink)
        return 0;
    a->now = now;
    return 1;
}

const char put_doc[] = "put(message)\n\n"
                      "What MessageStore.put_message does while this process holds on to the gate"
                      " and nothing has to be learned; None: nothing is done.";
PyObject *put(PyObject *self, PyObject *message)
{
    Appending *a = (Appending *)self;
    Shell shell;
    int64_t now;
    if (a->gate == NULL)
        Py_RETURN_NONE;
    if (time_of(a, &now) < 0)
        return NULL;
    if (!is_log_there(a, now))
        Py_RETURN_NONE;
    if (allocate(a, &shell) < 0)
        return NULL;
    int done = gate_is_ours(a) ? append_record(a, message, now, NULL, &shell, 1) : 0;
    if (done > 0 && is_anybody_waiting(a)
        && call_afterwards(a, PyTuple_GetItem(message, TOPIC)) < 0)
        done = -1;
    return given(&shell, done);
}

int prepare_put(void)
{
    holding_name = PyUnicode_InternFromString("holding");
    heard_name = PyUnicode_InternFromString("heard");
    return holding_name && heard_name ? 0 : -1;
}
