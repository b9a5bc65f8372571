/* Numbers of Python's modules; `make numbers` has written them from there. */
#ifndef RMQCTL_INDEX_NUMBERS_H
#define RMQCTL_INDEX_NUMBERS_H

/* storage/format/index_file.py */
enum {
    HEADER = 40,
    SLOT = 4,
    ENTRY = 20,
};

#endif
