/* Numbers of Python's modules; `make numbers` has written them from there. */
#ifndef RMQCTL_STEADY_NUMBERS_H
#define RMQCTL_STEADY_NUMBERS_H

/* storage/coordination/shared_state.py */
enum {
    MAGIC = 0,
    LOCK_MTIME = 5,
    LOG_END = 10,
    KEYS_FROM = 14,
    FILES_GENERATION = 15,
    MADE = 34,
    SHARED_STATE_MAGIC = 8245371162800947204,
};

/* storage/files/read_files.py */
enum {
    FEW_BYTES = 4096,
};

#endif
