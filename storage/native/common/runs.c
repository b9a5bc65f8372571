/* From units to records, see _decode_run of storage/log/record_reader.py. */
#include "runs.h"

enum { CACHE_LINE = 64, FETCHED = 4096 };

int get_run(Run *run, PyObject *units, PyObject *log, PyObject *field)
{
    if (PyErr_Occurred() || PyObject_GetBuffer(units, &run->units, PyBUF_SIMPLE) < 0)
        return -1;
    if (PyObject_GetBuffer(log, &run->log, PyBUF_SIMPLE) < 0) {
        PyBuffer_Release(&run->units);
        return -1;
    }
    if (PyObject_GetBuffer(field, &run->field, PyBUF_SIMPLE) < 0) {
        PyBuffer_Release(&run->units);
        PyBuffer_Release(&run->log);
        return -1;
    }
    return 0;
}
void release_run(Run *run)
{
    PyBuffer_Release(&run->units);
    PyBuffer_Release(&run->log);
    PyBuffer_Release(&run->field);
}

const unsigned char *record_of(const Run *run, Py_ssize_t number)
{
    if ((number + 1) * UNIT > run->units.len)
        return NULL;
    int64_t position = place_of(run, number);
    int32_t size = size_of(run, number);
    if (position < 0 || size < LEAST || size > MOST || position > run->log.len - size)
        return NULL;
    return (const unsigned char *)run->log.buf + position;
}

int32_t body_of(const Run *run, Py_ssize_t number, const unsigned char *record)
{
    int32_t size = size_of(run, number), body_length = int_at(record + 84);
    int64_t offset = run->first + (record - (const unsigned char *)run->log.buf);
    Py_ssize_t field_size = run->field.len;
    if (int_at(record) != size || int_at(record + 4) != MAGIC_V1
        || int_at(record + 12) != run->queue_id
        || long_at(record + 20) != run->queue_offset + number || long_at(record + 28) != offset
        || (int_at(record + 36) & run->unusual) || body_length < 0
        || (int64_t)HEAD + body_length + field_size + 2 > size)
        return -1;
    const unsigned char *rest = record + HEAD + body_length, *properties = rest + field_size + 2;
    if (memcmp(rest, run->field.buf, field_size)
        || properties[-2] > 127 /* lengths are signed */
        || (Py_ssize_t)big(properties - 2, 2) != record + size - properties)
        return -1;
    return body_length;
}

int32_t usual_body(const Run *run, Py_ssize_t number, const unsigned char *record)
{
    int32_t body_length = body_of(run, number, record);
    return body_length < 0 || !has_sum(record, body_length) ? -1 : body_length;
}

static void fetch_lines(const unsigned char *from, const unsigned char *end)
{
    for (const unsigned char *at = from; at < end && at < from + FETCHED; at += CACHE_LINE)
        __builtin_prefetch(at);
}

void fetch(const unsigned char *record, int32_t size)
{
    fetch_lines(record, record + size);
    __builtin_prefetch(record + size - 1);
}

void fetch_next(const Run *run, Py_ssize_t number)
{
    const unsigned char *record = record_of(run, number);
    if (record != NULL)
        fetch(record, size_of(run, number));
}

void fetch_half(const Run *run, Py_ssize_t number)
{
    const unsigned char *record = record_of(run, number), *after = record_of(run, number + 1);
    if (record != NULL)
        fetch_lines(record, record + size_of(run, number) / 2);
    if (after != NULL) {
        __builtin_prefetch(after);
        __builtin_prefetch(after + size_of(run, number + 1) - 1);
    }
}
void fetch_other_half(const Run *run, Py_ssize_t number)
{
    const unsigned char *record = record_of(run, number);
    if (record != NULL) {
        const int32_t size = size_of(run, number);
        fetch_lines(record + size / 2, record + size);
        __builtin_prefetch(record + size - 1);
    }
}
