/* Waking waiters, and waiting: see storage/coordination/wakeup.py. A waker that is a word of the
 * shared state takes one system call on either side, and no file of its own.
 */
#include "kernel.h"
#include "appending.h"

/* The half of the word at an offset that counts; sleepers sleep on this half. */
static uint32_t *counter_at(unsigned char *shared, int64_t at)
{
    uint32_t *word = (uint32_t *)(shared + at);
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? word + 1 : word;
}

static uint32_t *waker_of(unsigned char *shared, int64_t slot)
{
    return counter_at(shared, WAITER_WAKERS + slot * WORD);
}

/* Increments a counter and wakes as many sleepers; how many there were. */
static long count_and_wake(uint32_t *counter, int most)
{
    __atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST);
    return wake_sleepers(counter, most);
}

static void wake_word(unsigned char *shared, int64_t slot)
{
    count_and_wake(waker_of(shared, slot), INT_MAX);
}

int wake_next_writer(unsigned char *shared)
{
    return count_and_wake(counter_at(shared, LINE_ONCE * WORD), 1) > 0
           || count_and_wake(counter_at(shared, LINE_INTERRUPTED * WORD), 1) > 0
           || count_and_wake(counter_at(shared, LINE_TURNS * WORD), 1) > 0;
}

int is_waiter_flag_set(const unsigned char *shared)
{
    for (int i = 0; i < MAX_WAITERS; i += WORD) {
        uint64_t eight;
        memcpy(&eight, shared + WAITER_FLAGS + i, sizeof eight);
        if (eight)
            return 1;
    }
    return 0;
}

int wake_waiters(unsigned char *shared, uint64_t wanted)
{
    int by_socket = 0;
    for (int slot = 0; slot < MAX_WAITERS; slot++) {
        unsigned char *flag = shared + WAITER_FLAGS + slot;
        const unsigned char how = __atomic_load_n(flag, __ATOMIC_ACQUIRE);
        if (!how || !(((volatile uint64_t *)(shared + WAITER_TOPICS))[slot] & wanted))
            continue;
        if (how == BY_WORD) {
            __atomic_store_n(flag, 0, __ATOMIC_SEQ_CST);
            wake_word(shared, slot);
        } else {
            by_socket = 1;
        }
    }
    return by_socket;
}

int topic_word(PyObject *topic, uint64_t *word)
{
    Py_ssize_t length;
    const char *text = text_of(topic, &length);
    if (text == NULL) {
        PyErr_SetString(PyExc_TypeError, "a topic is a str");
        return -1;
    }
    *word = (uint64_t)1 << crc32_of((const unsigned char *)text, (size_t)length) % TOPIC_BITS;
    return 0;
}

/* The shared state of a call's arguments, held by ``view``, and the numbers after it; NULL with an
 * error set. */
static unsigned char *state_of(PyObject *const *args, Py_ssize_t count, Py_ssize_t wanted,
                              Py_buffer *view, int64_t *numbers)
{
    if (!are_arguments(count, wanted))
        return NULL;
    for (Py_ssize_t i = 1; i < wanted; i++)
        if (number_of(args[i], &numbers[i - 1]) < 0) {
            PyErr_SetString(PyExc_TypeError, "numbers are required after the shared state");
            return NULL;
        }
    if (PyObject_GetBuffer(args[0], view, PyBUF_WRITABLE) < 0)
        return NULL;
    if (view->len >= SLOTS && (uintptr_t)view->buf % WORD == 0)
        return view->buf;
    PyBuffer_Release(view);
    PyErr_SetString(PyExc_ValueError, "this is no shared state");
    return NULL;
}

/* The same where the first number is a waiter's slot. */
static unsigned char *state_of_slot(PyObject *const *args, Py_ssize_t count, Py_ssize_t wanted,
                                   Py_buffer *view, int64_t *numbers)
{
    unsigned char *shared = state_of(args, count, wanted, view, numbers);
    if (shared == NULL || (numbers[0] >= 0 && numbers[0] < MAX_WAITERS))
        return shared;
    PyBuffer_Release(view);
    PyErr_SetString(PyExc_ValueError, "this is no slot of a waiter");
    return NULL;
}

PyDoc_STRVAR(notify_doc, "notify(map, wanted)\n\n"
                       "Wake the words of all waiters for one of the topics, and clear their"
                       " flags; whether waiters with sockets wait for one, too.");
static PyObject *notify(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer view;
    int64_t wanted;
    unsigned char *shared = state_of(args, count, 2, &view, &wanted);
    (void)module;
    if (shared == NULL)
        return NULL;
    const int by_socket = wake_waiters(shared, (uint64_t)wanted);
    PyBuffer_Release(&view);
    return PyBool_FromLong(by_socket);
}

PyDoc_STRVAR(arm_doc, "arm(map, slot, topics)\n\n"
                      "Wake the slot's word for the topics from now on; gives its value now. A"
                      " full memory barrier.");
static PyObject *arm(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer view;
    int64_t numbers[2];
    unsigned char *shared = state_of_slot(args, count, 3, &view, numbers);
    (void)module;
    if (shared == NULL)
        return NULL;
    const uint32_t seen = __atomic_load_n(waker_of(shared, numbers[0]), __ATOMIC_SEQ_CST);
    ((volatile uint64_t *)(shared + WAITER_TOPICS))[numbers[0]] = (uint64_t)numbers[1];
    __atomic_store_n(shared + WAITER_FLAGS + numbers[0], BY_WORD, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLong(seen);
}

PyDoc_STRVAR(woken_doc, "woken(map, slot, seen, timeout_ms)\n\n"
                       "Sleep until the slot's word differs from ``seen``; whether it does"
                       " before the time is over. A signal ends it, too.");
static PyObject *woken(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer view;
    int64_t numbers[3];
    int found;
    unsigned char *shared = state_of_slot(args, count, 4, &view, numbers);
    (void)module;
    if (shared == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    found = sleep_while(waker_of(shared, numbers[0]), (uint32_t)numbers[1], numbers[2] * 1000);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    return PyErr_CheckSignals() < 0 ? NULL : PyBool_FromLong(found);
}

PyDoc_STRVAR(wake_doc, "wake(map, slot)\n\n"
                       "Wake the slot's word.");
static PyObject *wake(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer view;
    int64_t slot;
    unsigned char *shared = state_of_slot(args, count, 2, &view, &slot);
    (void)module;
    if (shared == NULL)
        return NULL;
    wake_word(shared, slot);
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}

/* The counter at an offset of a map, held by ``view``, and the numbers after it; NULL with an error
 * set. */
static uint32_t *counter_of(PyObject *const *args, Py_ssize_t count, Py_ssize_t wanted,
                            Py_buffer *view, int64_t *numbers)
{
    unsigned char *shared = state_of(args, count, wanted, view, numbers);
    if (shared == NULL)
        return NULL;
    if (numbers[0] >= 0 && numbers[0] <= view->len - WORD && numbers[0] % WORD == 0)
        return counter_at(shared, numbers[0]);
    PyBuffer_Release(view);
    PyErr_SetString(PyExc_ValueError, "this is no word of the shared state");
    return NULL;
}

PyDoc_STRVAR(wake_one_doc, "wake_one(map, at)\n\n"
                           "Increment the word at an offset, and wake the thread that has slept on"
                           " it longest; how many were woken, 1 or 0.");
static PyObject *wake_one(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer view;
    int64_t at;
    uint32_t *counter = counter_of(args, count, 2, &view, &at);
    (void)module;
    if (counter == NULL)
        return NULL;
    const long woke = count_and_wake(counter, 1);
    PyBuffer_Release(&view);
    return PyLong_FromLong(woke > 0);
}

PyDoc_STRVAR(sleep_on_word_doc, "sleep_on_word(map, at, seen, timeout_us)\n\n"
                                "Sleep until the word at an offset differs from ``seen`` in its"
                                " lower half; whether it does before the time is over. A signal"
                                " ends it, too.");
static PyObject *sleep_on_word(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer view;
    int64_t numbers[3];
    int found;
    uint32_t *counter = counter_of(args, count, 4, &view, numbers);
    (void)module;
    if (counter == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    found = sleep_while(counter, (uint32_t)numbers[1], numbers[2] > 0 ? numbers[2] : 0);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    return PyErr_CheckSignals() < 0 ? NULL : PyBool_FromLong(found);
}

PyDoc_STRVAR(has_doc, "has_futex_wakers()\n\nWhether the system can sleep on a word.");
static PyObject *has_futex_wakers(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    return PyBool_FromLong(HAS_FUTEX);
}

PyMethodDef bell_functions[] = {
    {"notify", (PyCFunction)(void (*)(void))notify, METH_FASTCALL, notify_doc},
    {"arm", (PyCFunction)(void (*)(void))arm, METH_FASTCALL, arm_doc},
    {"woken", (PyCFunction)(void (*)(void))woken, METH_FASTCALL, woken_doc},
    {"wake", (PyCFunction)(void (*)(void))wake, METH_FASTCALL, wake_doc},
    {"wake_one", (PyCFunction)(void (*)(void))wake_one, METH_FASTCALL, wake_one_doc},
    {"sleep_on_word", (PyCFunction)(void (*)(void))sleep_on_word, METH_FASTCALL, sleep_on_word_doc},
    {"has_futex_wakers", has_futex_wakers, METH_NOARGS, has_doc},
    {NULL, NULL, 0, NULL},
};
