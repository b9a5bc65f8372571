/* The last fields of a record, set when its offset is known: shared by table.c and
 * append_batch.c. */
#ifndef RMQCTL_ROWS_H
#define RMQCTL_ROWS_H
#include "record.h"

enum { QUEUE_OFFSET = 20, SYS_FLAG_LOW = 39, STORED_AT = 56, STORED_BEHIND_V6 = 68 };

static inline void place_record(unsigned char *record, int64_t queue_offset, int64_t offset,
                                int64_t store_timestamp)
{
    put_long(put_long(record + QUEUE_OFFSET, queue_offset), offset);
    put_long(record + (record[SYS_FLAG_LOW] & BORN_V6 ? STORED_BEHIND_V6 : STORED_AT),
             store_timestamp);
}

/* The unit of a row, whose record begins at ``offset``; gives the end of the unit. */
static inline unsigned char *put_unit(unsigned char *to, const Row *row, int64_t offset,
                                      int64_t store_timestamp)
{
    return put_long(put_int(put_long(to, offset + row->start), (int32_t)row->size),
                    row->delay >= 0 ? store_timestamp + row->delay : row->code);
}

#endif
