/* Records of a log into messages: the hottest loop of consumers. The references are read_run and
 * look of storage/log/record_reader.py; a test compares both. The format is known here only as far
 * as there.
 *
 * Most readers want the body, and few of the other fields. So a message has a copy of its record's
 * head and properties (``_stored``), and each field is made from it when it is read first.
 */
#include "lookups.h"
#include "properties.h"
#include "runs.h"
#include "structmember.h"

/* Slots of a MessageExt, in the order of NAMES. */
enum {
    TOPIC, FLAG, STORED_BODY, PROPERTY_BYTES, QUEUE_ID, QUEUE_OFFSET, COMMITLOG_OFFSET, STORE_SIZE,
    BODY_CRC, SYS_FLAG, BORN_TIMESTAMP, BORN_HOST_BYTES, STORE_TIMESTAMP, STORE_HOST_BYTES,
    RECONSUME_TIMES, PREPARED_TRANSACTION_OFFSET, VERSION, ADDED_PROPERTY_BYTES, BODY, PROPERTIES,
    KNOWN_ADDED, STORED, SLOTS
};
static const char *const NAMES[SLOTS] = {
    "topic", "flag", "stored_body", "property_bytes", "queue_id", "queue_offset",
    "commitlog_offset", "store_size", "body_crc", "sys_flag", "born_timestamp", "born_host_bytes",
    "store_timestamp", "store_host_bytes", "reconsume_times", "prepared_transaction_offset",
    "version", "added_property_bytes", "_body", "_properties", "_added", "_stored",
};

enum { HOST = 8, BLINDLY = 1280 };

static PyTypeObject *message_type; /* MessageExt, once it is bound; owned */
static allocfunc allocate;
static Py_ssize_t offsets[SLOTS];
static PyObject *one, *no_bytes, *inflated_name;

static void put(PyObject *message, int slot, PyObject *value)
{
    *(PyObject **)((char *)message + offsets[slot]) = value;
}
/* The value of a slot, borrowed; NULL if it is empty. */
static PyObject *slot_of(PyObject *message, int slot)
{
    return *(PyObject **)((char *)message + offsets[slot]);
}
/* Takes over the value. */
static void replace(PyObject *message, int slot, PyObject *value)
{
    PyObject *old = slot_of(message, slot);
    put(message, slot, value);
    Py_XDECREF(old);
}

/* -- fields that are made when they are read first ----------------------------------------- */

/* Where a field lies in the head of a record with IPv4 hosts, and how it is stored. */
typedef enum { INT, LONG, HOST_BYTES, REST } Kind;
typedef struct {
    int slot, at;
    Kind kind;
} Field;
static const Field fields[] = {
    {STORE_SIZE, 0, INT}, {BODY_CRC, 8, INT}, {QUEUE_ID, 12, INT}, {FLAG, 16, INT},
    {QUEUE_OFFSET, QUEUE_OFFSET_AT, LONG}, {COMMITLOG_OFFSET, 28, LONG}, {SYS_FLAG, 36, INT},
    {BORN_TIMESTAMP, 40, LONG}, {BORN_HOST_BYTES, 48, HOST_BYTES}, {STORE_TIMESTAMP, 56, LONG},
    {STORE_HOST_BYTES, 64, HOST_BYTES}, {RECONSUME_TIMES, 72, INT},
    {PREPARED_TRANSACTION_OFFSET, 76, LONG}, {PROPERTY_BYTES, HEAD, REST},
};
enum { LATE = sizeof fields / sizeof fields[0] };

/* The copy of head and properties, NULL if the message has none. */
static const unsigned char *stored_of(PyObject *message, Py_ssize_t *rest)
{
    PyObject *stored = slot_of(message, STORED);
    if (stored == NULL || !PyBytes_Check(stored) || PyBytes_Size(stored) < HEAD)
        return NULL;
    *rest = PyBytes_Size(stored) - HEAD;
    return (const unsigned char *)PyBytes_AsString(stored);
}

static PyObject *get_field(PyObject *message, void *closure)
{
    const Field *field = closure;
    PyObject *value = slot_of(message, field->slot);
    Py_ssize_t rest;
    const unsigned char *stored;
    if (value != NULL)
        return Py_NewRef(value);
    if ((stored = stored_of(message, &rest)) == NULL) {
        PyErr_SetString(PyExc_AttributeError, NAMES[field->slot]);
        return NULL;
    }
    const unsigned char *at = stored + field->at;
    switch (field->kind) {
    case INT: value = PyLong_FromLong(int_at(at)); break;
    case LONG: value = PyLong_FromLongLong(long_at(at)); break;
    case HOST_BYTES: value = PyBytes_FromStringAndSize((const char *)at, HOST); break;
    case REST: value = PyBytes_FromStringAndSize((const char *)at, rest); break;
    }
    if (value != NULL)
        replace(message, field->slot, Py_NewRef(value));
    return value;
}
static int set_slot(PyObject *message, int slot, PyObject *value)
{
    if (value == NULL) {
        PyErr_Format(PyExc_AttributeError, "%s can not be deleted", NAMES[slot]);
        return -1;
    }
    replace(message, slot, Py_NewRef(value));
    return 0;
}
static int set_field(PyObject *message, PyObject *value, void *closure)
{
    return set_slot(message, ((const Field *)closure)->slot, value);
}

/* Whether the body is stored compressed; -1 with an error set. */
static int is_compressed(PyObject *message)
{
    static const Field sys_flag = {SYS_FLAG, 36, INT};
    Py_ssize_t rest;
    const unsigned char *stored = stored_of(message, &rest);
    if (slot_of(message, SYS_FLAG) == NULL && stored != NULL)
        return int_at(stored + sys_flag.at) & COMPRESSED;
    PyObject *flag = get_field(message, (void *)&sys_flag);
    int64_t bits = flag ? PyLong_AsLongLong(flag) : 0;
    Py_XDECREF(flag);
    return PyErr_Occurred() ? -1 : (int)(bits & COMPRESSED);
}
static PyObject *get_body(PyObject *message, void *nothing)
{
    (void)nothing;
    PyObject *body = slot_of(message, BODY);
    if (body == NULL || body == Py_None) {
        int inflates = is_compressed(message);
        if (inflates)
            return inflates < 0 ? NULL : PyObject_CallMethodObjArgs(message, inflated_name, NULL);
        body = slot_of(message, STORED_BODY);
    }
    if (body == NULL)
        PyErr_SetString(PyExc_AttributeError, NAMES[STORED_BODY]);
    return Py_XNewRef(body);
}
static int set_body(PyObject *message, PyObject *value, void *nothing)
{
    (void)nothing;
    return set_slot(message, BODY, value);
}

/* The message's own properties as a new dict. */
static PyObject *own_properties(PyObject *message)
{
    static const Field property_bytes = {PROPERTY_BYTES, HEAD, REST};
    Py_ssize_t rest;
    const unsigned char *stored = stored_of(message, &rest);
    if (slot_of(message, PROPERTY_BYTES) == NULL && stored != NULL)
        return properties_of((const char *)stored + HEAD, rest);
    PyObject *bytes = get_field(message, (void *)&property_bytes), *found = NULL;
    char *at;
    if (bytes != NULL && PyBytes_AsStringAndSize(bytes, &at, &rest) == 0)
        found = properties_of(at, rest);
    Py_XDECREF(bytes);
    return found;
}
/* Adds to a dict what was added to a message since ``known``; 0, or -1 with an error set. */
static int add_since(PyObject *properties, PyObject *added, PyObject *known)
{
    char *at, *start = NULL;
    Py_ssize_t length, done = 0;
    if (PyBytes_AsStringAndSize(added, &at, &length) < 0
        || (known != NULL && PyBytes_AsStringAndSize(known, &start, &done) < 0))
        return -1;
    if (done > length || memcmp(at, start, (size_t)done))
        done = 0;
    PyObject *more = properties_of(at + done, length - done);
    int failed = more == NULL ? -1 : PyDict_Update(properties, more);
    Py_XDECREF(more);
    return failed;
}
static PyObject *get_properties(PyObject *message, void *nothing)
{
    (void)nothing;
    PyObject *found = slot_of(message, PROPERTIES), *added = slot_of(message, ADDED_PROPERTY_BYTES);
    if (added == NULL) {
        PyErr_SetString(PyExc_AttributeError, NAMES[ADDED_PROPERTY_BYTES]);
        return NULL;
    }
    if (found == NULL || found == Py_None) {
        if ((found = own_properties(message)) == NULL)
            return NULL;
        replace(message, PROPERTIES, found);
        replace(message, KNOWN_ADDED, Py_NewRef(no_bytes));
        added = slot_of(message, ADDED_PROPERTY_BYTES);
    }
    Py_INCREF(found);
    Py_INCREF(added);
    PyObject *known = slot_of(message, KNOWN_ADDED);
    int failed = added == known ? 0 : add_since(found, added, known);
    if (failed || added == known)
        Py_DECREF(added);
    else
        replace(message, KNOWN_ADDED, added);
    if (failed)
        Py_CLEAR(found);
    return found;
}
static int set_properties(PyObject *message, PyObject *value, void *nothing)
{
    (void)nothing;
    if (set_slot(message, PROPERTIES, value) < 0)
        return -1;
    replace(message, KNOWN_ADDED, Py_XNewRef(slot_of(message, ADDED_PROPERTY_BYTES)));
    return 0;
}

static PyGetSetDef ways[] = {
    {"body", get_body, set_body,
     "The body as it was sent, inflated if it is stored compressed.\n\n"
     "An inflated body of more than 1 MiB is not kept: each use inflates it again.",
     NULL},
    {"properties", get_properties, set_properties, "All properties, reserved ones too.", NULL},
};
static PyGetSetDef field_ways[LATE];

static int set_way(PyTypeObject *type, PyGetSetDef *way)
{
    PyObject *descriptor = PyDescr_NewGetSet(type, way);
    int failed = descriptor == NULL
                     ? -1
                     : PyObject_SetAttrString((PyObject *)type, way->name, descriptor);
    Py_XDECREF(descriptor);
    return failed;
}
/* Makes these attributes of the class read as above. */
static int set_ways(PyTypeObject *type)
{
    for (int i = 0; i < LATE; i++) {
        field_ways[i] = (PyGetSetDef){NAMES[fields[i].slot], get_field, set_field, NULL,
                                      (void *)&fields[i]};
        if (set_way(type, &field_ways[i]) < 0)
            return -1;
    }
    return set_way(type, &ways[0]) < 0 || set_way(type, &ways[1]) < 0 ? -1 : 0;
}

/* The offsets of the slots of a class and of those it inherits; -1 with an error set if one is
 * missing. */
static int find_slots(PyTypeObject *type)
{
    for (int slot = 0; slot < SLOTS; slot++)
        offsets[slot] = 0;
    for (PyTypeObject *of = type; of != NULL; of = PyType_GetSlot(of, Py_tp_base)) {
        PyMemberDef *member = NULL;
        if (PyType_GetFlags(of) & Py_TPFLAGS_HEAPTYPE)
            member = PyType_GetSlot(of, Py_tp_members);
        else
            break; /* object itself */
        for (; member != NULL && member->name != NULL; member++)
            for (int slot = 0; slot < SLOTS; slot++)
                if (!offsets[slot] && member->type == T_OBJECT_EX
                    && !strcmp(member->name, NAMES[slot]))
                    offsets[slot] = member->offset;
    }
    for (int slot = 0; slot < SLOTS; slot++)
        if (!offsets[slot]) {
            PyErr_Format(PyExc_TypeError, "the class has no slot %s", NAMES[slot]);
            return -1;
        }
    return 0;
}

PyDoc_STRVAR(bind_doc, "bind(message_class)\n\n"
                       "Set the class of messages, and make its fields come when they are first\n"
                       "read; once, before read_run.");
static PyObject *bind(PyObject *module, PyObject *type)
{
    (void)module;
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "a class is required");
        return NULL;
    }
    if (find_slots((PyTypeObject *)type) < 0 || set_ways((PyTypeObject *)type) < 0)
        return NULL;
    allocate = (allocfunc)PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);
    Py_INCREF(type);
    Py_XDECREF((PyObject *)message_type);
    message_type = (PyTypeObject *)type;
    Py_RETURN_NONE;
}

static PyObject *last_topic; /* that of consecutive records is mostly the same one */

/* The text of a topic field; a new reference. */
static PyObject *topic_at(const unsigned char *at, Py_ssize_t length)
{
    Py_ssize_t known = -1;
    const char *text = last_topic ? PyUnicode_AsUTF8AndSize(last_topic, &known) : NULL;
    if (last_topic != NULL && text == NULL)
        PyErr_Clear(); /* no memory: treated as another one */
    if (text == NULL || known != length || memcmp(text, at, length)) {
        PyObject *topic = PyUnicode_DecodeUTF8((const char *)at, length, "replace");
        if (topic == NULL)
            return NULL;
        Py_XDECREF(last_topic);
        last_topic = topic;
    }
    Py_INCREF(last_topic);
    return last_topic;
}

/* A message of a record whose lengths are right; ``topic`` is borrowed. NULL without an error if the
 * checksum of the body is wrong; ``sum`` 0: it is not compared. */
static PyObject *message_of(const unsigned char *record, int32_t size, PyObject *topic,
                            int32_t body_length, const unsigned char *properties, int sum)
{
    const Py_ssize_t rest = record + size - properties;
    PyObject *body = PyBytes_FromStringAndSize(NULL, body_length), *stored = NULL, *message = NULL;
    if (body == NULL)
        return NULL;
    /* of what was copied: the file may change */
    const uint32_t found = crc32_and_copy((unsigned char *)PyBytes_AsString(body), record + HEAD,
                                          (size_t)body_length);
    if (!sum || (int32_t)(found & CRC_MASK) == int_at(record + 8))
        stored = PyBytes_FromStringAndSize(NULL, HEAD + rest);
    if (stored != NULL)
        message = allocate(message_type, 0);
    if (message == NULL) {
        Py_DECREF(body);
        Py_XDECREF(stored);
        return NULL;
    }
    char *to = PyBytes_AsString(stored);
    memcpy(to, record, HEAD);
    memcpy(to + HEAD, properties, (size_t)rest);
    put(message, STORED, stored);
    put(message, STORED_BODY, body);
    put(message, TOPIC, Py_NewRef(topic));
    put(message, VERSION, Py_NewRef(one));
    put(message, ADDED_PROPERTY_BYTES, Py_NewRef(no_bytes));
    put(message, BODY, Py_NewRef(Py_None));
    put(message, PROPERTIES, Py_NewRef(Py_None));
    return message;
}

PyObject *messages_of(const Run *run, PyObject *topic, int64_t count, int64_t byte_limit,
                      int64_t *total, int *limited)
{
    PyObject *found = NULL;
    *total = 0;
    *limited = 0;
    if (message_type == NULL)
        PyErr_SetString(PyExc_RuntimeError, "bind comes first");
    else
        found = PyList_New(0);
    for (Py_ssize_t number = 0; found != NULL; number++) {
        const unsigned char *record = record_of(run, number);
        if (record == NULL)
            break;
        int32_t size = size_of(run, number);
        if (number && (size > byte_limit - *total || number == count)) {
            *limited = 1;
            break;
        }
        fetch_half(run, number + 1);
        int32_t body_length = body_of(run, number, record);
        if (body_length < 0)
            break;
        PyObject *message = message_of(record, size, topic, body_length,
                                       record + HEAD + body_length + run->field.len + 2, 1);
        if (message == NULL && !PyErr_Occurred())
            break;
        if (message == NULL || PyList_Append(found, message) < 0)
            Py_CLEAR(found);
        Py_XDECREF(message);
        fetch_other_half(run, number + 1);
        *total += size;
    }
    return found;
}

PyDoc_STRVAR(read_run_doc,
             "read_run(units, log, first, topic, field, queue_id, queue_offset, count,"
             " byte_limit, unusual)\n\n"
             "Messages of the units whose records lie in one log file that begins at ``first``,\n"
             "and how many bytes these records have.\n\n"
             "Ends before an unusual record, as RecordReader.read_run says.");
static PyObject *read_run(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    (void)module;
    if (!are_arguments(given, 10))
        return NULL;
    int limited;
    int64_t count = PyLong_AsLongLong(args[7]), byte_limit = PyLong_AsLongLong(args[8]), total;
    Run run = {
        .first = PyLong_AsLongLong(args[2]), .queue_id = PyLong_AsLongLong(args[5]),
        .queue_offset = PyLong_AsLongLong(args[6]), .unusual = (int32_t)PyLong_AsLongLong(args[9]),
    };
    if (!PyErr_Occurred() && !PyUnicode_Check(args[3]))
        PyErr_SetString(PyExc_TypeError, "a topic is text");
    if (get_run(&run, args[0], args[1], args[4]) < 0)
        return NULL;
    PyObject *found = messages_of(&run, args[3], count, byte_limit, &total, &limited);
    release_run(&run);
    return found ? Py_BuildValue("NL", found, (long long)total) : NULL;
}

PyDoc_STRVAR(read_bodies_doc,
             "read_bodies(units, log, first, field, queue_id, queue_offset, byte_limit, unusual)\n"
             "\n"
             "Bodies of the units whose records lie in the log file that begins at ``first``, as\n"
             "ColumnReader reads them; and as int64 store times, log offsets, sizes and flags, as\n"
             "many of each as there are units. None if any of them is unusual.");
static PyObject *read_bodies(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    (void)module;
    if (!are_arguments(given, 8))
        return NULL;
    int64_t byte_limit = PyLong_AsLongLong(args[6]), total = 0;
    Run run = {
        .first = PyLong_AsLongLong(args[2]), .queue_id = PyLong_AsLongLong(args[4]),
        .queue_offset = PyLong_AsLongLong(args[5]), .unusual = (int32_t)PyLong_AsLongLong(args[7]),
    };
    if (get_run(&run, args[0], args[1], args[3]) < 0)
        return NULL;
    Py_ssize_t count = run.units.len / UNIT, number = 0;
    PyObject *bodies = PyList_New(0), *columns = PyBytes_FromStringAndSize(NULL, count * 32);
    int64_t *times = columns ? (int64_t *)PyBytes_AsString(columns) : NULL;
    int usual = bodies != NULL && columns != NULL;
    for (; usual && number < count; number++) {
        int64_t position = place_of(&run, number);
        int32_t size = size_of(&run, number), body_length = -1;
        if (number && (position < 0 || position >= run.log.len || size <= 0
                       || total + size > byte_limit))
            break; /* the rest is read another time */
        const unsigned char *record = record_of(&run, number);
        fetch_next(&run, number + 1);
        if (record != NULL)
            body_length = usual_body(&run, number, record);
        PyObject *body = NULL;
        if (body_length >= 0)
            body = PyBytes_FromStringAndSize((const char *)record + HEAD, body_length);
        usual = body != NULL && PyList_Append(bodies, body) == 0;
        Py_XDECREF(body);
        if (usual) {
            times[number] = long_at(record + 56);
            times[count + number] = run.first + position;
            times[2 * count + number] = size;
            times[3 * count + number] = int_at(record + 36);
        }
        total += size;
    }
    release_run(&run);
    if (usual)
        return Py_BuildValue("NN", bodies, columns);
    Py_XDECREF(bodies);
    Py_XDECREF(columns);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

PyObject *message_at(const Py_buffer *log, int64_t position, int64_t limit, int64_t offset,
                     int32_t unusual)
{
    if (message_type == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "bind comes first");
        return NULL;
    }
    if (limit > log->len || position < 0 || position > limit - LEAST)
        return NULL;
    const unsigned char *record = (const unsigned char *)log->buf + position;
    fetch(record, limit - position < BLINDLY ? (int32_t)(limit - position) : BLINDLY);
    int32_t size = int_at(record), body_length = int_at(record + 84);
    if (size < LEAST || size > MOST || size > limit - position || int_at(record + 4) != MAGIC_V1
        || long_at(record + 28) != offset || (int_at(record + 36) & unusual) || body_length < 0
        || body_length > size - LEAST)
        return NULL;
    const unsigned char *field = record + HEAD + body_length;
    int32_t length = *field, rest = size - LEAST - body_length - length;
    const unsigned char *properties = field + 1 + length + 2;
    if (length >= 128 || rest < 0 || (int32_t)big(properties - 2, 2) != rest
        || rest > LONGEST_PROPERTIES)
        return NULL;
    PyObject *topic = topic_at(field + 1, length), *message = NULL;
    if (topic != NULL)
        message = message_of(record, size, topic, body_length, properties, body_length > 0);
    Py_XDECREF(topic);
    return message;
}

PyDoc_STRVAR(read_at_doc,
             "read_at(log, position, limit, offset, unusual)\n\n"
             "The message whose record begins at ``position`` of a log file and ends at"
             " ``limit``\n"
             "or before, None if it is unusual, or not the one of ``offset``.\n"
             "See RecordReader.look.");
static PyObject *read_at(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Py_buffer log;
    (void)module;
    if (!are_arguments(count, 5))
        return NULL;
    int64_t position = PyLong_AsLongLong(args[1]), limit = PyLong_AsLongLong(args[2]);
    int64_t offset = PyLong_AsLongLong(args[3]), unusual = PyLong_AsLongLong(args[4]);
    if (PyErr_Occurred() || PyObject_GetBuffer(args[0], &log, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *message = message_at(&log, position, limit, offset, (int32_t)unusual);
    PyBuffer_Release(&log);
    return message == NULL && !PyErr_Occurred() ? Py_NewRef(Py_None) : message;
}

PyMethodDef message_functions[] = {
    {"bind", bind, METH_O, bind_doc},
    {"read_run", (PyCFunction)(void (*)(void))read_run, METH_FASTCALL, read_run_doc},
    {"read_bodies", (PyCFunction)(void (*)(void))read_bodies, METH_FASTCALL, read_bodies_doc},
    {"read_at", (PyCFunction)(void (*)(void))read_at, METH_FASTCALL, read_at_doc},
    {NULL, NULL, 0, NULL},
};

int prepare_messages(void)
{
    one = PyLong_FromLong(1);
    no_bytes = PyBytes_FromStringAndSize("", 0);
    inflated_name = PyUnicode_InternFromString("_inflated_once");
    return one && no_bytes && inflated_name ? 0 : -1;
}
