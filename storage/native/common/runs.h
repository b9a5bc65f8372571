/* Records that a run of units names, one log file at a time. */
#ifndef RMQCTL_RUNS_H
#define RMQCTL_RUNS_H
#include "native.h"

/* The common fields of the records of a queue, and where they lie. */
typedef struct {
    Py_buffer units, log, field;
    int64_t first, queue_id, queue_offset;
    int32_t unusual;
} Run;

/* Reads the first arguments of a function; 0, or -1 with an error set. */
int get_run(Run *run, PyObject *units, PyObject *log, PyObject *field);
void release_run(Run *run);

/* The fields of a unit: position of its record in the file, if it lies there at all, and its
 * size. */
static inline int64_t place_of(const Run *run, Py_ssize_t number)
{
    const unsigned char *unit = (const unsigned char *)run->units.buf + number * UNIT;
    return (int64_t)((uint64_t)long_at(unit) - (uint64_t)run->first);
}
static inline int32_t size_of(const Run *run, Py_ssize_t number)
{
    return int_at((const unsigned char *)run->units.buf + number * UNIT + 8);
}

/* The record of a unit, if it lies within the file and has a common size; else NULL. */
const unsigned char *record_of(const Run *run, Py_ssize_t number);
/* The length of the body if it is a common record that agrees with its unit, else -1; the checksum
 * of the body is not compared. */
int32_t body_of(const Run *run, Py_ssize_t number, const unsigned char *record);
/* The same, with a right checksum. */
int32_t usual_body(const Run *run, Py_ssize_t number, const unsigned char *record);

/* Prefetch a record while another one is read. */
void fetch(const unsigned char *record, int32_t size);
/* The same for the record of a unit. */
void fetch_next(const Run *run, Py_ssize_t number);
/* The same in two parts, before and after the work on the record before it: a processor fetches some
 * ten lines at once, and waits at the next one. With the ends of the record after it, whose pages
 * take longest. */
void fetch_half(const Run *run, Py_ssize_t number);
void fetch_other_half(const Run *run, Py_ssize_t number);

static inline int has_sum(const unsigned char *record, int32_t body_length)
{
    return (int32_t)(crc32_of(record + HEAD, body_length) & CRC_MASK) == int_at(record + 8);
}

#endif
