/* Whether what a reader knows of a store still holds, in one step: what StoreView.bounds and
 * StoreView._bounds_of of storage/readonly.py check before each read.
 */
#ifndef RMQCTL_STEADY_H
#define RMQCTL_STEADY_H
#include "log_file.h"
#include "steady_numbers.h"

/* The words of the shared state. */
typedef struct {
    Py_buffer buffer;
    const volatile int64_t *words;
} Steady;

/* A queue as a QueuePlace has it (storage/queue/reader.py), and its end now; the objects are
 * borrowed. */
typedef struct {
    int64_t word, min_offset, only_first, units_per_file, log_min, log_file_size, end;
    PyObject *units_opened, *log_opened;
} QueueEnd;

/* ``known`` is a Steady of storage/coordination/java_start.py, ``place`` a QueuePlace or NULL. 1 if
 * all holds: call let_steady_go then. 0 if it does not, or is not known; -1 with an error set. */
int take_steady(Steady *steady, PyObject *known, PyObject *place, QueueEnd *queue);
void let_steady_go(Steady *steady);

/* Open the file of a queue that begins at a queue offset, to read so many units before ``end``: 1, 0
 * if it has not all of them, or is to be opened in another way; -1 with an error set. */
int open_units(LogFile *file, int64_t first, int64_t end, int64_t count);

/* None; an error about a value that is no number of 64 bits is dropped. */
PyObject *unknown(void);
int prepare_steady(void);

#endif
