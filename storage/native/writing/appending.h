/* What appends records: its state, and what append.c and put.c share. */
#ifndef RMQCTL_APPENDING_H
#define RMQCTL_APPENDING_H
#include "record.h"

enum { WORD = 8, STAGE_NONE = 0, STAGE_RECORDS = 1, STAGE_DISPATCH = 2 };
/* Words of the page, see storage/sharing/page.py. */
enum {
    FROM = 7, TO = 8, STAGE = 9, LOG_END = 10, FAILED = 12, LAST_STORE_TIMESTAMP = 19,
    GATE_WANTED = 32
};
enum { WAITER_FLAGS = 4096, MAX_WAITERS = 256, SLOTS = 16384 }; /* places in the page, in bytes */
enum { LARGE_BODY = 16 << 10 }; /* _LARGE_BODY of storage/store.py */

/* Where one queue's next unit goes. */
typedef struct {
    PyObject ob_base;
    PyObject *map;
    int64_t word, first, last;
    Py_ssize_t topic_length;
    unsigned char topic[1 + LONGEST_TOPIC]; /* with its length byte */
} Tail;

typedef struct {
    PyObject ob_base;
    PyObject *result_type, *put_ok, *no_reason; /* of what append gives */
    PyObject *pending, *rows;                   /* PendingKeys and its list of rows */
    PyObject *topics;                           /* dict: topic -> dict: queue id -> Tail */
    PyObject *log_map;
    PyObject *gate, *locked, *clock, *afterwards; /* what put asks and calls, see guard */
    Py_buffer words;
    int has_words, has_file, exclusive;
    int64_t first, limit, now, heard;
    Py_ssize_t most_pending;
} Appending;

/* What append gives and the row of its keys, without their numbers: all that is allocated and that
 * the garbage collector knows. It may run code of others' meanwhile, so this comes first. */
typedef struct {
    PyObject *found, *log, *queue, *row;
} Shell;

static inline PyObject *owned(PyObject *object)
{
    Py_INCREF(object);
    return object;
}

int allocate(Appending *a, Shell *shell);
/* Gives 1 if it is done, 0 if something is unusual, -1 with an error set; then it may be half done.
 * With ``alone`` nothing of Python's runs between the first look at the page and the last store: no
 * other thread and no signal comes between. */
int append_record(Appending *a, PyObject *message, int64_t now, const int64_t *known_crc,
                  Shell *shell, int alone);
/* What was made, or None, or NULL with an error set; takes the shell. */
PyObject *given(Shell *shell, int done);

PyObject *guard(PyObject *self, PyObject *args); /* put.c */
PyObject *put(PyObject *self, PyObject *message);
extern const char guard_doc[], put_doc[];
int prepare_put(void);

#endif
