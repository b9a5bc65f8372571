/* Texts: Java's String.hashCode, as in storage/format/java_hash.py; keys in KEYS. */
#include "text.h"

enum { P1 = 31, P2 = 961, P3 = 29791, P4 = 923521 };

/* The hash of a text that continues one whose hash is ``hash``; ``at`` is UTF-8, which Java hashes
 * as UTF-16. */
uint32_t java_hash_on(uint32_t hash, const char *text, Py_ssize_t length)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    for (; end - at >= 4 && !((at[0] | at[1] | at[2] | at[3]) & 0x80); at += 4)
        hash = hash * P4 + at[0] * P3 + at[1] * P2 + at[2] * P1 + at[3];
    while (at < end) {
        uint32_t c = *at++;
        if (c >= 0xF0) {
            c = (c & 7) << 18 | (at[0] & 63u) << 12 | (at[1] & 63u) << 6 | (at[2] & 63u);
            at += 3;
            c -= 0x10000;
            hash = hash * P1 + (0xD800 | c >> 10);
            c = 0xDC00 | (c & 0x3FF);
        } else if (c >= 0xE0) {
            c = (c & 15) << 12 | (at[0] & 63u) << 6 | (at[1] & 63u);
            at += 2;
        } else if (c >= 0x80) {
            c = (c & 31) << 6 | (*at++ & 63u);
        }
        hash = hash * P1 + c;
    }
    return hash;
}

/* An unsigned hash in the form of the index: Java's Math.abs, but 0 for -2^31. */
int32_t absolute_hash(uint32_t hash)
{
    return (int32_t)(hash < 0x80000000u ? hash : (0u - hash) & 0x7FFFFFFFu);
}

/* The UTF-8 of a string, or NULL without an error if it is no string or has none (half a pair). */
const char *text_of(PyObject *string, Py_ssize_t *length)
{
    if (!PyUnicode_CheckExact(string))
        return NULL;
    const char *found = PyUnicode_AsUTF8AndSize(string, length);
    if (found == NULL)
        PyErr_Clear();
    return found;
}

int32_t hash_id(IdHash *last, uint32_t begun, const char *id, Py_ssize_t size)
{
    enum { DIFFERENT = 4 };
    const Py_ssize_t same = size - DIFFERENT;
    if (same <= 0 || id[same] & 0x80) /* a character may begin before that */
        return absolute_hash(java_hash_on(begun, id, size));
    if (last->at == NULL || last->size != same || last->begun != begun
        || memcmp(last->at, id, (size_t)same))
        *last = (IdHash){id, same, begun, java_hash_on(begun, id, same)};
    return absolute_hash(java_hash_on(last->hash, id + same, DIFFERENT));
}

Py_ssize_t key_count(const char *at, Py_ssize_t length)
{
    Py_ssize_t parts = 0;
    if (length && memchr(at, ' ', (size_t)length) == NULL)
        return 1;
    for (Py_ssize_t i = 0; i < length; i++)
        parts += at[i] != ' ' && (i == 0 || at[i - 1] == ' ');
    return parts;
}

int64_t *hash_parts(const char *at, Py_ssize_t length, uint32_t begun, int64_t *to)
{
    const char *const end = at + length;
    while (at < end) {
        const char *stop = memchr(at, ' ', (size_t)(end - at));
        if (stop == NULL)
            stop = end;
        if (stop > at)
            *to++ = absolute_hash(java_hash_on(begun, at, stop - at));
        at = stop + 1;
    }
    return to;
}
