/* Records of messages that differ in any field, from columns of these. The reference is row_inners of
 * broker/send/rows.py; a test compares both. Unusual values give None, as in encode.c.
 */
#include "made.h"

#define TAGS_NAME "TAGS\1"
enum { TAGS_NAME_SIZE = sizeof TAGS_NAME - 1 };

typedef struct {
    const char *at;
    Py_ssize_t length;
} Text;

/* What differs, measured. */
typedef struct {
    const unsigned char *body;
    Py_ssize_t body_length;
    Text topic, properties, tag, keys;
    int32_t queue_id, flag;
} Item;

typedef struct {
    PyObject *topics, *queue_ids, *bodies, *properties, *tags, *keys, *flags;
    Fields fields;
    Text added, ids; /* the ids are joined */
    Py_ssize_t count, id_length;
    Item *items;
} Columns;

static PyObject *topic_of(const Columns *c, Py_ssize_t row)
{
    return PyList_Check(c->topics) ? PyList_GetItem(c->topics, row) : c->topics;
}

static int are_lists(const Columns *c)
{
    PyObject *const lists[] = {c->queue_ids, c->bodies, c->properties, c->tags, c->keys, c->flags};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (PyList_Size(lists[i]) != c->count)
            return 0;
    return !PyList_Check(c->topics) || PyList_Size(c->topics) == c->count;
}

/* The allocations for numbers may make the garbage collector run other code, so nothing of the lists
 * is held meanwhile. */
static int number_queues(const Columns *c, Made *made)
{
    Queues queues = {PyDict_New(), made->queues, {{0}}};
    int good = queues.numbers != NULL;
    for (Py_ssize_t i = 0; good && i < c->count; i++) {
        good = are_lists(c)
               && int32_of(PyList_GetItem(c->queue_ids, i), &c->items[i].queue_id) == 0
               && int32_of(PyList_GetItem(c->flags, i), &c->items[i].flag) == 0;
        if (good)
            made->rows[i].queue = queue_number(&queues, topic_of(c, i), c->items[i].queue_id);
        good = good && made->rows[i].queue >= 0;
    }
    Py_XDECREF(queues.numbers);
    return good ? 0 : -1;
}

static int text_in(PyObject *list, Py_ssize_t row, Text *text)
{
    text->at = text_of(PyList_GetItem(list, row), &text->length);
    return text->at == NULL ? -1 : 0;
}

static int measure_item(const Columns *c, Py_ssize_t row, Item *item)
{
    const unsigned char *properties;
    PyObject *tag = PyList_GetItem(c->tags, row);
    item->tag = (Text){"", 0};
    if (bytes_of(PyList_GetItem(c->bodies, row), &item->body, &item->body_length) < 0
        || item->body_length > INT32_MAX / 2
        || bytes_of(PyList_GetItem(c->properties, row), &properties, &item->properties.length) < 0
        || (tag != Py_None && text_in(c->tags, row, &item->tag) < 0)
        || text_in(c->keys, row, &item->keys) < 0)
        return -1;
    item->properties.at = (const char *)properties;
    return 0;
}

static int64_t size_of_properties(const Columns *c, const Item *item)
{
    int64_t size = item->properties.length + (item->properties.length > 0);
    if (item->tag.length)
        size += TAGS_NAME_SIZE + item->tag.length + 1;
    size += c->added.length + (c->added.length > 0) + UNIQ_KEY_SIZE + c->id_length;
    return item->keys.length ? size + 1 + KEYS_NAME_SIZE + item->keys.length : size;
}

static int measure(const Columns *c, Made *made)
{
    const int is_indexed = (c->fields.sys_flag & ROLLBACK) != ROLLBACK;
    int64_t bytes = 0, keys = 0, code = 0;
    PyObject *last_tag = NULL, *last_topic = NULL;
    Text topic = {"", 0};
    if (number_queues(c, made) < 0 || !are_lists(c))
        return -1;
    for (Py_ssize_t i = 0; i < c->count; i++) {
        Row *row = made->rows + i;
        Item *item = c->items + i;
        PyObject *own_topic = topic_of(c, i);
        if (own_topic != last_topic) {
            topic.at = text_of(own_topic, &topic.length);
            if (topic.at == NULL || topic.length < 1 || topic.length > LONGEST_TOPIC)
                return -1;
            last_topic = own_topic;
        }
        item->topic = topic;
        if (measure_item(c, i, item) < 0
            || tag_code(PyList_GetItem(c->tags, i), &last_tag, &code) < 0)
            return -1;
        const int64_t properties = size_of_properties(c, item);
        if (properties > LONGEST_PROPERTIES)
            return -1;
        row->start = bytes;
        row->size = head_size(&c->fields) + item->body_length + 1 + topic.length + 2 + properties;
        row->code = code;
        row->delay = -1;
        row->has_unit = !(c->fields.sys_flag & NO_UNIT);
        row->keys = is_indexed ? 1 + key_count(item->keys.at, item->keys.length) : 0;
        bytes += row->size;
        keys += row->keys;
    }
    return make_room(made, bytes, keys);
}

/* A property, or some, after a separator if others are before it. */
static unsigned char *put_property(unsigned char *to, const unsigned char *begin, const char *name,
                                   Py_ssize_t name_size, Text value)
{
    if (to > begin)
        *to++ = 2;
    return put_text(put_bytes(to, name, name_size), value.at, value.length);
}

static void write_rows(const Columns *c, Made *made)
{
    const char *last_topic = NULL;
    uint32_t begun = 0;
    IdHash last = {0};
    Head head;
    begin_heads(&head, &c->fields);
    for (Py_ssize_t i = 0; i < c->count; i++) {
        const Row *row = made->rows + i;
        const Item *item = c->items + i;
        const Text id = {c->ids.at + i * c->id_length, c->id_length};
        if (item->topic.at != last_topic) {
            last_topic = item->topic.at;
            begun = java_hash_on(java_hash_on(0, last_topic, item->topic.length), "#", 1);
        }
        unsigned char *to = put_start(made->to, &head, row->size, item->queue_id, item->flag,
                                      item->body, item->body_length);
        *to++ = (unsigned char)item->topic.length;
        to = put_text(to, item->topic.at, item->topic.length);
        unsigned char *length = to, *begin = to + 2;
        to = put_text(begin, item->properties.at, item->properties.length);
        if (item->tag.length)
            to = put_property(to, begin, TAGS_NAME, TAGS_NAME_SIZE, item->tag);
        if (c->added.length)
            to = put_property(to, begin, "", 0, c->added);
        to = put_property(to, begin, UNIQ_KEY, UNIQ_KEY_SIZE, id);
        if (item->keys.length)
            to = put_property(to, begin, KEYS_NAME, KEYS_NAME_SIZE, item->keys);
        put_length(length, to - begin);
        made->to = to;
        if (!row->keys)
            continue;
        *made->hash++ = hash_id(&last, begun, id.at, id.length);
        made->hash = hash_parts(item->keys.at, item->keys.length, begun, made->hash);
    }
}

PyDoc_STRVAR(rows_doc,
             "encode_rows(topics, queue_ids, bodies, properties, tags, keys, flags, unique_ids,"
             " added, born_timestamp, born_host, store_host, sys_flag)\n\n"
             "Buffer, table, queues and key hashes of rows, or None; see broker.send.rows.");
static PyObject *encode_rows(PyObject *module, PyObject *args)
{
    Columns c;
    Made made;
    PyObject *ids, *added, *born, *store;
    Py_ssize_t born_length, store_length;
    const unsigned char *at;
    long long born_timestamp;
    int sys_flag;
    (void)module;
    memset(&c, 0, sizeof c);
    if (!PyArg_ParseTuple(args, "OO!O!O!O!O!O!OOLOOi", &c.topics, &PyList_Type, &c.queue_ids,
                          &PyList_Type, &c.bodies, &PyList_Type, &c.properties, &PyList_Type,
                          &c.tags, &PyList_Type, &c.keys, &PyList_Type, &c.flags, &ids, &added,
                          &born_timestamp, &born, &store, &sys_flag))
        return NULL;
    c.count = PyList_Size(c.bodies);
    c.fields.sys_flag = sys_flag;
    c.fields.born_timestamp = born_timestamp;
    int good = begin(&made, c.count) == 0 && c.count > 0 && are_lists(&c)
               && bytes_of(born, &c.fields.born_host, &born_length) == 0
               && bytes_of(store, &c.fields.store_host, &store_length) == 0
               && hosts_are_usual(&c.fields, born_length, store_length) == 0
               && bytes_of(added, &at, &c.added.length) == 0;
    c.added.at = (const char *)at;
    good = good && bytes_of(ids, &at, &c.ids.length) == 0 && c.ids.length > 0
           && c.ids.length % c.count == 0 && is_ascii(at, c.ids.length);
    if (good) {
        c.ids.at = (const char *)at;
        c.id_length = c.ids.length / c.count;
        c.items = PyMem_Malloc((size_t)c.count * sizeof *c.items);
        if (c.items == NULL)
            PyErr_NoMemory();
        good = c.items != NULL && measure(&c, &made) == 0;
    }
    if (good)
        write_rows(&c, &made);
    PyMem_Free(c.items);
    return finish(&made, good);
}

PyMethodDef encode_row_functions[] = {
    {"encode_rows", encode_rows, METH_VARARGS, rows_doc},
    {NULL, NULL, 0, NULL},
};
