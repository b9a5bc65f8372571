/* The bytes of an index file: storage/format/index_file.py draws the picture. */
#ifndef RMQCTL_INDEX_FILE_H
#define RMQCTL_INDEX_FILE_H

#include "index_numbers.h"

/* Positions in the header, and in an entry, which begins with the key's hash. */
enum { FIRST_TIME = 0, LAST_TIME = 8, LAST_OFFSET = 24, NEXT_NUMBER = 36 };
enum { OFFSET = 4, SECONDS = 12, PREVIOUS = 16 };

#endif
