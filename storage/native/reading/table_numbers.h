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
    STORE_TIMESTAMP = 6,
    BORN_TIMESTAMP = 7,
    RECORD_QUEUE_ID = 8,
    RECORD_QUEUE_OFFSET = 9,
    RECORD_TOPIC_ENDS = 10,
    RECORD_TOPIC = 11,
    BORN_HOST_ENDS = 12,
    BORN_HOST = 13,
    STORE_HOST_ENDS = 14,
    STORE_HOST = 15,
    OFFSET_MSG_ID_ENDS = 16,
    OFFSET_MSG_ID = 17,
    MSG_ID_ENDS = 18,
    MSG_ID = 19,
    TAGS_ENDS = 20,
    TAGS = 21,
    KEYS_ENDS = 22,
    KEYS_TEXT_ENDS = 23,
    KEYS_TEXT = 24,
    PROPERTIES_ENDS = 25,
    PROPERTIES_NAME_ENDS = 26,
    PROPERTIES_NAME = 27,
    PROPERTIES_VALUE_ENDS = 28,
    PROPERTIES_VALUE = 29,
    STORED_BODY_ENDS = 30,
    STORED_BODY = 31,
    STORED_BODY_PACKED = 32,
    BUFFERS = 33,
};

/* storage/format/sys_flag.py */
enum {
    COMPRESSED = 1,
    REPLACED = 1073741824,
};

#endif
