/* Numbers of Python's modules; `make numbers` has written them from there. */
#ifndef RMQCTL_NUMBERS_H
#define RMQCTL_NUMBERS_H

/* storage/format/layout.py, cq_unit.py, crc.py, sys_flag.py */
enum {
    HEAD = 88,
    QUEUE_OFFSET_AT = 20,
    LEAST = 91,
    UNIT = 20,
    PRE_BLANK_SIZE = 2147483647,
    MAGIC_V1 = -626843481,
    MAGIC_V2 = -626843477,
    LONGEST_PROPERTIES = 32767,
    CRC_MASK = 2147483647,
    BORN_V6 = 16,
    STORED_V6 = 32,
    V6_BITS = 48,
    COMPRESSED = 1,
    NO_UNIT = 4,
    ROLLBACK = 12,
};

#endif
