/* One record as the store writes it: storage/format/layout.py draws the picture. */
#ifndef RMQCTL_RECORD_H
#define RMQCTL_RECORD_H
#include "inner_fields.h"
#include "text.h"

enum { LONGEST_TOPIC = 127 };

typedef struct {
    const unsigned char *body, *properties, *born_host, *store_host;
    Py_ssize_t body_length, properties_length;
    int64_t born_timestamp, prepared_offset;
    int32_t queue_id, flag, sys_flag, reconsume_times;
    int born_length, store_length; /* of the hosts: 8 or 20 */
} Fields;

/* The fields of one record of a buffer; a table of them is bytes for Python, which reads it as
 * numbers of 8 bytes (storage/format/prepared_table.py). */
typedef struct {
    int64_t start, size, code, queue, keys, delay, has_unit;
} Row;

static inline unsigned char *put_int(unsigned char *to, int32_t value)
{
    uint32_t turned = __builtin_bswap32((uint32_t)value);
    memcpy(to, &turned, 4);
    return to + 4;
}
static inline unsigned char *put_long(unsigned char *to, int64_t value)
{
    uint64_t turned = __builtin_bswap64((uint64_t)value);
    memcpy(to, &turned, 8);
    return to + 8;
}
static inline unsigned char *put_bytes(unsigned char *to, const void *from, Py_ssize_t length)
{
    memcpy(to, from, (size_t)length);
    return to + length;
}

/* These give -1 without an error for unusual values; the references report them. */
int number_of(PyObject *number, int64_t *value);
int int32_of(PyObject *number, int32_t *value);
int bytes_of(PyObject *bytes, const unsigned char **at, Py_ssize_t *length);
int hosts_are_usual(Fields *fields, Py_ssize_t born_length, Py_ssize_t store_length);
int fields_of(PyObject *message, Fields *fields);

/* Stores all fields up to the body; the hosts' bits in sys_flag are right. Its length:
 * head_size. */
unsigned char *put_head(unsigned char *to, const Fields *fields, int32_t size, int32_t body_crc,
                        int64_t queue_offset, int64_t offset, int64_t store_timestamp);
static inline Py_ssize_t head_size(const Fields *f)
{
    return HEAD - 16 + f->born_length + f->store_length;
}
/* A head that records of one batch share except for a few fields, and its length. */
typedef struct {
    unsigned char bytes[HEAD + 24];
    Py_ssize_t size;
} Head;
static inline void begin_heads(Head *head, const Fields *fields)
{
    head->size = put_head(head->bytes, fields, 0, 0, 0, 0, 0) - head->bytes;
}
/* A record up to the topic, with its body. */
static inline unsigned char *put_start(unsigned char *to, const Head *head, int64_t size,
                                       int32_t queue_id, int32_t flag, const unsigned char *body,
                                       Py_ssize_t body_length)
{
    enum { CRC_AT = 8, QUEUE_AT = 12, FLAG_AT = 16 };
    const uint32_t crc = crc32_and_copy(to + head->size, body, (size_t)body_length);
    memcpy(to, head->bytes, HEAD);
    if (head->size > HEAD) /* with IPv6 hosts */
        memcpy(to + HEAD, head->bytes + HEAD, (size_t)(head->size - HEAD));
    put_int(to, (int32_t)size);
    put_int(to + CRC_AT, (int32_t)(crc & CRC_MASK));
    put_int(to + QUEUE_AT, queue_id);
    put_int(to + FLAG_AT, flag);
    return put_int(to + head->size - 4, (int32_t)body_length) + body_length;
}
/* Tests kill a writer between two stores, see die_after of instants.c; elsewhere this is 0. */
extern long long instants_left;
void count_instant(void);
#define INSTANT do { if (instants_left) count_instant(); } while (0)

static inline unsigned char *put_length(unsigned char *to, Py_ssize_t length)
{
    to[0] = (unsigned char)(length >> 8);
    to[1] = (unsigned char)length;
    return to + 2;
}

#endif
