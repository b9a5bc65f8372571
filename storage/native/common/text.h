/* Texts, and keys in KEYS: those that blanks divide. */
#ifndef RMQCTL_TEXT_H
#define RMQCTL_TEXT_H
#include "native.h"

const char *text_of(PyObject *string, Py_ssize_t *length);
int is_ascii(const unsigned char *at, Py_ssize_t length);

uint32_t java_hash_on(uint32_t hash, const char *text, Py_ssize_t length);
int32_t absolute_hash(uint32_t hash);

Py_ssize_t key_count(const char *at, Py_ssize_t length);
/* Hashes for the index, which go on from that of ``topic#``; gives where the next one goes. */
int64_t *hash_parts(const char *at, Py_ssize_t length, uint32_t begun, int64_t *to);

#endif
