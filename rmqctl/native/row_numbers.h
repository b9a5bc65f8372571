/* Numbers of Python's modules; `make numbers` has written them from there. */
#ifndef RMQCTL_ROW_NUMBERS_H
#define RMQCTL_ROW_NUMBERS_H

/* rmqctl/output/encoded_rows.py: how values are written */
enum {
    JSON = 0,
    CSV = 1,
    LINES = 2,
    RAW = 3,
    YAML = 4,
};

/* rmqctl/output/encoded_rows.py: kinds of values */
enum {
    INT = 0,
    LONG = 1,
    TIME = 2,
    NAME = 3,
    TAG = 4,
    LENGTH = 5,
    BODY = 6,
    BODY_BASE64 = 7,
    LIST = 8,
    PAIRS = 9,
    KINDS = 10,
};

#endif
