/* Numbers of Python's modules; `make numbers` has written them from there. */
#ifndef RMQCTL_TABLE_NUMBERS_H
#define RMQCTL_TABLE_NUMBERS_H

/* storage/read/message_table.py: places of the buffers */
enum {
    QUEUE_OFFSET = 0,
    COMMITLOG_OFFSET = 1,
    STORE_SIZE = 2,
    FLAG = 3,
    SYS_FLAG = 4,
    RECONSUME_TIMES = 5,
    BODY_CRC = 6,
    PREPARED_TRANSACTION_OFFSET = 7,
    STORE_TIMESTAMP = 8,
    BORN_TIMESTAMP = 9,
    RECORD_QUEUE_ID = 10,
    RECORD_QUEUE_OFFSET = 11,
    RECORD_TOPIC_ENDS = 12,
    RECORD_TOPIC = 13,
    BORN_HOST_ENDS = 14,
    BORN_HOST = 15,
    STORE_HOST_ENDS = 16,
    STORE_HOST = 17,
    OFFSET_MSG_ID_ENDS = 18,
    OFFSET_MSG_ID = 19,
    MSG_ID_ENDS = 20,
    MSG_ID = 21,
    TAGS_ENDS = 22,
    TAGS = 23,
    KEYS_ENDS = 24,
    KEYS_TEXT_ENDS = 25,
    KEYS_TEXT = 26,
    PROPERTIES_ENDS = 27,
    PROPERTIES_NAME_ENDS = 28,
    PROPERTIES_NAME = 29,
    PROPERTIES_VALUE_ENDS = 30,
    PROPERTIES_VALUE = 31,
    STORED_BODY_ENDS = 32,
    STORED_BODY = 33,
    STORED_BODY_PACKED = 34,
    BUFFERS = 35,
};

/* storage/format/sys_flag.py */
enum {
    REPLACED = 1073741824,
};

#endif
