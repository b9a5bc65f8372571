/* Putting keys into an index file: what keys.c and append_batch.c share. */
#ifndef RMQCTL_KEYS_H
#define RMQCTL_KEYS_H
#include "index_file.h"
#include "record.h"

typedef struct {
    int64_t begin_timestamp, end_timestamp, begin_offset, end_offset;
    int32_t slot_count, index_count;
} Header;

typedef struct {
    int32_t slot, value;
} Change;

/* The changes that were made of slots so far, found by slot: open addressing. */
typedef struct {
    Change *changes;
    int32_t *places; /* 1 + place in changes, 0 = free */
    uint32_t mask, count;
} Changes;

/* Reads the state of the file; the first entry of a new one is number 1. */
void read_header(const unsigned char *at, Header *h);
void write_header(unsigned char *to, const Header *h);
/* Whether so many hashes are in range, and the header's numbers with them. */
int can_put(const Header *h, const int64_t *hashes, Py_ssize_t count);

/* Memory for the changes of so many keys; -1 without an error if there is none. */
int begin_changes(Changes *changes, Py_ssize_t count);
void end_changes(Changes *changes);

/* Prefetch the slots of ``count`` keys into the processor's cache. */
void fetch_slots(const unsigned char *table, uint32_t slots, const int64_t *hashes,
                 Py_ssize_t count);
/* Writes entries, and notes header and changes; ``time_step`` 0 = one time for all. */
void chain_keys(const unsigned char *table, uint32_t slots, Header *h, Py_ssize_t count,
                const int64_t *hashes, const int64_t *places, const int64_t *times, int time_step,
                unsigned char *entry, Changes *changes);

/* One slot, whole. */
static inline void store_slot(unsigned char *table, Change change)
{
    INSTANT;
    *(volatile uint32_t *)(table + (size_t)change.slot * SLOT) =
        __builtin_bswap32((uint32_t)change.value);
}

#endif
