/* Blocks and pages of a mapped file before somebody stores to them, in a thread of C's own.
 *
 * To have blocks may take reading where there are some, and a store to a page that was never written
 * waits for the system to make it, which takes several times as long as the store. The thread asks for
 * both first, and touches the pages as a writer does (MADV_POPULATE_WRITE): they hold what they held,
 * so it needs no lock of the store's. It needs none of Python's either, and signals are not for it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* fallocate */
#endif
#include "pages_ahead.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

/* A large page, and what is made at once. */
enum { PIECE = 2 << 20 };
/* How far ahead of who stores the thread begins, for who stores to be behind it. */
enum { START = PIECE };
/* Requests that are left out at most, after one that came to nothing. */
enum { LONGEST_REST = 31 };

struct PagesAhead {
    PyObject ob_base;
    Py_buffer map;
    PagesMade made;
    pid_t owner;     /* the process that has the thread; 0 = there is none */
    int is_forked;   /* the thread is another process's, and perhaps waits in here for ever */
    pthread_t thread;
    pthread_mutex_t lock; /* guards the following */
    pthread_cond_t changed;
    int64_t until;        /* pages up to here are wanted */
    int fd, rest, resting; /* requests to be left out the next time it is late, and from now on */
    int ending;
};

static PyTypeObject *pages_type;
static int64_t page_size;

int is_pages_ahead(PyObject *object)
{
    return Py_TYPE(object) == pages_type;
}

PagesMade *made_by(PyObject *pages_ahead)
{
    return &((PagesAhead *)pages_ahead)->made;
}

/* -- the thread ------------------------------------------------------------------------------ */

static void begin_at(PagesMade *made, int64_t position)
{
    __atomic_store_n(&made->to, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&made->from, position, __ATOMIC_RELEASE);
    __atomic_store_n(&made->to, position, __ATOMIC_RELEASE);
}

/* Where to begin if stores are at ``position``. */
static int64_t behind(int64_t position)
{
    return (position + START + PIECE - 1) / PIECE * PIECE;
}

/* Has the system make the pages of [position, end); whether it did. */
static int make_pages(PagesAhead *p, int64_t position, int64_t end)
{
    unsigned char *at = (unsigned char *)p->map.buf + position;
    const size_t size = (size_t)(end - position);
    madvise(at, size, MADV_HUGEPAGE); /* where there are none, small ones are made */
    while (madvise(at, size, MADV_POPULATE_WRITE) < 0)
        if (errno != EINTR && errno != EAGAIN)
            return 0;
    return 1;
}

/* Makes what is wanted, or as much as comes before it is needed: where memory is dear just now, whoever
 * stores would only wait for pages that are being made. So who was late leaves out the next request,
 * and more of them each time it is late again. */
static void make_wanted(PagesAhead *p)
{
    PagesMade *made = &p->made;
    int64_t has_blocks = 0;
    while (!p->ending && made->to < p->until) {
        if (__atomic_load_n(&made->at, __ATOMIC_RELAXED) > made->to) {
            p->resting = p->rest = p->rest < LONGEST_REST ? 2 * p->rest + 1 : LONGEST_REST;
            break;
        }
        const int64_t from = made->to, until = p->until, next = (from / PIECE + 1) * PIECE;
        const int64_t end = next < until ? next : until;
        pthread_mutex_unlock(&p->lock);
        const int failed = (until > has_blocks && fallocate(p->fd, 0, from, until - from) < 0)
                           || !make_pages(p, from, end);
        pthread_mutex_lock(&p->lock);
        if (failed)
            break;
        has_blocks = until;
        __atomic_store_n(&made->to, end, __ATOMIC_RELEASE);
        if (end == p->until)
            p->rest = 0;
    }
    p->until = 0;
}

static void *run(void *argument)
{
    PagesAhead *p = argument;
    pthread_mutex_lock(&p->lock);
    while (!p->ending) {
        if (p->until)
            make_wanted(p);
        else
            pthread_cond_wait(&p->changed, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* -- who stores ------------------------------------------------------------------------------ */

/* A thread that no signal comes to: those are for Python's main thread. */
static int start(PagesAhead *p)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&p->thread, NULL, run, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed)
        p->owner = getpid();
    return !failed;
}

/* Gives the map back; nothing is made any more. */
static void let_go(PagesAhead *p)
{
    const pid_t owner = p->owner;
    p->owner = 0;
    if (owner == getpid()) {
        pthread_mutex_lock(&p->lock);
        p->ending = 1;
        pthread_cond_signal(&p->changed);
        pthread_mutex_unlock(&p->lock);
        Py_BEGIN_ALLOW_THREADS
        pthread_join(p->thread, NULL);
        Py_END_ALLOW_THREADS
    } else if (owner) {
        p->is_forked = 1;
    }
    begin_at(&p->made, 0);
    if (p->map.obj != NULL)
        PyBuffer_Release(&p->map);
}

PyDoc_STRVAR(end_doc, "end()\n\nWait for the thread and let go of the map. Twice is fine.");
static PyObject *end(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    let_go((PagesAhead *)self);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(want_doc, "want(position, until)\n\n"
                       "Have blocks and pages from a little behind ``position``, where stores go on, up"
                       " to ``until``. Does not wait.");
static PyObject *want(PyObject *self, PyObject *args)
{
    PagesAhead *p = (PagesAhead *)self;
    long long position, until;
    if (!PyArg_ParseTuple(args, "LL", &position, &until))
        return NULL;
    if (p->ending || p->map.obj == NULL || position < 0 || until < position || until > p->map.len) {
        PyErr_SetString(PyExc_ValueError, "no such bytes of the map");
        return NULL;
    }
    if (p->owner ? p->owner != getpid() : !start(p))
        Py_RETURN_NONE; /* a forked child, or no thread is to be had: pages are made by who stores */
    pthread_mutex_lock(&p->lock);
    if (p->resting) {
        p->resting--;
        pthread_mutex_unlock(&p->lock);
        Py_RETURN_NONE;
    }
    __atomic_store_n(&p->made.at, position, __ATOMIC_RELAXED);
    if (!p->until && (p->made.to < position || p->made.from > position))
        begin_at(&p->made, behind(position));
    p->until = until - until % page_size;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(made_to_doc, "made_to(position)\n\nThe end of the pages that are made from"
                          " ``position`` on; ``position`` if there are none.");
static PyObject *made_to(PyObject *self, PyObject *number)
{
    PagesMade *made = made_by(self);
    long long position = PyLong_AsLongLong(number);
    if (position == -1 && PyErr_Occurred())
        return NULL;
    const int64_t to = __atomic_load_n(&made->to, __ATOMIC_ACQUIRE);
    const int64_t from = __atomic_load_n(&made->from, __ATOMIC_RELAXED);
    return PyLong_FromLongLong(position < from || position > to ? position : to);
}

PyDoc_STRVAR(stores_at_doc, "stores_at(position)\n\nSay where stores are now: pages below it are"
                            " made in vain.");
static PyObject *stores_at(PyObject *self, PyObject *number)
{
    long long position = PyLong_AsLongLong(number);
    if (position == -1 && PyErr_Occurred())
        return NULL;
    __atomic_store_n(&made_by(self)->at, position, __ATOMIC_RELAXED);
    Py_RETURN_NONE;
}

static void free_pages(PyObject *object)
{
    PagesAhead *p = (PagesAhead *)object;
    PyTypeObject *type = Py_TYPE(object);
    let_go(p);
    if (!p->is_forked) {
        pthread_cond_destroy(&p->changed);
        pthread_mutex_destroy(&p->lock);
    }
    PyObject_Free(object);
    Py_DECREF(type);
}

PyDoc_STRVAR(pages_ahead_doc, "pages_ahead(map, fd)\n\nWhat makes pages of a writable map of a file"
                              " ahead; see PagesAhead of _compiled.pyi.");
static PyObject *pages_ahead(PyObject *module, PyObject *args)
{
    PyObject *map;
    Py_buffer view;
    int fd;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oi", &map, &fd)
        || PyObject_GetBuffer(map, &view, PyBUF_WRITABLE) < 0)
        return NULL;
    PagesAhead *p = PyObject_New(PagesAhead, pages_type);
    if (p == NULL) {
        PyBuffer_Release(&view);
        return NULL;
    }
    p->map = view;
    p->made = (PagesMade){0, 0, 0};
    p->owner = 0;
    p->fd = fd;
    p->until = p->rest = p->resting = p->ending = p->is_forked = 0;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    return (PyObject *)p;
}

static PyMethodDef methods[] = {
    {"want", want, METH_VARARGS, want_doc},
    {"made_to", made_to, METH_O, made_to_doc},
    {"stores_at", stores_at, METH_O, stores_at_doc},
    {"end", end, METH_NOARGS, end_doc},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, free_pages}, {Py_tp_methods, methods}, {0, NULL}};
static PyType_Spec spec = {"storage.native._compiled.PagesAhead", sizeof(PagesAhead), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

PyMethodDef page_functions[] = {
    {"pages_ahead", pages_ahead, METH_VARARGS, pages_ahead_doc},
    {NULL, NULL, 0, NULL},
};
int prepare_pages(void)
{
    page_size = sysconf(_SC_PAGESIZE);
    pages_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return pages_type ? 0 : -1;
}
