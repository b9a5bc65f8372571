/* Records of many messages in one buffer: the references are prepare_pure of
 * storage/format/encode.py, prepare_column_pure of storage/format/column_pure.py, PreparedRecords'
 * place and units; tests compare both.
 *
 * Unusual values (a host of another length, a number that does not fit, a string without UTF-8)
 * give None, and the reference reports them.
 */
#include "made.h"

int begin(Made *made, Py_ssize_t count)
{
    memset(made, 0, sizeof *made);
    made->table = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(Row));
    made->queues = PyList_New(0);
    if (made->table == NULL || made->queues == NULL)
        return -1;
    made->rows = (Row *)PyBytes_AsString(made->table);
    return 0;
}
int make_room(Made *made, int64_t bytes, int64_t keys)
{
    made->buffer = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)bytes);
    made->hashes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)keys * 8);
    if (made->buffer == NULL || made->hashes == NULL)
        return -1;
    made->to = (unsigned char *)PyByteArray_AsString(made->buffer);
    made->hash = (int64_t *)PyBytes_AsString(made->hashes);
    return 0;
}
/* The result, or None, or NULL with an error set. */
PyObject *finish(Made *made, int done)
{
    PyObject *found = NULL;
    if (done && !PyErr_Occurred())
        found = PyTuple_Pack(4, made->buffer, made->table, made->queues, made->hashes);
    else if (!PyErr_Occurred()) {
        found = Py_None;
        Py_INCREF(found);
    }
    Py_XDECREF(made->table);
    Py_XDECREF(made->buffer);
    Py_XDECREF(made->hashes);
    Py_XDECREF(made->queues);
    return found;
}

/* -- numbers of queues ----------------------------------------------------------------------- */

/* Numbers of (topic, queue id) in order of appearance, as indexes of ``queues``. A few are found by
 * the identity of the topic; all by its value, in a dict. */
int64_t queue_number(Queues *q, PyObject *topic, int64_t value)
{
    size_t place = ((size_t)topic >> 4 ^ (size_t)value) % QUICK;
    if (q->quick[place].topic == topic && q->quick[place].queue_id == value)
        return q->quick[place].number;
    PyObject *key = Py_BuildValue("(OL)", topic, (long long)value);
    if (key == NULL)
        return -1;
    PyObject *found = PyDict_GetItemWithError(q->numbers, key);
    int64_t number = -1;
    if (found != NULL)
        number = PyLong_AsLongLong(found);
    else if (!PyErr_Occurred()) {
        PyObject *next = PyLong_FromSsize_t(PyList_Size(q->queues));
        if (next != NULL && PyDict_SetItem(q->numbers, key, next) == 0
            && PyList_Append(q->queues, key) == 0)
            number = PyLong_AsLongLong(next);
        Py_XDECREF(next);
    }
    Py_DECREF(key);
    if (number >= 0) {
        q->quick[place].topic = topic;
        q->quick[place].queue_id = value;
        q->quick[place].number = number;
    }
    return number;
}

/* -- any messages ---------------------------------------------------------------------------- */

int tag_code(PyObject *tags, PyObject **last, int64_t *code)
{
    if (tags == *last)
        return 0;
    Py_ssize_t length;
    const char *text = "";
    length = 0;
    if (tags != Py_None && (text = text_of(tags, &length)) == NULL)
        return -1;
    *code = (int32_t)java_hash_on(0, text, length);
    *last = tags;
    return 0;
}

static int hash_keys(PyObject *keys, uint32_t begun, Made *made)
{
    for (Py_ssize_t i = 0, count = PyTuple_Size(keys); i < count; i++) {
        Py_ssize_t length;
        const char *text = text_of(PyTuple_GetItem(keys, i), &length);
        if (text == NULL)
            return -1;
        *made->hash++ = absolute_hash(java_hash_on(begun, text, length));
    }
    return 0;
}

/* The sizes of all records, and what their units and keys need. */
static int measure(PyObject *messages, Py_ssize_t count, Made *made)
{
    Queues queues = {PyDict_New(), made->queues, {{0}}};
    PyObject *last_tags = NULL, *last_topic = NULL;
    Py_ssize_t topic_length = 0;
    int64_t code = 0, bytes = 0, keys = 0;
    int good = queues.numbers != NULL;
    for (Py_ssize_t i = 0; good && i < count; i++) {
        PyObject *message = PyList_GetItem(messages, i);
        Fields f;
        int32_t level;
        Row *row = made->rows + i;
        good = fields_of(message, &f) == 0;
        if (!good)
            break;
        PyObject *topic = PyTuple_GetItem(message, TOPIC);
        if (topic != last_topic) {
            good = text_of(topic, &topic_length) != NULL && topic_length > 0
                   && topic_length <= LONGEST_TOPIC;
            last_topic = topic;
        }
        PyObject *own_keys = PyTuple_GetItem(message, KEYS);
        good = good && PyTuple_Check(own_keys)
               && int32_of(PyTuple_GetItem(message, DELAY_TIME_LEVEL), &level) == 0
               && number_of(PyTuple_GetItem(message, DELAY_MS), &row->delay) == 0
               && (level <= 0 || row->delay >= 0)
               && tag_code(PyTuple_GetItem(message, TAGS), &last_tags, &code) == 0;
        if (!good)
            break;
        if (level <= 0)
            row->delay = -1;
        row->start = bytes;
        row->size = head_size(&f) + f.body_length + 1 + topic_length + 2 + f.properties_length;
        row->code = code;
        row->has_unit = !(f.sys_flag & NO_UNIT);
        row->keys = (f.sys_flag & ROLLBACK) == ROLLBACK ? 0 : PyTuple_Size(own_keys);
        row->queue = queue_number(&queues, topic, f.queue_id);
        good = row->queue >= 0;
        bytes += row->size;
        keys += row->keys;
    }
    Py_XDECREF(queues.numbers);
    return good && make_room(made, bytes, keys) == 0 ? 0 : -1;
}

static int write_run(PyObject *messages, Py_ssize_t count, Made *made)
{
    PyObject *last_topic = NULL;
    const char *topic_text = "";
    Py_ssize_t topic_length = 0;
    uint32_t topic_hash = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *message = PyList_GetItem(messages, i);
        Fields f;
        const Row *row = made->rows + i;
        if (fields_of(message, &f) < 0)
            return -1;
        PyObject *topic = PyTuple_GetItem(message, TOPIC);
        if (topic != last_topic) {
            topic_text = text_of(topic, &topic_length);
            topic_hash = java_hash_on(java_hash_on(0, topic_text, topic_length), "#", 1);
            last_topic = topic;
        }
        const uint32_t crc = crc32_and_copy(made->to + head_size(&f), f.body, (size_t)f.body_length);
        unsigned char *to =
            put_head(made->to, &f, (int32_t)row->size, (int32_t)(crc & CRC_MASK), 0, 0, 0);
        to += f.body_length;
        *to++ = (unsigned char)topic_length;
        to = put_bytes(to, topic_text, topic_length);
        to = put_length(to, f.properties_length);
        made->to = put_bytes(to, f.properties, f.properties_length);
        if (row->keys && hash_keys(PyTuple_GetItem(message, KEYS), topic_hash, made) < 0)
            return -1;
    }
    return 0;
}

PyDoc_STRVAR(run_doc, "encode_run(messages)\n\n"
                      "Buffer, table, queues and key hashes of a list of MessageInner, or None.");
static PyObject *encode_run(PyObject *module, PyObject *messages)
{
    Made made;
    (void)module;
    if (!PyList_Check(messages)) {
        PyErr_SetString(PyExc_TypeError, "a list is required");
        return NULL;
    }
    Py_ssize_t count = PyList_Size(messages);
    int done = begin(&made, count) == 0 && measure(messages, count, &made) == 0
               && write_run(messages, count, &made) == 0;
    return finish(&made, done);
}

/* -- messages that differ in body, queue and keys only --------------------------------------- */

typedef struct {
    Fields fields;
    PyObject *topic, *queue_ids, *bodies, *keys;
    const char *topic_text, *unique_ids;
    Py_ssize_t topic_length, id_length;
    int64_t code, delay;
    struct item *items;
} Column;

/* The differing parts, measured. */
struct item {
    const unsigned char *body;
    const char *key;
    Py_ssize_t body_length, key_length;
    int32_t queue_id;
};

/* Numbers of queues; the allocations for them may make the garbage collector run other code, so
 * nothing of the lists is held meanwhile. */
static int number_queues(const Column *c, Py_ssize_t count, Made *made)
{
    Queues queues = {PyDict_New(), made->queues, {{0}}};
    const int several = PyList_Check(c->queue_ids);
    int good = queues.numbers != NULL;
    for (Py_ssize_t i = 0; good && i < count; i++) {
        c->items[i].queue_id = c->fields.queue_id;
        good = !several
               || (PyList_Size(c->queue_ids) == count
                   && int32_of(PyList_GetItem(c->queue_ids, i), &c->items[i].queue_id) == 0);
        if (good)
            made->rows[i].queue = queue_number(&queues, c->topic, c->items[i].queue_id);
        good = good && made->rows[i].queue >= 0;
    }
    Py_XDECREF(queues.numbers);
    return good ? 0 : -1;
}

static int measure_column(const Column *c, Py_ssize_t count, Made *made)
{
    const Fields *f = &c->fields;
    int64_t bytes = 0, keys = 0;
    int indexed = (f->sys_flag & ROLLBACK) != ROLLBACK;
    int64_t fixed = head_size(f) + 1 + c->topic_length + 2, shared = f->properties_length;
    if (c->unique_ids != NULL)
        shared += (shared > 0) + UNIQ_KEY_SIZE + c->id_length;
    if (number_queues(c, count, made) < 0 || PyList_Size(c->bodies) != count
        || (c->keys != NULL && PyList_Size(c->keys) != count))
        return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        Row *row = made->rows + i;
        struct item *item = c->items + i;
        item->key = "";
        item->key_length = 0;
        if (bytes_of(PyList_GetItem(c->bodies, i), &item->body, &item->body_length) < 0
            || item->body_length > INT32_MAX / 2
            || (c->keys != NULL
                && (item->key = text_of(PyList_GetItem(c->keys, i), &item->key_length)) == NULL))
            return -1;
        int64_t properties = shared;
        if (item->key_length)
            properties += (shared > 0) + KEYS_NAME_SIZE + item->key_length;
        if (properties > LONGEST_PROPERTIES)
            return -1;
        row->start = bytes;
        row->size = fixed + item->body_length + properties;
        row->code = c->code;
        row->delay = c->delay;
        row->has_unit = !(f->sys_flag & NO_UNIT);
        row->keys = indexed ? (c->unique_ids != NULL) + key_count(item->key, item->key_length) : 0;
        bytes += row->size;
        keys += row->keys;
    }
    return make_room(made, bytes, keys);
}

static void write_column(Column *c, Py_ssize_t count, Made *made)
{
    const Fields *f = &c->fields;
    uint32_t begun = java_hash_on(java_hash_on(0, c->topic_text, c->topic_length), "#", 1);
    IdHash last = {0};
    Head head;
    begin_heads(&head, f);
    for (Py_ssize_t i = 0; i < count; i++) {
        const Row *row = made->rows + i;
        const Py_ssize_t key_length = c->items[i].key_length;
        const char *key = c->items[i].key;
        const char *id = c->unique_ids ? c->unique_ids + i * c->id_length : "";
        unsigned char *to = put_start(made->to, &head, row->size, c->items[i].queue_id, f->flag,
                                      c->items[i].body, c->items[i].body_length);
        *to++ = (unsigned char)c->topic_length;
        to = put_text(to, c->topic_text, c->topic_length);
        unsigned char *length = to;
        to = put_text(to + 2, (const char *)f->properties, f->properties_length);
        if (c->unique_ids != NULL) {
            if (to > length + 2)
                *to++ = 2;
            to = put_bytes(to, UNIQ_KEY, UNIQ_KEY_SIZE);
            to = put_text(to, id, c->id_length);
        }
        if (key_length) {
            if (to > length + 2)
                *to++ = 2;
            to = put_bytes(to, KEYS_NAME, KEYS_NAME_SIZE);
            to = put_text(to, key, key_length);
        }
        put_length(length, to - length - 2);
        made->to = to;
        if (!row->keys)
            continue;
        if (c->unique_ids != NULL)
            *made->hash++ = hash_id(&last, begun, id, c->id_length);
        made->hash = hash_parts(key, key_length, begun, made->hash);
    }
}

PyDoc_STRVAR(column_doc,
             "encode_column(topic, queue_ids, bodies, born_timestamp, born_host, store_host,"
             " properties, tags, unique_ids, keys, flag, sys_flag, delay_ms)\n\n"
             "The same for the arguments of prepare_column; unique_ids are joined, or None.");
static PyObject *encode_column(PyObject *module, PyObject *args)
{
    Column c = {0};
    Made made;
    PyObject *properties, *born, *store, *tags, *unique_ids, *no_tags = NULL;
    Py_ssize_t born_length, store_length, ids_length = 0;
    const unsigned char *ids = NULL;
    long long born_timestamp, delay;
    int flag, sys_flag;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO!LOOOOOOiiL", &c.topic, &c.queue_ids, &PyList_Type, &c.bodies,
                          &born_timestamp, &born, &store, &properties, &tags, &unique_ids, &c.keys,
                          &flag, &sys_flag, &delay))
        return NULL;
    Fields *f = &c.fields;
    Py_ssize_t count = PyList_Size(c.bodies);
    f->flag = flag;
    f->sys_flag = sys_flag;
    f->born_timestamp = born_timestamp;
    c.delay = delay < 0 ? -1 : delay;
    if (c.keys == Py_None)
        c.keys = NULL;
    int good = begin(&made, count) == 0 && count > 0
               && (c.topic_text = text_of(c.topic, &c.topic_length)) != NULL && c.topic_length > 0
               && c.topic_length <= LONGEST_TOPIC
               && bytes_of(properties, &f->properties, &f->properties_length) == 0
               && bytes_of(born, &f->born_host, &born_length) == 0
               && bytes_of(store, &f->store_host, &store_length) == 0
               && hosts_are_usual(f, born_length, store_length) == 0
               && tag_code(tags, &no_tags, &c.code) == 0
               && (c.keys == NULL || (PyList_Check(c.keys) && PyList_Size(c.keys) == count));
    if (good && PyList_Check(c.queue_ids))
        good = PyList_Size(c.queue_ids) == count;
    else if (good)
        good = int32_of(c.queue_ids, &f->queue_id) == 0;
    if (good && unique_ids != Py_None) {
        good = bytes_of(unique_ids, &ids, &ids_length) == 0 && ids_length > 0
               && ids_length % count == 0 && is_ascii(ids, ids_length);
        c.unique_ids = (const char *)ids;
        c.id_length = ids_length / count;
    }
    if (good && (c.items = PyMem_Malloc((size_t)count * sizeof *c.items)) == NULL) {
        PyErr_NoMemory();
        good = 0;
    }
    good = good && measure_column(&c, count, &made) == 0;
    if (good)
        write_column(&c, count, &made);
    PyMem_Free(c.items);
    return finish(&made, good);
}

PyMethodDef encode_functions[] = {
    {"encode_run", encode_run, METH_O, run_doc},
    {"encode_column", encode_column, METH_VARARGS, column_doc},
    {NULL, NULL, 0, NULL},
};
