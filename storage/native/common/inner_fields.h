/* Numbers of Python's modules; `make numbers` has written them from there. */
#ifndef RMQCTL_INNER_FIELDS_H
#define RMQCTL_INNER_FIELDS_H

/* storage/format/encode.py: places of a MessageInner */
enum {
    TOPIC = 0,
    QUEUE_ID = 1,
    BODY = 2,
    PROPERTIES = 3,
    BORN_TIMESTAMP = 4,
    BORN_HOST = 5,
    STORE_HOST = 6,
    FLAG = 7,
    SYS_FLAG = 8,
    RECONSUME_TIMES = 9,
    PREPARED_OFFSET = 10,
    TAGS = 11,
    KEYS = 12,
    DELAY_TIME_LEVEL = 13,
    DELAY_MS = 14,
    FIELDS = 15,
};

#endif
