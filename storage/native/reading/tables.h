/* A table of messages that is filled: its buffers are bytearrays, which grow. */
#ifndef RMQCTL_TABLES_H
#define RMQCTL_TABLES_H
#include "native.h"
#include "table_numbers.h"

enum { MOST_PROPERTIES = 64, HOST_TEXT = 64 };

typedef struct {
    PyObject *owner; /* a bytearray, borrowed; NULL if the field is not wanted */
    unsigned char *at;
    Py_ssize_t used, room;
} Buffer;

typedef struct {
    Buffer buffers[BUFFERS];
    Py_ssize_t expected; /* rows that may come */
    PyThreadState *state; /* the interpreter's, which waits meanwhile */
} Table;

typedef struct {
    const unsigned char *at;
    Py_ssize_t length;
} Text;

/* The properties of a message: of two with one name the last value counts, at the first one's
 * place. Empty values are left out. */
typedef struct {
    Py_ssize_t count;
    Text names[MOST_PROPERTIES], values[MOST_PROPERTIES];
    Text tags, keys, unique; /* values of these names, NULL without */
} Properties;

/* 0 if they are of a kind that is read singly: no UTF-8, or too many. They point into the text. */
int parse_properties_of(Properties *found, Text text);
int is_utf8(Text text);

static inline int wants(const Table *table, int buffer)
{
    return table->buffers[buffer].owner != NULL;
}

/* Makes room in a buffer for so many bytes more; 0, or -1 with an error set. */
int reserve(Table *table, int buffer, Py_ssize_t more, Py_ssize_t expected);

static inline int add_int(Table *table, int buffer, int32_t value)
{
    Buffer *to = &table->buffers[buffer];
    if (to->room - to->used < 4 && reserve(table, buffer, 4, 4 * table->expected) < 0)
        return -1;
    memcpy(to->at + to->used, &value, 4);
    to->used += 4;
    return 0;
}
static inline int add_long(Table *table, int buffer, int64_t value)
{
    Buffer *to = &table->buffers[buffer];
    if (to->room - to->used < 8 && reserve(table, buffer, 8, 8 * table->expected) < 0)
        return -1;
    memcpy(to->at + to->used, &value, 8);
    to->used += 8;
    return 0;
}
/* A text: its end in a buffer of ends, its bytes in the next one. */
static inline int add_text(Table *table, int ends, Text text)
{
    Buffer *to = &table->buffers[ends + 1];
    if (to->room - to->used < text.length && reserve(table, ends + 1, text.length, 0) < 0)
        return -1;
    memcpy(to->at + to->used, text.at, (size_t)text.length);
    to->used += text.length;
    return add_int(table, ends, (int32_t)to->used);
}
/* How many texts a buffer of ends has: it begins with a 0. */
static inline int32_t texts_in(const Table *table, int ends)
{
    return (int32_t)(table->buffers[ends].used / 4) - 1;
}

#endif
