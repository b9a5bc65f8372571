/* The appender of records: its state, and what append.c, append_batch.c and put.c share. */
#ifndef RMQCTL_APPENDING_H
#define RMQCTL_APPENDING_H
#include "appending_numbers.h"
#include "pages_ahead.h"
#include "record.h"

/* The tail of one queue: where its next unit goes. */
typedef struct {
    PyObject ob_base;
    PyObject *map;
    int64_t word, first, last;
    Py_ssize_t topic_length;
    unsigned char topic[1 + LONGEST_TOPIC]; /* with its length byte */
} Tail;

/* Where keys of batches go: an index file by its name, and which of its bytes have blocks. */
typedef struct {
    PyObject *map; /* NULL = none is known */
    int64_t name, first, end;
    int64_t slots, most;
    int none_wanted;
} Index;

typedef struct {
    PyObject ob_base;
    PyObject *result_type, *put_ok, *no_reason; /* of the result of append */
    PyObject *pending, *rows;                   /* PendingKeys and its list of rows */
    PyObject *topics;                           /* dict: topic -> dict: queue id -> Tail */
    PyObject *log_map;
    PyObject *pages; /* makes its pages ahead, or NULL */
    PyObject *write_lock, *locked, *lock_file, *clock, *asked, *notify; /* of put, see guard */
    Py_buffer words;
    int has_words, has_file, exclusive, syncs, log_fd, in_run;
    int64_t first, limit, reserved, now, heard, largest;
    int64_t filled; /* log offset up to which pages were made ahead; see write_to_log */
    Py_ssize_t most_pending;
    Index index;
} Appending;

/* The result of append and the row of its keys, without their numbers: all that is allocated and
 * that the garbage collector tracks. It may run other code meanwhile, so this comes first. */
typedef struct {
    PyObject *found, *log, *queue, *row;
} Shell;

static inline PyObject *owned(PyObject *object)
{
    Py_INCREF(object);
    return object;
}

/* append.c */
int allocate(Appending *a, Shell *shell);
/* Gives 1 if it is done, 0 for an unusual record, -1 with an error set; then it may be half done.
 * With ``alone`` no Python code runs between the first read of the shared state and the last store:
 * no other thread and no signal comes between. */
int append_record(Appending *a, PyObject *message, int64_t now, const int64_t *known_crc,
                  Shell *shell, int alone);
/* The result, or None, or NULL with an error set; takes the shell. */
PyObject *given(Shell *shell, int done);

unsigned char *bytes_of_map(PyObject *map, Py_buffer *view, int64_t needed);
void store_word(Appending *a, int64_t number, int64_t value);
/* Writes records through the descriptor: the kernel makes pages for them at once, and a sync writes
 * the pages that they touch. -1 with an error set; then the stage is to be resolved. */
int write_to_log(Appending *a, const unsigned char *buffer, Py_ssize_t size, int64_t start);
Tail *tail_of(Appending *a, PyObject *topic, PyObject *queue_id);
PyObject *append(PyObject *self, PyObject *const *args, Py_ssize_t count);
extern const char append_doc[];
int prepare_append(void);

/* The reason that a batch is not appended in one step; positive numbers except BATCH_DONE are
 * returned. */
enum { BATCH_DONE, BATCH_UNUSUAL };
PyObject *use_index(PyObject *self, PyObject *args); /* append_batch.c */
PyObject *append_batch(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *put_batch(PyObject *self, PyObject *const *args, Py_ssize_t count);
extern const char use_index_doc[], append_batch_doc[], put_batch_doc[];
int prepare_append_batch(void);

/* put.c */
/* Puts a record while this process keeps the write lock, or takes it for that; 1 if it is done, 0
 * for an unusual record, -1 with an error set. */
int put_record(Appending *a, PyObject *message, int64_t now, Shell *shell);
int time_of(Appending *a, int64_t *now); /* ms, by the clock; -1 with an error set */
/* Whether the log file still has a name: checked once a millisecond, as FastAppender.have_room
 * does. Between two such checks only the start of a run changes by itself; the caller that puts
 * keys has it checked. */
int is_log_there(Appending *a, int64_t now);
/* Whether the write lock is kept and no process has asked for it since LOCK_WANTED was last
 * read. */
int lock_is_ours(Appending *a);
/* Releases the kept write lock if another process asks for it; -1 with an error set. A process that
 * asks, or waits for a message, stores that and then reads: a full barrier lies between the stores
 * of the put and this, and is_process_waiting comes after it, or after releasing the write lock. */
int give_up_if_wanted(Appending *a);
int is_process_waiting(Appending *a);
/* Wakes each process that waits for the topic. */
int wake_for(Appending *a, PyObject *topic); /* -1 with an error set */
/* wakeup.c: for the shared state whose bytes are given. */
int is_waiter_flag_set(const unsigned char *shared);
int wake_waiters(unsigned char *shared, uint64_t wanted); /* whether some have sockets */
int topic_word(PyObject *topic, uint64_t *word);      /* -1 with an error set */
/* Wakes the process that goes next in the line of storage/coordination/write_lock_line.py; whether
 * there was one. */
int wake_next_writer(unsigned char *shared);

PyObject *guard(PyObject *self, PyObject *args);
PyObject *put(PyObject *self, PyObject *message);
extern const char guard_doc[], put_doc[];
int prepare_put(void);
PyObject *put_sent(PyObject *self, PyObject *const *args, Py_ssize_t count); /* put_sent.c */
PyObject *put_sent_batch(PyObject *self, PyObject *const *args, Py_ssize_t count);
extern const char put_sent_doc[], put_sent_batch_doc[];

#endif
