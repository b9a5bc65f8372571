/* Records into columns: the fields of their heads, their queue, and values from their properties:
 * the tags' hash for the unit, the keys' hashes for the index. The reference is
 * storage/record_batch; a test compares both.
 *
 * The lengths in the records were checked, but a concurrent writer may have changed them since:
 * nothing is read beyond the record's end.
 */
#include "text.h"

/* The rows of the matrix that is filled, in the order of RecordBatch of
 * storage/record_batch/record_batch.py. */
enum {
    PLACE, SIZE, QUEUE_ID, QUEUE_OFFSET, PHYSICAL_OFFSET, SYS_FLAG, STORE_TIMESTAMP, TOPIC,
    PROPERTIES_AT, PROPERTIES_LENGTH, TAGS_CODE, MARKS, COLUMNS
};
enum { MARK_DELAY = 1, MARK_LIGHT = 2, MARK_ODD = 4 };
enum { KNOWN = 64, LINE = 64 };

typedef struct {
    const unsigned char *name; /* in the file; NULL = nothing known here */
    int64_t length, number;
    uint32_t hash; /* of ``topic#`` */
} Topic;

typedef struct {
    int64_t *rows, *hashes;
    Py_ssize_t count, room;
} Keys;

typedef struct {
    const unsigned char *at;
    int64_t length;
} Text;

typedef struct {
    PyObject *number_of, *hash_of;
    Topic topics[KNOWN];
    Keys keys;
} Reading;

/* The hash of a text that is not ASCII by Python, and 31 to the power of its UTF-16 code units. */
static int odd_hash(Reading *reading, Text text, uint32_t *hash, uint32_t *power)
{
    unsigned long of;
    long long units;
    PyObject *found = PyObject_CallFunction(
        reading->hash_of, "N",
        PyBytes_FromStringAndSize((const char *)text.at, (Py_ssize_t)text.length));
    if (found == NULL)
        return -1;
    int good = PyArg_ParseTuple(found, "kL", &of, &units);
    Py_DECREF(found);
    if (!good)
        return -1;
    *hash = (uint32_t)of;
    for (*power = 1; units > 0; units--)
        *power *= 31u;
    return 0;
}

static int topic_of(Reading *reading, Text name, int64_t *number, uint32_t *hash)
{
    uint32_t place = (uint32_t)name.length * 31u;
    if (name.length)
        place += name.at[0] + name.at[name.length - 1] * 7u + name.at[name.length / 2] * 13u;
    Topic *known = &reading->topics[place % KNOWN];
    if (known->name == NULL || known->length != name.length
        || memcmp(known->name, name.at, (size_t)name.length)) {
        long long its_number;
        unsigned long its_hash;
        PyObject *found = PyObject_CallFunction(
            reading->number_of, "N",
            PyBytes_FromStringAndSize((const char *)name.at, (Py_ssize_t)name.length));
        if (found == NULL)
            return -1;
        int good = PyArg_ParseTuple(found, "Lk", &its_number, &its_hash);
        Py_DECREF(found);
        if (!good)
            return -1;
        *known = (Topic){name.at, name.length, its_number, (uint32_t)its_hash};
    }
    *number = known->number;
    *hash = known->hash;
    return 0;
}

static int add_key(Reading *reading, int64_t row, uint32_t topic, Text key, int ascii)
{
    Keys *keys = &reading->keys;
    uint32_t hash;
    if (ascii)
        hash = java_hash_on(topic, (const char *)key.at, key.length);
    else {
        uint32_t power;
        if (odd_hash(reading, key, &hash, &power) < 0)
            return -1;
        hash += topic * power;
    }
    if (keys->count == keys->room) {
        Py_ssize_t room = 2 * keys->room + 64;
        int64_t *rows = PyMem_Realloc(keys->rows, (size_t)room * sizeof *rows);
        if (rows != NULL)
            keys->rows = rows;
        int64_t *hashes = PyMem_Realloc(keys->hashes, (size_t)room * sizeof *hashes);
        if (hashes != NULL)
            keys->hashes = hashes;
        if (rows == NULL || hashes == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        keys->room = room;
    }
    keys->rows[keys->count] = row;
    keys->hashes[keys->count++] = absolute_hash(hash);
    return 0;
}

static int is_named(Text item, const char *name, size_t length, Text *value)
{
    if (item.length <= (int64_t)length || memcmp(item.at, name, length))
        return 0;
    *value = (Text){item.at + length, item.length - (int64_t)length};
    return 1;
}
#define IS_NAMED(item, name, value) is_named(item, name "\1", sizeof name, value)

/* The values from the properties; the last one of a name counts, and empty ones do not. */
static int read_properties(Reading *reading, int64_t row, uint32_t topic, Text text, int64_t *code,
                           int64_t *marks)
{
    Text tags = {NULL, 0}, unique = {NULL, 0}, several = {NULL, 0}, other;
    int ascii = is_ascii(text.at, text.length);
    if (!ascii || (text.length && !text.at[text.length - 1]))
        *marks |= MARK_ODD;
    const unsigned char *at = text.at, *end = text.at + text.length;
    while (at < end) {
        const unsigned char *behind = memchr(at, 2, (size_t)(end - at));
        if (behind == NULL)
            behind = end;
        Text item = {at, behind - at};
        switch (*at) {
        case 'T':
            IS_NAMED(item, "TAGS", &tags);
            break;
        case 'K':
            IS_NAMED(item, "KEYS", &several);
            break;
        case 'U':
            IS_NAMED(item, "UNIQ_KEY", &unique);
            break;
        case 'D':
            if (IS_NAMED(item, "DELAY", &other))
                *marks |= MARK_DELAY;
            break;
        case 'I':
            if (IS_NAMED(item, "INNER_MULTI_DISPATCH", &other))
                *marks |= MARK_LIGHT;
            break;
        }
        at = behind + 1;
    }
    if (tags.length) {
        uint32_t hash = 0, power;
        if (ascii)
            hash = java_hash_on(0, (const char *)tags.at, tags.length);
        else if (odd_hash(reading, tags, &hash, &power) < 0)
            return -1;
        *code = (int32_t)hash;
    }
    if (unique.length && add_key(reading, row, topic, unique, ascii) < 0)
        return -1;
    while (several.length) {
        const unsigned char *blank = memchr(several.at, ' ', (size_t)several.length);
        Text key = {several.at, blank == NULL ? several.length : blank - several.at};
        if (key.length && add_key(reading, row, topic, key, ascii) < 0)
            return -1;
        int64_t taken = key.length + (blank != NULL);
        several.at += taken;
        several.length -= taken;
    }
    return 0;
}

/* Prefetch the records to come: the head of one, then, when its lengths are known, its end. */
static void fetch_ahead(const unsigned char *file, const int64_t *place, const int64_t *size,
                        int64_t row, int64_t count)
{
#if defined(__GNUC__)
    if (row + 8 < count) {
        __builtin_prefetch(file + place[row + 8]);
        __builtin_prefetch(file + place[row + 8] + HEAD - 1);
    }
    if (row + 4 < count) {
        int64_t start = place[row + 4], rest = size[row + 4];
        int64_t body = int_at(file + start + HEAD - 4);
        const unsigned char *end = file + start + rest;
        if (body >= 0 && body <= rest - HEAD)
            for (const unsigned char *at = end - (rest - HEAD - body); at < end; at += LINE)
                __builtin_prefetch(at);
    }
#else
    (void)file, (void)place, (void)size, (void)row, (void)count;
#endif
}

static int read_record(Reading *reading, const unsigned char *file, int64_t place, int64_t size,
                       int64_t row, int64_t stride, int64_t *columns)
{
    const unsigned char *at = file + place;
    int64_t *cell = columns + row, marks = 0, code = 0, number;
    int32_t sys_flag = int_at(at + 36);
    int born = sys_flag & BORN_V6 ? 12 : 0, hosts = born + (sys_flag & STORED_V6 ? 12 : 0);
    int width = int_at(at + 4) == MAGIC_V1 ? 1 : 2;
    int64_t behind = HEAD + hosts + width + 2;
    Text name = {at, 0}, properties = {at, 0};
    if (behind <= size) {
        int64_t body = int_at(at + HEAD + hosts - 4);
        if (body < 0)
            body = 0;
        if (body <= size - behind) {
            name.at = at + HEAD + hosts + body + width;
            name.length = (int64_t)big(name.at - width, width);
            if (name.length > size - behind - body)
                name.length = 0;
            properties.at = name.at + name.length + 2;
            properties.length = at + size - properties.at;
        }
    }
    uint32_t hash;
    if (topic_of(reading, name, &number, &hash) < 0)
        return -1;
    if (read_properties(reading, row, hash, properties, &code, &marks) < 0)
        return -1;
    cell[PLACE * stride] = place;
    cell[SIZE * stride] = size;
    cell[QUEUE_ID * stride] = int_at(at + 12);
    cell[QUEUE_OFFSET * stride] = long_at(at + 20);
    cell[PHYSICAL_OFFSET * stride] = long_at(at + 28);
    cell[SYS_FLAG * stride] = sys_flag;
    cell[STORE_TIMESTAMP * stride] = long_at(at + 56 + born);
    cell[TOPIC * stride] = number;
    cell[PROPERTIES_AT * stride] = properties.at - file;
    cell[PROPERTIES_LENGTH * stride] = properties.length;
    cell[TAGS_CODE * stride] = code;
    cell[MARKS * stride] = marks;
    return 0;
}

static PyObject *both(const Keys *keys)
{
    Py_ssize_t length = keys->count * 8;
    const void *rows = length ? keys->rows : (const void *)"";
    const void *hashes = length ? keys->hashes : (const void *)"";
    return Py_BuildValue("NN", PyBytes_FromStringAndSize(rows, length),
                         PyBytes_FromStringAndSize(hashes, length));
}

PyDoc_STRVAR(columns_doc,
             "read_columns(buffer, places, sizes, number_of, hash_of, columns)\n\n"
             "Fill the rows of ``columns``; gives rows and hashes of the keys, 8 bytes each.");
static PyObject *read_columns(PyObject *module, PyObject *args)
{
    Py_buffer buffer, places, sizes, columns;
    Reading reading = {0};
    PyObject *found = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*y*OOw*", &buffer, &places, &sizes, &reading.number_of,
                          &reading.hash_of, &columns))
        return NULL;
    int64_t count = sizes.len / 8, row = 0, stride = columns.len / 8 / COLUMNS;
    const int64_t *place = places.buf, *size = sizes.buf;
    if (places.len != sizes.len || stride < count)
        PyErr_SetString(PyExc_ValueError, "the columns do not fit");
    else {
        int64_t inside = 0;
        while (inside < count && size[inside] >= LEAST && place[inside] >= 0
               && place[inside] <= buffer.len - size[inside])
            inside++;
        if (inside < count)
            PyErr_SetString(PyExc_ValueError, "a record lies beyond the buffer");
        for (; inside == count && row < count; row++) {
            fetch_ahead(buffer.buf, place, size, row, count);
            if (read_record(&reading, buffer.buf, place[row], size[row], row, stride, columns.buf)
                < 0)
                break;
        }
        if (row == count && inside == count)
            found = both(&reading.keys);
    }
    PyMem_Free(reading.keys.rows);
    PyMem_Free(reading.keys.hashes);
    PyBuffer_Release(&buffer);
    PyBuffer_Release(&places);
    PyBuffer_Release(&sizes);
    PyBuffer_Release(&columns);
    return found;
}

PyMethodDef column_functions[] = {
    {"read_columns", read_columns, METH_VARARGS, columns_doc},
    {NULL, NULL, 0, NULL},
};
