/* Keys for the index: hashes of the keys of many records, and the changes that putting them makes
 * in an index file. The references are columns_of of storage/index/pending_keys.py and put_keys of
 * storage/format/index_file.py.
 */
#include "keys.h"

PyDoc_STRVAR(columns_doc, "key_columns(rows)\n\n"
                          "Hash, log offset and store time of each key of a list of (topic, keys,"
                          " offset, time): native longs; or None.");
static PyObject *key_columns(PyObject *module, PyObject *rows)
{
    PyObject *found = NULL, *columns[3] = {NULL, NULL, NULL}, *last_topic = NULL;
    int64_t *to[3];
    uint32_t begun = 0;
    Py_ssize_t total = 0, made = 0;
    (void)module;
    if (!PyList_Check(rows)) {
        PyErr_SetString(PyExc_TypeError, "a list is required");
        return NULL;
    }
    Py_ssize_t count = PyList_Size(rows);
    int good = 1;
    for (Py_ssize_t i = 0; good && i < count; i++) {
        PyObject *row = PyList_GetItem(rows, i);
        good = PyTuple_Check(row) && PyTuple_Size(row) == 4 && PyTuple_Check(PyTuple_GetItem(row, 1));
        if (good)
            total += PyTuple_Size(PyTuple_GetItem(row, 1));
    }
    for (int i = 0; good && i < 3; i++) {
        columns[i] = PyBytes_FromStringAndSize(NULL, total * 8);
        good = columns[i] != NULL;
        if (good)
            to[i] = (int64_t *)PyBytes_AsString(columns[i]);
    }
    for (Py_ssize_t i = 0; good && i < count; i++) {
        PyObject *row = PyList_GetItem(rows, i);
        PyObject *topic = PyTuple_GetItem(row, 0), *keys = PyTuple_GetItem(row, 1);
        int64_t offset, timestamp;
        Py_ssize_t length;
        const char *text;
        good = number_of(PyTuple_GetItem(row, 2), &offset) == 0
               && number_of(PyTuple_GetItem(row, 3), &timestamp) == 0;
        if (good && topic != last_topic) {
            text = text_of(topic, &length);
            good = text != NULL;
            if (good)
                begun = java_hash_on(java_hash_on(0, text, length), "#", 1);
            last_topic = topic;
        }
        for (Py_ssize_t key = 0, own = PyTuple_Size(keys); good && key < own; key++, made++) {
            text = text_of(PyTuple_GetItem(keys, key), &length);
            good = text != NULL;
            if (!good)
                break;
            to[0][made] = absolute_hash(java_hash_on(begun, text, length));
            to[1][made] = offset;
            to[2][made] = timestamp;
        }
    }
    if (good)
        found = PyTuple_Pack(3, columns[0], columns[1], columns[2]);
    else if (!PyErr_Occurred()) {
        found = Py_None;
        Py_INCREF(found);
    }
    for (int i = 0; i < 3; i++)
        Py_XDECREF(columns[i]);
    return found;
}

/* -- into a file ----------------------------------------------------------------------------- */

void read_header(const unsigned char *at, Header *h)
{
    h->begin_timestamp = long_at(at);
    h->end_timestamp = long_at(at + 8);
    h->begin_offset = long_at(at + 16);
    h->end_offset = long_at(at + 24);
    h->slot_count = int_at(at + 32);
    h->index_count = int_at(at + 36);
    if (h->index_count < 1)
        h->index_count = 1;
}
void write_header(unsigned char *to, const Header *h)
{
    to = put_long(put_long(to, h->begin_timestamp), h->end_timestamp);
    to = put_long(put_long(to, h->begin_offset), h->end_offset);
    put_int(put_int(to, h->slot_count), h->index_count);
}

static int64_t seconds_between(int64_t begin, int64_t timestamp)
{
    if (begin <= 0 || timestamp <= begin)
        return 0;
    int64_t seconds = (timestamp - begin) / 1000;
    return seconds < INT32_MAX ? seconds : INT32_MAX;
}

static Change *change_of(Changes *c, int32_t slot)
{
    uint32_t at = (uint32_t)slot * 0x9E3779B1u & c->mask;
    for (; c->places[at]; at = (at + 1) & c->mask)
        if (c->changes[c->places[at] - 1].slot == slot)
            return c->changes + c->places[at] - 1;
    Change *made = c->changes + c->count++;
    c->places[at] = (int32_t)c->count;
    made->slot = slot;
    made->value = -1;
    return made;
}

int begin_changes(Changes *c, Py_ssize_t count)
{
    size_t room = 16;
    while (room < 2 * (size_t)count)
        room *= 2;
    c->changes = PyMem_Malloc((size_t)count * sizeof(Change));
    c->places = PyMem_Calloc(room, sizeof *c->places);
    c->mask = (uint32_t)room - 1;
    c->count = 0;
    if (c->changes != NULL && c->places != NULL)
        return 0;
    end_changes(c);
    return -1;
}
void end_changes(Changes *c)
{
    PyMem_Free(c->changes);
    PyMem_Free(c->places);
    c->changes = NULL; /* for a caller that could not begin, too */
    c->places = NULL;
}

int can_put(const Header *h, const int64_t *hashes, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        if (hashes[i] < 0 || hashes[i] > INT32_MAX)
            return 0;
    return count <= 1 << 28 && h->slot_count <= INT32_MAX - count
           && h->index_count <= INT32_MAX - count;
}

void fetch_slots(const unsigned char *table, uint32_t slots, const int64_t *hashes,
                 Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        __builtin_prefetch(table + (size_t)((uint32_t)hashes[i] % slots) * SLOT);
}

void chain_keys(const unsigned char *table, uint32_t slots, Header *h, Py_ssize_t count,
                const int64_t *hashes, const int64_t *places, const int64_t *times, int time_step,
                unsigned char *entry, Changes *changes)
{
    int32_t number = h->index_count;
    for (Py_ssize_t i = 0; i < count; i++, number++) {
        int32_t slot = (int32_t)((uint32_t)hashes[i] % slots);
        int64_t timestamp = times[i * time_step];
        Change *change = change_of(changes, slot);
        int32_t previous = change->value;
        if (previous < 0) {
            previous = int_at(table + (size_t)slot * SLOT);
            if (previous <= 0 || previous > number)
                previous = 0;
        }
        INSTANT;
        entry = put_int(entry, (int32_t)hashes[i]);
        entry = put_long(entry, places[i]);
        entry = put_int(entry, (int32_t)seconds_between(h->begin_timestamp, timestamp));
        entry = put_int(entry, previous);
        change->value = number;
        if (number == 1) {
            h->begin_timestamp = timestamp;
            h->begin_offset = places[i];
        }
        h->slot_count += previous == 0;
        h->end_timestamp = timestamp;
        h->end_offset = places[i];
    }
    h->index_count = number;
}

/* A column of ``count`` native longs, or -1 with an error set. */
static int longs_of(PyObject *object, Py_buffer *view, Py_ssize_t count)
{
    if (PyObject_GetBuffer(object, view, PyBUF_SIMPLE) < 0)
        return -1;
    if (view->len == count * 8 && (uintptr_t)view->buf % 8 == 0)
        return 0;
    PyBuffer_Release(view);
    PyErr_SetString(PyExc_ValueError, "a column has another length");
    return -1;
}

/* Entries, and slots with the header after them, as bytes; None if a number is out of range. */
static PyObject *changes_of(const Py_buffer *map, uint32_t slots, const Py_buffer *hashes,
                            const int64_t *places, const int64_t *times, int time_step)
{
    Header h;
    Changes c;
    Py_ssize_t count = hashes->len / 8;
    const unsigned char *const table = (const unsigned char *)map->buf + HEADER;
    read_header(map->buf, &h);
    if (!can_put(&h, hashes->buf, count))
        Py_RETURN_NONE;
    if (begin_changes(&c, count) < 0)
        return PyErr_NoMemory();
    PyObject *entries = PyBytes_FromStringAndSize(NULL, count * ENTRY), *found = NULL;
    if (entries == NULL) {
        end_changes(&c);
        return NULL;
    }
    fetch_slots(table, slots, hashes->buf, count);
    chain_keys(table, slots, &h, count, hashes->buf, places, times, time_step,
               (unsigned char *)PyBytes_AsString(entries), &c);
    PyObject *rest = PyBytes_FromStringAndSize(NULL, HEADER + c.count * (Py_ssize_t)sizeof(Change));
    if (rest != NULL) {
        unsigned char *to = (unsigned char *)PyBytes_AsString(rest);
        write_header(to, &h);
        memcpy(to + HEADER, c.changes, c.count * sizeof(Change));
        found = PyTuple_Pack(2, entries, rest);
    }
    Py_XDECREF(rest);
    Py_DECREF(entries);
    end_changes(&c);
    return found;
}

PyDoc_STRVAR(entries_doc,
             "index_entries(map, slots, hashes, offsets, timestamps)\n\n"
             "What putting keys into an index file of so many slots writes: the entries, and the"
             " argument for index_finish; or None. One int may be the time of all.");
static PyObject *index_entries(PyObject *module, PyObject *args)
{
    PyObject *map_object, *hash_object, *place_object, *time_object, *found = NULL;
    Py_buffer map, hashes, places, times;
    long long slots, one_time = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "OLOOO", &map_object, &slots, &hash_object, &place_object,
                          &time_object))
        return NULL;
    int one = PyLong_Check(time_object);
    if (one && (one_time = PyLong_AsLongLong(time_object)) == -1 && PyErr_Occurred())
        return NULL;
    if (PyObject_GetBuffer(hash_object, &hashes, PyBUF_SIMPLE) < 0)
        return NULL;
    if (longs_of(place_object, &places, hashes.len / 8) == 0) {
        if (one || longs_of(time_object, &times, hashes.len / 8) == 0) {
            if (PyObject_GetBuffer(map_object, &map, PyBUF_SIMPLE) == 0) {
                if (slots < 1 || slots > INT32_MAX || map.len < HEADER + slots * SLOT)
                    PyErr_SetString(PyExc_ValueError, "no index file");
                else
                    found = changes_of(&map, (uint32_t)slots, &hashes, places.buf,
                                       one ? (int64_t *)&one_time : times.buf, !one);
                PyBuffer_Release(&map);
            }
            if (!one)
                PyBuffer_Release(&times);
        }
        PyBuffer_Release(&places);
    }
    PyBuffer_Release(&hashes);
    return found;
}

PyDoc_STRVAR(finish_doc, "index_finish(map, rest)\n\n"
                         "Store the slots, each whole, and then the header.");
static PyObject *index_finish(PyObject *module, PyObject *args)
{
    Py_buffer map, rest;
    (void)module;
    if (!PyArg_ParseTuple(args, "w*y*", &map, &rest))
        return NULL;
    Py_ssize_t count = (rest.len - HEADER) / (Py_ssize_t)sizeof(Change);
    const unsigned char *at = (const unsigned char *)rest.buf + HEADER;
    unsigned char *to = map.buf;
    int good = rest.len >= HEADER && map.len >= HEADER;
    for (Py_ssize_t i = 0; good && i < count; i++, at += sizeof(Change)) {
        Change change;
        memcpy(&change, at, sizeof change);
        good = change.slot >= 0 && HEADER + ((int64_t)change.slot + 1) * SLOT <= map.len;
        if (!good)
            break;
        store_slot(to + HEADER, change);
    }
    if (good) {
        INSTANT;
        memcpy(to, rest.buf, HEADER);
    }
    PyBuffer_Release(&map);
    PyBuffer_Release(&rest);
    if (!good) {
        PyErr_SetString(PyExc_ValueError, "these slots are none of the file's");
        return NULL;
    }
    Py_RETURN_NONE;
}

PyMethodDef key_functions[] = {
    {"key_columns", key_columns, METH_O, columns_doc},
    {"index_entries", index_entries, METH_VARARGS, entries_doc},
    {"index_finish", index_finish, METH_VARARGS, finish_doc},
    {NULL, NULL, 0, NULL},
};
