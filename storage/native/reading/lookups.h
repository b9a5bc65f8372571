/* Look-ups of single messages: functions that these files share. */
#ifndef RMQCTL_LOOKUPS_H
#define RMQCTL_LOOKUPS_H
#include "runs.h"

/* A query of index files: their layout, and times in ms, both included. */
typedef struct {
    int64_t slots, entries, begin, end, below, most;
    int has_below, follow_slots;
} Question;

/* The hash of a topic's key, -1 for text that is no UTF-8. */
int64_t hash_of(PyObject *topic, PyObject *key);

/* Append the log offsets of a tuple of files to a list, newest first: 1 if older files may have
 * more, 0 if not, -1 with an error set. */
int search_files(PyObject *files, const Question *asked, int64_t wanted, PyObject *hits);

/* The message of ``offset``, whose record begins at ``position`` of a log file and ends at
 * ``limit`` or before; NULL without an error if it is unusual. */
PyObject *message_at(const Py_buffer *log, int64_t position, int64_t limit, int64_t offset,
                     int32_t unusual);

/* Messages of a run's units as RecordReader.read_run reads them, a list, and the bytes of their
 * records; ``limited`` if a limit ended it and no unusual record. NULL with an error set. */
PyObject *messages_of(const Run *run, PyObject *topic, int64_t count, int64_t byte_limit,
                      int64_t *total, int *limited);

#endif
