/* Putting one record: what MessageStore.put_message of storage/store.py does while this process
 * keeps the write lock, or takes it for one put (WriteLock.uncontended_after); and what put_batch
 * has in common with it. No other process gets the lock meanwhile, and no Python code runs, so that
 * neither another thread takes thread_mutex nor a signal comes between.
 */
#include "kernel.h"
#include "appending.h"

static PyObject *holding_name, *heard_name, *uncontended_name, *fd_name;

const char guard_doc[] = "guard(write_lock, locked, lock_file, clock, asked, notify, exclusive,"
                         " syncs)\n\n"
                         "Enable put: the write lock, whether its thread_mutex is locked, its"
                         " file, a clock or None, a call for requests of a kept lock, and a call"
                         " with the topic if a process waits for messages. ``syncs``: each put"
                         " takes and releases the lock, and no waiter is woken before its sync.";
PyObject *guard(PyObject *self, PyObject *args)
{
    Appending *a = (Appending *)self;
    PyObject *write_lock, *locked, *lock_file, *clock, *asked, *notify;
    if (a->write_lock != NULL
        || !PyArg_ParseTuple(args, "OOOOOOpp", &write_lock, &locked, &lock_file, &clock, &asked,
                             &notify, &a->exclusive, &a->syncs)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, "guard was called already");
        return NULL;
    }
    a->write_lock = owned(write_lock);
    a->locked = owned(locked);
    a->lock_file = owned(lock_file);
    a->clock = clock == Py_None ? NULL : owned(clock);
    a->asked = owned(asked);
    a->notify = owned(notify);
    Py_RETURN_NONE;
}

static int is_true(PyObject *found, int otherwise)
{
    int value = found == NULL ? otherwise : PyObject_IsTrue(found);
    Py_XDECREF(found);
    PyErr_Clear();
    return value;
}

static int is_asked_for(Appending *a)
{
    return a->heard != ((volatile int64_t *)a->words.buf)[LOCK_WANTED];
}

/* Whether no process has asked for the write lock since WriteLock.heard was set. */
static int is_quiet(Appending *a)
{
    PyObject *number = PyObject_GetAttr(a->write_lock, heard_name);
    int same = number != NULL && number_of(number, &a->heard) == 0 && !is_asked_for(a);
    Py_XDECREF(number);
    PyErr_Clear();
    return same;
}

/* Whether no thread of this process uses the write lock; none can start while no Python code runs.
 * The store may have been closed. */
static int is_our_turn(Appending *a)
{
    return a->write_lock != NULL && a->has_words && !is_true(PyObject_CallNoArgs(a->locked), 1);
}

int lock_is_ours(Appending *a)
{
    return is_our_turn(a) && is_true(PyObject_GetAttr(a->write_lock, holding_name), 0)
           && (a->exclusive || is_quiet(a));
}

static double monotonic(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Locks the write lock's byte, or unlocks it; whether it did. */
static int set_lock(Appending *a, short kind)
{
    int64_t fd;
    PyObject *number = PyObject_GetAttr(a->lock_file, fd_name);
    int done = number != NULL && number_of(number, &fd) == 0
               && lock_byte((int)fd, kind, WRITE_LOCK_BYTE);
    Py_XDECREF(number);
    PyErr_Clear();
    return done;
}

/* Takes the write lock as WriteLock.take does for a lone put, for which WriteLock updates no other
 * field; whether it did. */
static int take_gate(Appending *a)
{
    if (!is_our_turn(a) || a->exclusive || !is_quiet(a))
        return 0;
    PyObject *number = PyObject_GetAttr(a->write_lock, uncontended_name);
    double from = number == NULL ? -1 : PyFloat_AsDouble(number);
    Py_XDECREF(number);
    PyErr_Clear();
    if (from < 0 || monotonic() < from || !set_lock(a, F_WRLCK))
        return 0;
    store_word(a, HOLDER_PID, getpid());
    return 1;
}

/* Releases it, as WriteLock.give_back does. An error that is set stays set. */
static void give_gate_back(Appending *a)
{
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    store_word(a, HOLDER_PID, 0);
    set_lock(a, F_UNLCK);
    if (is_asked_for(a)) /* after a system call: a full barrier */
        wake_next_writer(a->words.buf);
    if (!a->syncs) {
        PyObject *from = PyFloat_FromDouble(monotonic() + QUICK_GAP_US * 1e-6);
        if (from == NULL || PyObject_SetAttr(a->write_lock, uncontended_name, from) < 0)
            PyErr_Clear(); /* the next put is a lone one, too */
        Py_XDECREF(from);
    }
    PyErr_Restore(kind, error, trace);
}

/* -1 with an error set; ``what`` may be released by another thread's end() meanwhile. */
static int call(PyObject *what, PyObject *with)
{
    if (what == NULL)
        return 0;
    Py_INCREF(what);
    PyObject *called = PyObject_CallFunctionObjArgs(what, with, NULL);
    Py_XDECREF(called);
    Py_DECREF(what);
    return called == NULL ? -1 : 0;
}

int give_up_if_wanted(Appending *a)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return a->exclusive || !a->has_words || !is_asked_for(a) ? 0 : call(a->asked, NULL);
}

int is_process_waiting(Appending *a)
{
    return a->has_words && is_waiter_flag_set(a->words.buf);
}

int wake_for(Appending *a, PyObject *topic)
{
    uint64_t wanted;
    if (!a->has_words)
        return 0;
    if (topic_word(topic, &wanted) < 0)
        return -1;
    return wake_waiters(a->words.buf, wanted) ? call(a->notify, topic) : 0;
}

int time_of(Appending *a, int64_t *now)
{
    *now = -1;
    if (a->clock == NULL) {
        *now = clock_ms();
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
    if (fstat(a->log_fd, &found) < 0 || !found.st_nlink)
        return 0;
    a->now = now;
    return 1;
}

int put_record(Appending *a, PyObject *message, int64_t now, Shell *shell)
{
    int done = 0;
    if (lock_is_ours(a)) {
        done = append_record(a, message, now, NULL, shell, 1);
        if (done > 0 && give_up_if_wanted(a) < 0)
            done = -1;
    } else if (take_gate(a)) {
        done = append_record(a, message, now, NULL, shell, 1);
        give_gate_back(a);
    }
    if (done > 0 && !a->syncs && is_process_waiting(a)
        && wake_for(a, PyTuple_GetItem(message, TOPIC)) < 0)
        done = -1;
    return done;
}

const char put_doc[] = "put(message)\n\n"
                       "What MessageStore.put_message does while this process keeps the write"
                       " lock, or no process has used it for a while, and nothing has to be"
                       " registered; None: nothing is done. OSError: a part of it may be written.";
PyObject *put(PyObject *self, PyObject *message)
{
    Appending *a = (Appending *)self;
    Shell shell;
    int64_t now;
    if (a->write_lock == NULL)
        Py_RETURN_NONE;
    if (time_of(a, &now) < 0)
        return NULL;
    if (!is_log_there(a, now))
        Py_RETURN_NONE;
    if (allocate(a, &shell) < 0)
        return NULL;
    return given(&shell, put_record(a, message, now, &shell));
}

int prepare_put(void)
{
    holding_name = PyUnicode_InternFromString("holding");
    heard_name = PyUnicode_InternFromString("heard");
    uncontended_name = PyUnicode_InternFromString("uncontended_after");
    fd_name = PyUnicode_InternFromString("fd");
    return holding_name && heard_name && uncontended_name && fd_name ? 0 : -1;
}
