/* A file of the log or of a queue that is mapped. */
#ifndef RMQCTL_LOG_FILE_H
#define RMQCTL_LOG_FILE_H
#include "native.h"

/* The file that was read last, and where others are found. */
typedef struct {
    PyObject *opened; /* first offset -> ReadMap, of the mapped files; or NULL: */
    PyObject *at;     /* gives the ReadMap of a first offset, or None */
    int64_t first;    /* -1: none */
    Py_buffer bytes;
} LogFile;

/* Make it the one that begins at ``first``: 1, 0 if there is none, -1 with an error set. */
int open_file(LogFile *file, int64_t first);
void close_file(LogFile *file);
int prepare_log_file(void);

#endif
