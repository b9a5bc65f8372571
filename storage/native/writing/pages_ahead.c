/* Blocks and pages of mapped files are made before the stores, in a thread of C.
 *
 * To reserve blocks may take reading where there are some, and a store to a page that was never
 * written waits for the system to make it, which takes several times as long as the store. The
 * thread makes both first, and touches the pages as a writer does (populate). Their bytes do not
 * change, so it needs no lock of the store. It does not need Python's lock either, and gets no
 * signals. There is one thread for all files, while there are files with requests.
 */
#include "kernel.h"
#include "pages_ahead.h"
#include <signal.h>

enum { LARGE_PAGE = 2 << 20 };
/* Requests that are skipped at most, after one that came too late. */
enum { LONGEST_REST = 31 };

struct PagesAhead {
    PyObject ob_base;
    Py_buffer map;
    int64_t piece, lead; /* bytes made at once; how far ahead of stores the thread begins */
    PagesMade made;
    pid_t owner; /* the process whose thread makes its pages; 0 = none */
    /* The following fields need the lock. */
    PagesAhead *next; /* next in the queue of the thread */
    int is_waiting;
    int64_t until;           /* pages up to here are requested, */
    int64_t beginning_until; /* and all up to here, wherever stores are */
    int fd, rest, resting;   /* requests to skip at the next delay, and from now on */
};

static PyTypeObject *pages_type;
static int64_t page_size;

/* The thread, and its queue of files. In a forked child all of it is its parent's. */
static struct {
    pid_t process;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int is_running, users;
    PagesAhead *first, *last, *busy; /* the queue, and the file in work */
} maker;

/* To be called before the lock is taken: the parent's may be locked for ever here. */
static void know_process(void)
{
    if (maker.process == getpid())
        return;
    memset(&maker, 0, sizeof maker);
    pthread_mutex_init(&maker.lock, NULL);
    pthread_cond_init(&maker.changed, NULL);
    maker.process = getpid();
}

int is_pages_ahead(PyObject *object)
{
    return Py_TYPE(object) == pages_type;
}

PagesMade *made_by(PyObject *pages_ahead)
{
    return &((PagesAhead *)pages_ahead)->made;
}

/* -- the thread ---------------------------------------------------------------------------- */

static void begin_at(PagesMade *made, int64_t position)
{
    __atomic_store_n(&made->to, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&made->from, position, __ATOMIC_RELEASE);
    __atomic_store_n(&made->to, position, __ATOMIC_RELEASE);
}

/* Where to begin if stores are at ``position``. */
static int64_t behind(const PagesAhead *p, int64_t position)
{
    return (position + 2 * p->lead - 1) / p->lead * p->lead;
}

/* Make the system make the pages of [position, end); whether it did. */
static int make_pages(PagesAhead *p, int64_t position, int64_t end)
{
    unsigned char *at = (unsigned char *)p->map.buf + position;
    return populate(at, (size_t)(end - position), p->piece >= LARGE_PAGE);
}

/* Makes pages at the file's beginning, whether or not there are some. */
static void make_beginning(PagesAhead *p)
{
    int64_t from = 0;
    while (from < p->beginning_until) {
        const int64_t end = p->beginning_until - from < p->piece ? p->beginning_until : from + p->piece;
        pthread_mutex_unlock(&maker.lock);
        const int failed = !make_pages(p, from, end);
        pthread_mutex_lock(&maker.lock);
        if (failed)
            break;
        from = end;
    }
    p->beginning_until = 0;
}

/* Makes the requested pages, or as many as come before they are needed: where memory is slow at the
 * moment, the stores would only wait for pages that are being made. So after a delay the thread
 * skips the next request, and more of them each time it is late again. */
static void make_wanted(PagesAhead *p)
{
    PagesMade *made = &p->made;
    int64_t has_blocks = 0;
    while (made->to < p->until) {
        if (__atomic_load_n(&made->at, __ATOMIC_RELAXED) > made->to) {
            p->resting = p->rest = p->rest < LONGEST_REST ? 2 * p->rest + 1 : LONGEST_REST;
            break;
        }
        const int64_t from = made->to, until = p->until, next = (from / p->piece + 1) * p->piece;
        const int64_t end = next < until ? next : until;
        pthread_mutex_unlock(&maker.lock);
        const int failed = (until > has_blocks && !reserve_blocks(p->fd, from, until - from))
                           || !make_pages(p, from, end);
        pthread_mutex_lock(&maker.lock);
        if (failed)
            break;
        has_blocks = until;
        __atomic_store_n(&made->to, end, __ATOMIC_RELEASE);
        if (end == p->until)
            p->rest = 0;
    }
    p->until = 0;
}

static void *run(void *nothing)
{
    pthread_mutex_lock(&maker.lock);
    while (maker.users) {
        PagesAhead *p = maker.first;
        if (p == NULL) {
            pthread_cond_wait(&maker.changed, &maker.lock);
            continue;
        }
        maker.first = p->next;
        p->is_waiting = 0;
        maker.busy = p;
        make_wanted(p);
        make_beginning(p);
        maker.busy = NULL;
        pthread_cond_broadcast(&maker.changed);
    }
    maker.is_running = 0;
    pthread_mutex_unlock(&maker.lock);
    return nothing;
}

/* A thread that gets no signals: those are for Python's main thread. With the lock. */
static int start(void)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    maker.is_running = !pthread_create(&thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (maker.is_running) {
        name_thread(thread, "pages-ahead");
        pthread_detach(thread);
    }
    return maker.is_running;
}

/* -- the caller that stores ---------------------------------------------------------------- */

/* Removes it from the queue; with the lock. */
static void stop_waiting(PagesAhead *p)
{
    PagesAhead **at = &maker.first, *before = NULL;
    for (; *at != NULL && *at != p; at = &(*at)->next)
        before = *at;
    if (*at == NULL)
        return;
    *at = p->next;
    if (maker.last == p)
        maker.last = before;
}

/* Releases the map; nothing is made any more. */
static void let_go(PagesAhead *p)
{
    const pid_t owner = p->owner;
    Py_buffer map = p->map;
    p->owner = 0;
    p->map.obj = NULL; /* nothing can be requested any more; the thread checks the rest */
    if (owner == getpid()) {
        Py_BEGIN_ALLOW_THREADS
        pthread_mutex_lock(&maker.lock);
        stop_waiting(p);
        p->until = p->beginning_until = 0;
        while (maker.busy == p)
            pthread_cond_wait(&maker.changed, &maker.lock);
        maker.users--;
        pthread_cond_broadcast(&maker.changed);
        pthread_mutex_unlock(&maker.lock);
        Py_END_ALLOW_THREADS
    }
    begin_at(&p->made, 0);
    if (map.obj != NULL)
        PyBuffer_Release(&map);
}

PyDoc_STRVAR(end_doc, "end()\n\n"
                      "Wait for the thread and release the map. Twice is fine.");
static PyObject *end(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    let_go((PagesAhead *)self);
    Py_RETURN_NONE;
}

/* Starts the thread for it if needed; with the lock. 0: the stores make its pages. */
static int get_thread(PagesAhead *p)
{
    if (p->owner)
        return p->owner == getpid(); /* else this is a forked child */
    if (!maker.is_running && !start())
        return 0;
    p->owner = getpid();
    maker.users++;
    return 1;
}

/* Queues it for the thread; with the lock. */
static void wait_for_turn(PagesAhead *p)
{
    if (p->is_waiting)
        return;
    p->is_waiting = 1;
    p->next = NULL;
    *(maker.first == NULL ? &maker.first : &maker.last->next) = p;
    maker.last = p;
    pthread_cond_broadcast(&maker.changed);
}

PyDoc_STRVAR(want_doc, "want(position, until)\n\n"
                       "Request blocks and pages from a little after ``position``, where stores"
                       " go on, up to ``until``. Does not wait.");
static PyObject *want(PyObject *self, PyObject *args)
{
    PagesAhead *p = (PagesAhead *)self;
    long long position, until;
    if (!PyArg_ParseTuple(args, "LL", &position, &until))
        return NULL;
    if (p->map.obj == NULL || position < 0 || until < position || until > p->map.len) {
        PyErr_SetString(PyExc_ValueError, "no such bytes of the map");
        return NULL;
    }
    know_process();
    pthread_mutex_lock(&maker.lock);
    if (!get_thread(p) || p->resting) {
        p->resting -= p->resting > 0;
        pthread_mutex_unlock(&maker.lock);
        Py_RETURN_NONE;
    }
    __atomic_store_n(&p->made.at, position, __ATOMIC_RELAXED);
    if (!p->until && (p->made.to < position || p->made.from > position))
        begin_at(&p->made, behind(p, position));
    p->until = until - until % page_size;
    wait_for_turn(p);
    pthread_mutex_unlock(&maker.lock);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(want_first_doc, "want_first(until)\n\n"
                             "Request pages from the file's beginning up to ``until``, which has"
                             " blocks. Does not wait.");
static PyObject *want_first(PyObject *self, PyObject *number)
{
    PagesAhead *p = (PagesAhead *)self;
    long long until = PyLong_AsLongLong(number);
    if (until == -1 && PyErr_Occurred())
        return NULL;
    if (p->map.obj == NULL || until < 0 || until > p->map.len) {
        PyErr_SetString(PyExc_ValueError, "no such bytes of the map");
        return NULL;
    }
    know_process();
    pthread_mutex_lock(&maker.lock);
    if (get_thread(p)) {
        p->beginning_until = until - until % page_size;
        wait_for_turn(p);
    }
    pthread_mutex_unlock(&maker.lock);
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

PyDoc_STRVAR(stores_at_doc, "stores_at(position)\n\n"
                            "Note where stores are now: pages below it are made in vain.");
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
    PyObject_Free(object);
    Py_DECREF(type);
}

PyDoc_STRVAR(pages_ahead_doc, "pages_ahead(map, fd, piece, lead)\n\n"
                              "A maker of pages of a writable map of a file ahead: ``piece``"
                              " bytes at once, from ``lead`` ahead of stores on. See PagesAhead"
                              " of _compiled.pyi.");
static PyObject *pages_ahead(PyObject *module, PyObject *args)
{
    PyObject *map;
    Py_buffer view;
    int fd;
    long long piece, lead;
    (void)module;
    if (!PyArg_ParseTuple(args, "OiLL", &map, &fd, &piece, &lead))
        return NULL;
    if (piece < page_size || lead < page_size || piece % page_size || lead % page_size) {
        PyErr_SetString(PyExc_ValueError, "piece and lead are some pages");
        return NULL;
    }
    if (PyObject_GetBuffer(map, &view, PyBUF_WRITABLE) < 0)
        return NULL;
    PagesAhead *p = PyObject_New(PagesAhead, pages_type);
    if (p == NULL) {
        PyBuffer_Release(&view);
        return NULL;
    }
    p->map = view;
    p->made = (PagesMade){0, 0, 0};
    p->piece = piece;
    p->lead = lead;
    p->owner = 0;
    p->next = NULL;
    p->fd = fd;
    p->until = p->beginning_until = 0;
    p->is_waiting = p->rest = p->resting = 0;
    return (PyObject *)p;
}

static PyMethodDef methods[] = {
    {"want", want, METH_VARARGS, want_doc},
    {"want_first", want_first, METH_O, want_first_doc},
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
