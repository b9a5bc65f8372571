/* A message's fields become the head of its record. */
#include "record.h"

int number_of(PyObject *number, int64_t *value)
{
    if (!PyLong_CheckExact(number)) /* no other code is called in here */
        return -1;
    *value = PyLong_AsLongLong(number);
    if (*value == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return -1;
    }
    return 0;
}
int int32_of(PyObject *number, int32_t *value)
{
    int64_t wide;
    if (number_of(number, &wide) < 0 || wide != (int32_t)wide)
        return -1;
    *value = (int32_t)wide;
    return 0;
}
int bytes_of(PyObject *bytes, const unsigned char **at, Py_ssize_t *length)
{
    char *found;
    if (!PyBytes_Check(bytes) || PyBytes_AsStringAndSize(bytes, &found, length) < 0)
        return -1;
    *at = (const unsigned char *)found;
    return 0;
}
/* Takes hosts of 8 or 20 bytes, and notes in sysFlag which they are. */
int hosts_are_usual(Fields *f, Py_ssize_t born_length, Py_ssize_t store_length)
{
    if ((born_length != 8 && born_length != 20) || (store_length != 8 && store_length != 20))
        return -1;
    f->born_length = (int)born_length;
    f->store_length = (int)store_length;
    f->sys_flag = (f->sys_flag & ~V6_BITS) | (born_length == 20) << 4 | (store_length == 20) << 5;
    return 0;
}

#define AT(place) PyTuple_GetItem(message, place)
int fields_of(PyObject *message, Fields *f)
{
    Py_ssize_t born_length, store_length;
    if (!PyTuple_Check(message) || PyTuple_Size(message) != FIELDS
        || int32_of(AT(QUEUE_ID), &f->queue_id) < 0
        || bytes_of(AT(BODY), &f->body, &f->body_length) < 0 || f->body_length > INT32_MAX / 2
        || bytes_of(AT(PROPERTIES), &f->properties, &f->properties_length) < 0
        || f->properties_length > LONGEST_PROPERTIES
        || number_of(AT(BORN_TIMESTAMP), &f->born_timestamp) < 0
        || bytes_of(AT(BORN_HOST), &f->born_host, &born_length) < 0
        || bytes_of(AT(STORE_HOST), &f->store_host, &store_length) < 0
        || int32_of(AT(FLAG), &f->flag) < 0 || int32_of(AT(SYS_FLAG), &f->sys_flag) < 0
        || int32_of(AT(RECONSUME_TIMES), &f->reconsume_times) < 0
        || number_of(AT(PREPARED_OFFSET), &f->prepared_offset) < 0)
        return -1;
    return hosts_are_usual(f, born_length, store_length);
}

unsigned char *put_head(unsigned char *to, const Fields *f, int32_t size, int32_t body_crc,
                        int64_t queue_offset, int64_t offset, int64_t store_timestamp)
{
    to = put_int(to, size);
    to = put_int(to, MAGIC_V1);
    to = put_int(to, body_crc);
    to = put_int(to, f->queue_id);
    to = put_int(to, f->flag);
    to = put_long(to, queue_offset);
    to = put_long(to, offset);
    to = put_int(to, f->sys_flag);
    to = put_long(to, f->born_timestamp);
    to = put_bytes(to, f->born_host, f->born_length);
    to = put_long(to, store_timestamp);
    to = put_bytes(to, f->store_host, f->store_length);
    to = put_int(to, f->reconsume_times);
    to = put_long(to, f->prepared_offset);
    return put_int(to, (int32_t)f->body_length);
}
