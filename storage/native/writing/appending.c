/* The appender of records, as Python has it: its registered state from FastAppender of
 * storage/append/fast_append.py, and its methods, most of which are in other files.
 */
#include "appending.h"

static PyTypeObject *tail_type, *appending_type;

static void free_tail(PyObject *object)
{
    Py_XDECREF(((Tail *)object)->map);
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

/* A store and this object refer to each other, so the garbage collector has to see its
 * references. */
static int visit_appending(PyObject *object, visitproc visit, void *arg)
{
    Appending *a = (Appending *)object;
    PyObject *const held[] = {a->result_type, a->put_ok, a->no_reason, a->pending,
                              a->rows,        a->topics, a->log_map,   a->index.map,
                              a->write_lock,        a->locked, a->lock_file, a->clock,
                              a->asked,       a->notify,   a->pages};
    Py_VISIT(Py_TYPE(object));
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++)
        Py_VISIT(held[i]);
    return 0;
}
/* Release all references to the store; nothing is appended any more. */
static void let_go(Appending *a)
{
    PyObject **const held[] = {&a->log_map,   &a->index.map, &a->write_lock,  &a->locked,
                               &a->lock_file, &a->clock,     &a->asked, &a->notify,
                               &a->pages};
    a->limit = a->now = a->log_fd = -1;
    if (a->topics != NULL)
        PyDict_Clear(a->topics);
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++)
        Py_CLEAR(*held[i]);
    if (a->has_words)
        PyBuffer_Release(&a->words);
    a->has_words = 0;
}
static int clear_appending(PyObject *object)
{
    Appending *a = (Appending *)object;
    PyObject **const held[] = {&a->result_type, &a->put_ok, &a->no_reason,
                               &a->pending,     &a->rows,   &a->topics};
    let_go(a);
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++)
        Py_CLEAR(*held[i]);
    return 0;
}
static void free_appending(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack(object);
    clear_appending(object);
    release(object);
    Py_DECREF(type);
}

PyDoc_STRVAR(appending_doc, "appending(result_type, put_ok, pending, rows, most_pending)\n\n"
                            "The appender of records; see Appending of _compiled.pyi.");
static PyObject *appending(PyObject *module, PyObject *args)
{
    PyObject *result_type, *put_ok, *pending, *rows;
    Py_ssize_t most;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOO!n", &result_type, &put_ok, &pending, &PyList_Type, &rows,
                          &most))
        return NULL;
    if (!PyType_Check(result_type)
        || !PyType_IsSubtype((PyTypeObject *)result_type, &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "a class of tuples is required");
        return NULL;
    }
    Appending *a = (Appending *)PyType_GenericAlloc(appending_type, 0);
    if (a == NULL)
        return NULL;
    a->result_type = owned(result_type);
    a->put_ok = owned(put_ok);
    a->pending = owned(pending);
    a->rows = owned(rows);
    a->most_pending = most;
    a->limit = a->now = -1;
    a->no_reason = PyUnicode_FromString("");
    a->topics = PyDict_New();
    if (a->no_reason == NULL || a->topics == NULL)
        Py_CLEAR(a);
    return (PyObject *)a;
}

PyDoc_STRVAR(end_doc, "end()\n\n"
                      "Release the shared state, all maps and the arguments of guard(); nothing"
                      " is put any more.");
static PyObject *end(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    let_go((Appending *)self);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(use_words_doc, "use_words(words)\n\n"
                            "The words of the shared state, which are mapped writable.");
static PyObject *use_words(PyObject *self, PyObject *words)
{
    Appending *a = (Appending *)self;
    Py_buffer found;
    if (PyObject_GetBuffer(words, &found, PyBUF_WRITABLE) < 0)
        return NULL;
    if (found.len < SLOTS || (uintptr_t)found.buf % WORD) {
        PyBuffer_Release(&found);
        PyErr_SetString(PyExc_ValueError, "no words of a shared state");
        return NULL;
    }
    if (a->has_words)
        PyBuffer_Release(&a->words);
    a->words = found;
    a->has_words = 1;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(use_log_doc, "use_log(map, fd, first, limit, reserved, now_ms, largest, in_run,"
                          " pages)\n\n"
                          "The log file that begins at ``first``. Up to position ``limit`` it"
                          " needs no check while the time is ``now_ms``; for batches of more"
                          " than ``largest`` bytes, which go through the descriptor (0: all do),"
                          " up to ``reserved``. ``in_run``: later only its existence is checked."
                          " ``pages``: a PagesAhead of the map, or None; the pages that it has"
                          " made take batches of any size.");
static PyObject *use_log(PyObject *self, PyObject *args)
{
    Appending *a = (Appending *)self;
    PyObject *map, *pages;
    int fd;
    long long first, limit, reserved, now, largest;
    if (!PyArg_ParseTuple(args, "OiLLLLLpO", &map, &fd, &first, &limit, &reserved, &now, &largest,
                          &a->in_run, &pages))
        return NULL;
    Py_XDECREF(a->log_map);
    a->log_map = owned(map);
    Py_XDECREF(a->pages);
    a->pages = is_pages_ahead(pages) ? owned(pages) : NULL;
    a->log_fd = fd;
    a->first = first;
    a->limit = limit;
    a->reserved = reserved;
    a->now = now;
    a->largest = largest;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(learn_doc, "learn(topic, queue_id, topic_field, word, map, first, last)\n\n"
                        "A queue: the word of its next offset in the shared state, its newest"
                        " file, where that begins, and the position of the last unit that has"
                        " blocks.");
static PyObject *learn(PyObject *self, PyObject *args)
{
    Appending *a = (Appending *)self;
    PyObject *topic, *queue_id, *field, *map;
    long long word, first, last;
    const unsigned char *text;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "UOOLOLL", &topic, &queue_id, &field, &word, &map, &first, &last))
        return NULL;
    if (bytes_of(field, &text, &length) < 0 || length < 2 || length > 1 + LONGEST_TOPIC) {
        PyErr_SetString(PyExc_ValueError, "no field of a topic");
        return NULL;
    }
    PyObject *queues = PyDict_GetItemWithError(a->topics, topic);
    if (queues == NULL) {
        if (PyErr_Occurred() || (queues = PyDict_New()) == NULL)
            return NULL;
        int failed = PyDict_SetItem(a->topics, topic, queues);
        Py_DECREF(queues); /* the dict has it */
        if (failed)
            return NULL;
    }
    Tail *tail = (Tail *)PyType_GenericAlloc(tail_type, 0);
    if (tail == NULL)
        return NULL;
    tail->map = owned(map);
    tail->word = word;
    tail->first = first;
    tail->last = last;
    tail->topic_length = length;
    memcpy(tail->topic, text, (size_t)length);
    int failed = PyDict_SetItem(queues, queue_id, (PyObject *)tail);
    Py_DECREF(tail);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"end", end, METH_NOARGS, end_doc},
    {"use_words", use_words, METH_O, use_words_doc},
    {"use_log", use_log, METH_VARARGS, use_log_doc},
    {"use_index", use_index, METH_VARARGS, use_index_doc},
    {"learn", learn, METH_VARARGS, learn_doc},
    {"append", (PyCFunction)(void (*)(void))append, METH_FASTCALL, append_doc},
    {"append_batch", (PyCFunction)(void (*)(void))append_batch, METH_FASTCALL, append_batch_doc},
    {"guard", guard, METH_VARARGS, guard_doc},
    {"put", put, METH_O, put_doc},
    {"put_sent", (PyCFunction)(void (*)(void))put_sent, METH_FASTCALL, put_sent_doc},
    {"put_sent_batch", (PyCFunction)(void (*)(void))put_sent_batch, METH_FASTCALL,
     put_sent_batch_doc},
    {"put_batch", (PyCFunction)(void (*)(void))put_batch, METH_FASTCALL, put_batch_doc},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot appending_slots[] = {
    {Py_tp_dealloc, free_appending}, {Py_tp_traverse, visit_appending},
    {Py_tp_clear, clear_appending},  {Py_tp_methods, methods}, {0, NULL}};
static PyType_Spec appending_spec = {
    "storage.native._compiled.Appending", sizeof(Appending), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_HAVE_GC, appending_slots};
static PyType_Slot tail_slots[] = {{Py_tp_dealloc, free_tail}, {0, NULL}};
static PyType_Spec tail_spec = {"storage.native._compiled.Tail", sizeof(Tail), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, tail_slots};

PyMethodDef appending_functions[] = {
    {"appending", appending, METH_VARARGS, appending_doc},
    {NULL, NULL, 0, NULL},
};

int prepare_appending(void)
{
    tail_type = (PyTypeObject *)PyType_FromSpec(&tail_spec);
    appending_type = (PyTypeObject *)PyType_FromSpec(&appending_spec);
    return tail_type && appending_type && prepare_append() == 0 && prepare_put() == 0
                   && prepare_append_batch() == 0
               ? 0
               : -1;
}
