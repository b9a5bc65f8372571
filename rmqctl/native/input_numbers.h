/* Numbers of Python's modules; `make numbers` has written them from there. */
#ifndef RMQCTL_INPUT_NUMBERS_H
#define RMQCTL_INPUT_NUMBERS_H

/* rmqctl/produce/given_rows.py: kinds of columns */
enum {
    IGNORED = 0,
    BODY = 1,
    BODY_BASE64 = 2,
    KEYS = 3,
    TAGS = 4,
    FLAG = 5,
    PROPERTIES = 6,
    TOPIC = 7,
    QUEUE_ID = 8,
    PROPERTY = 9,
    KEY = 10,
    KINDS = 11,
};

#endif
