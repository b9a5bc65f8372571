/* Texts and numbers as the parts of a row. Each function gives -1 with an error set, else 0. */
#ifndef RMQCTL_ROW_TEXTS_H
#define RMQCTL_ROW_TEXTS_H
#include "functions.h"

typedef struct {
    PyObject *owner; /* a bytearray; NULL for memory of its own */
    unsigned char *at;
    Py_ssize_t used, room;
} Sink;

/* Makes more room; see room_in. */
unsigned char *grown(Sink *sink, Py_ssize_t more);

/* Makes room for so many bytes more; NULL with an error set, else where they go. */
static inline unsigned char *room_in(Sink *sink, Py_ssize_t more)
{
    return sink->at == NULL || sink->room - sink->used < more ? grown(sink, more)
                                                              : sink->at + sink->used;
}

static inline int put(Sink *sink, const void *at, Py_ssize_t length)
{
    unsigned char *to = room_in(sink, length);
    if (to == NULL)
        return -1;
    if (length)
        memcpy(to, at, (size_t)length);
    sink->used += length;
    return 0;
}

int put_number(Sink *sink, int64_t value);
/* A time (ms) as 2026-01-31T10:00:00.123+01:00; years of four digits, days by the civil calendar. */
int put_time(Sink *sink, int64_t time, int offset);
/* A text in quotes; besides those of JSON, control characters, bidirectional overrides and the line
 * ends of some readers are escaped, as safe_json does. */
int put_json(Sink *sink, const unsigned char *at, Py_ssize_t length);
/* A cell of RFC 4180: in quotes where it has to be. */
int put_csv(Sink *sink, const unsigned char *at, Py_ssize_t length);
/* A value between tabs: tab, newline and backslash are escaped. */
int put_line(Sink *sink, const unsigned char *at, Py_ssize_t length);

enum { QUOTED, PLAIN, UNSURE };
/* How YamlRows writes an ASCII text of one line; see rmqctl/output/yaml_rows.py. */
int yaml_style(Text text);

#endif
