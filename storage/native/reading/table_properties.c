/* Properties of a message as pieces of their text. The reference is parse_properties of
 * storage/format/properties.py. What is unusual is left to it.
 */
#include "tables.h"
#include "text.h"

/* Whether it is what Python's decoder takes: shortest forms, no surrogates. */
int is_utf8(Text text)
{
    if (is_ascii(text.at, text.length))
        return 1;
    const unsigned char *at = text.at, *end = at + text.length;
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

static inline int is_same(Text one, Text other)
{
    return one.length == other.length && !memcmp(one.at, other.at, (size_t)one.length);
}

static int put_property(Properties *found, Text name, Text value)
{
    Py_ssize_t place = 0;
    while (place < found->count && !is_same(found->names[place], name))
        place++;
    if (place == MOST_PROPERTIES)
        return 0;
    found->names[place] = name;
    found->values[place] = value;
    found->count += place == found->count;
    return 1;
}

#define IS(text, name)                                                                             \
    ((text).length == sizeof(name) - 1 && !memcmp((text).at, name, sizeof(name) - 1))

int parse_properties_of(Properties *found, Text text)
{
    const unsigned char *at = text.at, *end = at + text.length;
    found->count = 0;
    found->tags = found->keys = found->unique = (Text){NULL, 0};
    if (!is_utf8(text))
        return 0;
    while (at < end) {
        const unsigned char *item_end = memchr(at, 2, (size_t)(end - at));
        if (item_end == NULL)
            item_end = end;
        const unsigned char *name_end = memchr(at, 1, (size_t)(item_end - at));
        if (name_end != NULL && name_end > at && name_end + 1 < item_end) {
            Text name = {at, name_end - at}, value = {name_end + 1, item_end - name_end - 1};
            if (!put_property(found, name, value))
                return 0;
            if (IS(name, "TAGS"))
                found->tags = value;
            else if (IS(name, "KEYS"))
                found->keys = value;
            else if (IS(name, "UNIQ_KEY"))
                found->unique = value;
        }
        at = item_end + 1;
    }
    return 1;
}
