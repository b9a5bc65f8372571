/* Properties of a message as pieces of their text. The reference is parse_properties of
 * storage/format/properties.py. What is unusual is left to it.
 */
#include "tables.h"
#include "text.h"

int is_utf8(Text text) { return are_utf8(text.at, text.length); }

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
