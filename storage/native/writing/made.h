/* Records that are made of many messages at once: shared by encode.c and encode_rows.c. */
#ifndef RMQCTL_MADE_H
#define RMQCTL_MADE_H
#include "record.h"

#define KEYS_NAME "KEYS\1"
enum { KEYS_NAME_SIZE = sizeof KEYS_NAME - 1 };

/* Memory of one call, and its result. */
typedef struct {
    PyObject *table, *buffer, *hashes, *queues;
    Row *rows;
    int64_t *hash; /* the next one is stored here */
    unsigned char *to;
} Made;

int begin(Made *made, Py_ssize_t count);
int make_room(Made *made, int64_t bytes, int64_t keys);
PyObject *finish(Made *made, int done);

enum { QUICK = 64 };
typedef struct {
    PyObject *numbers, *queues;
    struct {
        PyObject *topic; /* borrowed from the messages */
        int64_t queue_id, number;
    } quick[QUICK];
} Queues;

int64_t queue_number(Queues *q, PyObject *topic, int64_t value);

/* The code of a tag, None for none; ``*last`` is the tag before, whose code is in ``*code``. */
int tag_code(PyObject *tags, PyObject **last, int64_t *code);

#endif
