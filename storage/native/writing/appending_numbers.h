/* Numbers of Python's modules; `make numbers` has written them from there. */
#ifndef RMQCTL_APPENDING_NUMBERS_H
#define RMQCTL_APPENDING_NUMBERS_H

/* storage/files/fs.py */
enum {
    WORD = 8,
};

/* storage/coordination/shared_state.py */
enum {
    STAGE_NONE = 0,
    STAGE_RECORDS = 1,
    STAGE_DISPATCH = 2,
    STAGE_KEYS = 3,
    STAGE_DELETE = 4,
    FROM = 7,
    TO = 8,
    STAGE = 9,
    LOG_END = 10,
    FAILED = 12,
    HOLDER_PID = 13,
    KEYS_FROM = 14,
    KEYS_TO = 17,
    LAST_STORE_TIMESTAMP = 19,
    INDEX_FILE = 20,
    UNDO_INDEX_FILE = 21,
    UNDO_INDEX_HEADER = 22,
    LOCK_WANTED = 32,
    CONFIGS = 33,
    LINE_INTERRUPTED = 39,
    LINE_ONCE = 40,
    LINE_TURNS = 41,
    WAITER_FLAGS = 4096,
    WAITER_TOPICS = 8192,
    WAITER_WAKERS = 10240,
    MAX_WAITERS = 256,
    SLOTS = 16384,
};

/* storage/coordination/write_lock.py */
enum {
    WRITE_LOCK_BYTE = 1,
    QUICK_GAP_US = 1000,
};

/* storage/coordination/wakeup.py */
enum {
    TOPIC_BITS = 63,
    BY_SOCKET = 1,
    BY_WORD = 2,
};

/* storage/append/fast_append_batch.py */
enum {
    BATCH_NO_ROOM = 2,
    BATCH_NO_QUEUE = 3,
    BATCH_NO_INDEX = 4,
};

/* storage/store.py */
enum {
    LARGE_BODY = 16384,
};

#endif
