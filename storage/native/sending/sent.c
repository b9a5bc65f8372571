/* Batches that producers send, straight into records: the steps of inner.c and encode.c without an
 * object between. The reference is MessageBuilder of broker/send with storage/format/encode.py; a
 * test compares both.
 */
#include "plain.h"
#include "record.h"

enum { ITEM_HEAD = 22, SHARED = 5 };

/* One message and its measures. */
struct item {
    struct plain plain;
    const char *id;
    Py_ssize_t id_size, properties;
};

struct batch {
    struct item *items;
    Py_ssize_t count, after_size, largest, topic_size;
    const char *after, *topic;
    Fields fields; /* common to all */
    Head head;
    int64_t bytes, keys, ids;
};

/* Takes the common fields of the messages; -1 without an error for unusual values. */
static int take_shared(struct batch *b, PyObject *topic, PyObject *queue_id, PyObject *origin)
{
    Fields *f = &b->fields;
    Py_ssize_t born_length, store_length;
    memset(f, 0, sizeof *f);
    if (!PyTuple_Check(origin) || PyTuple_Size(origin) != SHARED
        || (b->topic = text_of(topic, &b->topic_size)) == NULL || b->topic_size < 1
        || b->topic_size > LONGEST_TOPIC || int32_of(queue_id, &f->queue_id) < 0
        || number_of(PyTuple_GetItem(origin, 0), &f->born_timestamp) < 0
        || bytes_of(PyTuple_GetItem(origin, 1), &f->born_host, &born_length) < 0
        || bytes_of(PyTuple_GetItem(origin, 2), &f->store_host, &store_length) < 0
        || int32_of(PyTuple_GetItem(origin, 3), &f->sys_flag) < 0
        || int32_of(PyTuple_GetItem(origin, 4), &f->reconsume_times) < 0)
        return -1;
    return hosts_are_usual(f, born_length, store_length);
}

/* Checks a message, and measures its record; -1 if it is not plain, or has no id. */
static int measure(struct batch *b, struct item *item, PyObject *message, PyObject *topic,
                   PyObject *given_id)
{
    struct plain *plain = &item->plain;
    if (!is_plain(message, plain) || plain->body_size > b->largest
        || (plain->topic != topic && PyUnicode_Compare(plain->topic, topic)))
        return -1;
    item->properties = plain->size;
    if (plain->id != NULL) {
        item->id = plain->id;
        item->id_size = plain->id_size;
    } else if ((item->id = plain_text(given_id, &item->id_size)) != NULL)
        item->properties += (plain->size > 0) + UNIQ_KEY_SIZE + item->id_size;
    if (b->after_size)
        item->properties += (item->properties > 0) + b->after_size;
    if (item->id == NULL || item->properties > LONGEST_PROPERTIES)
        return -1;
    b->bytes += ITEM_HEAD + plain->body_size + item->properties;
    b->keys += 1 + key_count(plain->keys.at, plain->keys.size);
    b->ids += item->id_size + 1;
    return b->bytes > b->largest ? -1 : 0;
}

static unsigned char *put_record(const struct batch *b, const struct item *item, int32_t size,
                                 unsigned char *to)
{
    const struct plain *plain = &item->plain;
    to = put_start(to, &b->head, size, b->fields.queue_id, plain->flag, plain->body, plain->body_size);
    *to++ = (unsigned char)b->topic_size;
    to = put_text(to, b->topic, b->topic_size);
    to = put_length(to, item->properties);
    unsigned char *const first = to;
    to = write_properties(plain, to);
    if (plain->id == NULL) {
        if (to != first)
            *to++ = 2;
        to = put_bytes(to, UNIQ_KEY, UNIQ_KEY_SIZE);
        to = put_text(to, item->id, item->id_size);
    }
    if (b->after_size) {
        if (to != first)
            *to++ = 2;
        to = put_text(to, b->after, b->after_size);
    }
    return to;
}

/* Buffer, table, queues, key hashes, ids. */
static PyObject *write_all(struct batch *b, PyObject *topic, PyObject *queue_id)
{
    const int32_t sys_flag = b->fields.sys_flag;
    const int indexed = (sys_flag & ROLLBACK) != ROLLBACK;
    const int64_t fixed = head_size(&b->fields) + 1 + b->topic_size + 2;
    const int64_t bytes = b->bytes + b->count * (fixed - ITEM_HEAD);
    PyObject *buffer = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)bytes);
    PyObject *table = PyBytes_FromStringAndSize(NULL, b->count * (Py_ssize_t)sizeof(Row));
    PyObject *hashes = PyBytes_FromStringAndSize(NULL, indexed ? (Py_ssize_t)b->keys * 8 : 0);
    PyObject *ids = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)b->ids), *found = NULL;
    if (buffer != NULL && table != NULL && hashes != NULL && ids != NULL) {
        unsigned char *const first = (unsigned char *)PyByteArray_AsString(buffer), *to = first;
        Row *row = (Row *)PyBytes_AsString(table);
        int64_t *hash = (int64_t *)PyBytes_AsString(hashes);
        char *id = PyBytes_AsString(ids);
        uint32_t begun = java_hash_on(java_hash_on(0, b->topic, b->topic_size), "#", 1);
        IdHash last = {0};
        const char *tags = NULL;
        int32_t code = 0;
        begin_heads(&b->head, &b->fields);
        for (const struct item *item = b->items; item < b->items + b->count; item++, row++) {
            int64_t *const own = hash;
            row->start = to - first;
            row->size = fixed + item->plain.body_size + item->properties;
            if (item->plain.tags.at != tags) {
                tags = item->plain.tags.at;
                code = (int32_t)java_hash_on(0, tags, item->plain.tags.size);
            }
            row->code = code;
            row->queue = 0;
            row->delay = -1;
            row->has_unit = !(sys_flag & NO_UNIT);
            to = put_record(b, item, (int32_t)row->size, to);
            if (indexed) {
                *hash++ = hash_id(&last, begun, item->id, item->id_size);
                hash = hash_parts(item->plain.keys.at, item->plain.keys.size, begun, hash);
            }
            row->keys = hash - own;
            id = (char *)put_text((unsigned char *)id, item->id, item->id_size);
            *id++ = ',';
        }
        const char *const joined = PyBytes_AsString(ids);
        found = Py_BuildValue("OO[(OO)]ON", buffer, table, topic, queue_id, hashes,
                              PyUnicode_FromStringAndSize(joined, (Py_ssize_t)b->ids - 1));
    }
    Py_XDECREF(buffer);
    Py_XDECREF(table);
    Py_XDECREF(hashes);
    Py_XDECREF(ids);
    return found;
}

PyObject *encode_sent_batch(PyObject *topic, PyObject *queue_id, PyObject *after, PyObject *largest,
                            PyObject *origin, PyObject *messages, PyObject *unique_ids)
{
    struct batch b = {0};
    char *added;
    if (PyBytes_AsStringAndSize(after, &added, &b.after_size) < 0)
        return NULL;
    b.after = added;
    b.largest = PyLong_AsSsize_t(largest);
    b.count = length_of(messages);
    if (PyErr_Occurred())
        return NULL;
    int good = b.count > 0 && take_shared(&b, topic, queue_id, origin) == 0
               && (unique_ids == Py_None || length_of(unique_ids) == b.count);
    if (!good)
        Py_RETURN_NONE;
    b.items = PyMem_Malloc((size_t)b.count * sizeof *b.items);
    if (b.items == NULL)
        return PyErr_NoMemory();
    for (Py_ssize_t number = 0; good && number < b.count; number++)
        good = measure(&b, b.items + number, item_of(messages, number), topic,
                       unique_ids == Py_None ? Py_None : item_of(unique_ids, number)) == 0;
    PyObject *found = NULL;
    if (good)
        found = write_all(&b, topic, queue_id);
    else {
        found = Py_None;
        Py_INCREF(found);
    }
    PyMem_Free(b.items);
    return found;
}

PyDoc_STRVAR(sent_doc,
             "encode_sent(topic, queue_id, after, largest, origin, messages, unique_ids)\n\n"
             "The result of encode_run for plain messages of that topic, and their ids joined by"
             " commas; None if one is not plain, or they are larger than ``largest``"
             " together.\n\n"
             "``unique_ids`` are for messages without one, None: all have theirs. ``after`` are"
             " encoded properties that the broker adds.");
static PyObject *encode_sent(PyObject *module, PyObject *const *arguments, Py_ssize_t given)
{
    (void)module;
    if (!are_arguments(given, 7))
        return NULL;
    return encode_sent_batch(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                             arguments[5], arguments[6]);
}

PyMethodDef sent_functions[] = {
    {"encode_sent", (PyCFunction)(void (*)(void))encode_sent, METH_FASTCALL, sent_doc},
    {NULL, NULL, 0, NULL},
};
