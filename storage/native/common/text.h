/* Texts, and keys in KEYS: separated by blanks. */
#ifndef RMQCTL_TEXT_H
#define RMQCTL_TEXT_H
#include "native.h"
#include "utf8.h"

/* Copies a text: most are short, and then it is two moves, which may overlap. */
static inline unsigned char *put_text(unsigned char *to, const char *from, Py_ssize_t size)
{
    enum { FEW = 8, MANY = 16 };
    const size_t bytes = (size_t)size;
    unsigned char first[MANY], last[MANY];
    if (bytes >= MANY && bytes <= 2 * MANY) {
        memcpy(first, from, MANY);
        memcpy(last, from + bytes - MANY, MANY);
        memcpy(to, first, MANY);
        memcpy(to + bytes - MANY, last, MANY);
    } else if (bytes >= FEW && bytes < MANY) {
        memcpy(first, from, FEW);
        memcpy(last, from + bytes - FEW, FEW);
        memcpy(to, first, FEW);
        memcpy(to + bytes - FEW, last, FEW);
    } else
        memcpy(to, from, bytes);
    return to + bytes;
}

const char *text_of(PyObject *string, Py_ssize_t *length);

uint32_t java_hash_on(uint32_t hash, const char *text, Py_ssize_t length);
int32_t absolute_hash(uint32_t hash);

Py_ssize_t key_count(const char *at, Py_ssize_t length);
/* The hash of an id for the index. Ids that were made together differ in their last characters
 * only, so the hash of the characters before them is remembered. */
typedef struct {
    const char *at; /* NULL at first; else it must stay valid */
    Py_ssize_t size;
    uint32_t begun, hash;
} IdHash;
int32_t hash_id(IdHash *last, uint32_t begun, const char *id, Py_ssize_t size);
/* Hashes for the index, which continue that of ``topic#``; gives the end of the hashes. */
int64_t *hash_parts(const char *at, Py_ssize_t length, uint32_t begun, int64_t *to);

#endif
