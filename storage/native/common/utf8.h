/* Whether bytes are the UTF-8 that Python's decoder takes: shortest forms, no surrogates. */
#ifndef RMQCTL_UTF8_H
#define RMQCTL_UTF8_H
#include <Python.h>
#include <stdint.h>
#include <string.h>

static inline int is_ascii(const unsigned char *at, Py_ssize_t length)
{
    uint64_t seen = 0, eight;
    Py_ssize_t i = 0;
    for (; i + 8 <= length; i += 8) {
        memcpy(&eight, at + i, 8);
        seen |= eight;
    }
    for (; i < length; i++)
        seen |= at[i];
    return !(seen & 0x8080808080808080u);
}

static inline int are_utf8(const unsigned char *at, Py_ssize_t length)
{
    if (is_ascii(at, length))
        return 1;
    const unsigned char *end = at + length;
    while (at < end) {
        unsigned first = *at++, least = 0x80, most = 0xBF, more;
        if (first < 0x80)
            continue;
        if (first < 0xC2 || first > 0xF4)
            return 0;
        more = first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
        if (first == 0xE0)
            least = 0xA0;
        else if (first == 0xED)
            most = 0x9F;
        else if (first == 0xF0)
            least = 0x90;
        else if (first == 0xF4)
            most = 0x8F;
        if (end - at < (Py_ssize_t)more || at[0] < least || at[0] > most)
            return 0;
        for (unsigned i = 1; i < more; i++)
            if ((at[i] & 0xC0) != 0x80)
                return 0;
        at += more;
    }
    return 1;
}

#endif
