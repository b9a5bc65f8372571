/* Declarations that the files of the compiled module share. Each file is one loop with its helpers,
 * and offers its functions as a table that module.c adds to the module.
 *
 * Only the limited API of Python 3.11: one build serves all later versions. Formats of arguments
 * have no '#': what is built with the headers of Python 3.13 would fail in 3.11 there.
 */
#ifndef RMQCTL_NATIVE_H
#define RMQCTL_NATIVE_H
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "numbers.h"

enum { MOST = (4 << 20) + (64 << 10) }; /* bytes of a record that is read at once */
/* The property of a message's unique id, up to its value. */
#define UNIQ_KEY "UNIQ_KEY\1"
enum { UNIQ_KEY_SIZE = sizeof UNIQ_KEY - 1 };

static inline uint64_t big(const unsigned char *at, int width)
{
    uint64_t value = 0;
    for (int i = 0; i < width; i++)
        value = value << 8 | at[i];
    return value;
}
/* Written out, compilers make one load of it. */
static inline uint32_t word_at(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}
static inline int32_t int_at(const unsigned char *at) { return (int32_t)word_at(at); }
static inline int64_t long_at(const unsigned char *at)
{
    return (int64_t)((uint64_t)word_at(at) << 32 | word_at(at + 4));
}

/* Sets an error if a function is called with another number of arguments. */
static inline int are_arguments(Py_ssize_t count, Py_ssize_t wanted)
{
    if (count != wanted)
        PyErr_Format(PyExc_TypeError, "%zd arguments are required, not %zd", wanted, count);
    return count == wanted;
}

extern PyMethodDef clock_functions[];
int64_t clock_ms(void); /* milliseconds since the epoch */
extern PyMethodDef crc_functions[]; /* common/crc.c */
void prepare_crc(void);
uint32_t crc32_of(const unsigned char *at, size_t length);
uint32_t crc32_and_copy(unsigned char *to, const unsigned char *at, size_t length);

/* reading/ */
extern PyMethodDef scan_functions[];
/* The size of the plain record at ``at``, of which ``left`` bytes can be read; 0 if it is none. */
int64_t plain_size(const unsigned char *at, int64_t left, int check_crc);
extern PyMethodDef take_functions[];
extern PyMethodDef column_functions[];
extern PyMethodDef chain_functions[];
extern PyMethodDef unit_functions[];
extern PyMethodDef tally_functions[];
extern PyMethodDef message_functions[];
int prepare_messages(void);
extern PyMethodDef message_table_functions[];
extern PyMethodDef property_text_functions[];
extern PyMethodDef pull_functions[];
extern PyMethodDef index_chain_functions[];
extern PyMethodDef key_query_functions[];
int prepare_log_file(void);
int prepare_steady(void);
extern PyMethodDef time_search_functions[];
extern PyMethodDef file_change_functions[];
extern PyMethodDef many_file_functions[];
extern PyMethodDef number_table_functions[];
extern PyMethodDef lag_column_functions[];

/* writing/ */
extern PyMethodDef encode_functions[];
extern PyMethodDef encode_row_functions[];
extern PyMethodDef table_functions[];
extern PyMethodDef key_functions[];
extern PyMethodDef appending_functions[];
int prepare_appending(void);
extern PyMethodDef instant_functions[];
extern PyMethodDef page_functions[]; /* pages_ahead.c */
int prepare_pages(void);
extern PyMethodDef bell_functions[];

/* sending/ */
extern PyMethodDef property_functions[];
int prepare_properties(void);
int add_made(PyObject *module); /* the base class of messages to send */
extern PyMethodDef inner_functions[];
int prepare_inner(void);
/* What is stored of a plain message of a topic that has its id, which is given too (borrowed). The
 * arguments are the first five of inner_message, the topic a str. NULL for any other message; an
 * error may be set. */
PyObject *inner_of_sent(PyObject *message, PyObject *const *arguments, PyObject **id);
extern PyMethodDef sent_functions[]; /* sent.c */
PyObject *encode_sent_batch(PyObject *topic, PyObject *queue_id, PyObject *after, PyObject *largest,
                            PyObject *origin, PyObject *messages, PyObject *unique_ids);
extern PyMethodDef id_functions[]; /* ids.c */
/* The offsetMsgIds of messages, joined by commas; ``host`` are the digits of the store's host. */
PyObject *joined_offset_ids(const char *host, Py_ssize_t size, const int64_t *offsets,
                            Py_ssize_t count);
extern PyMethodDef readdressed_functions[];

#endif
