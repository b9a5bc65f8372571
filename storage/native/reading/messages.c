/* Records of a log into messages: the hottest loop of consumers. The references are read_run and
 * look of storage/log/record_reader.py; a test compares both. The format is known here only as far
 * as there.
 */
#include "lookups.h"
#include "runs.h"
#include "structmember.h"

/* Slots of a MessageExt, in the order of NAMES. */
enum {
    TOPIC, FLAG, STORED_BODY, PROPERTY_BYTES, QUEUE_ID, QUEUE_OFFSET, COMMITLOG_OFFSET, STORE_SIZE,
    BODY_CRC, SYS_FLAG, BORN_TIMESTAMP, BORN_HOST_BYTES, STORE_TIMESTAMP, STORE_HOST_BYTES,
    RECONSUME_TIMES, PREPARED_TRANSACTION_OFFSET, VERSION, ADDED_PROPERTY_BYTES, BODY, PROPERTIES,
    SLOTS
};
static const char *const NAMES[SLOTS] = {
    "topic", "flag", "stored_body", "property_bytes", "queue_id", "queue_offset",
    "commitlog_offset", "store_size", "body_crc", "sys_flag", "born_timestamp", "born_host_bytes",
    "store_timestamp", "store_host_bytes", "reconsume_times", "prepared_transaction_offset",
    "version", "added_property_bytes", "_body", "_properties",
};

enum { HOST = 8, BLINDLY = 1280 };

static PyTypeObject *message_type; /* MessageExt, once it is bound; owned */
static allocfunc allocate;
static Py_ssize_t offsets[SLOTS];
static PyObject *one, *no_bytes;

static void put(PyObject *message, int slot, PyObject *value)
{
    *(PyObject **)((char *)message + offsets[slot]) = value;
}
static int put_long(PyObject *message, int slot, int64_t value)
{
    PyObject *number = PyLong_FromLongLong(value);
    put(message, slot, number);
    return number != NULL;
}
static int put_bytes(PyObject *message, int slot, const unsigned char *at, Py_ssize_t length)
{
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)at, length);
    put(message, slot, bytes);
    return bytes != NULL;
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
                       "Set the class of messages; once, before read_run.");
static PyObject *bind(PyObject *module, PyObject *type)
{
    (void)module;
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "a class is required");
        return NULL;
    }
    if (find_slots((PyTypeObject *)type) < 0)
        return NULL;
    allocate = (allocfunc)PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);
    Py_INCREF(type);
    Py_XDECREF((PyObject *)message_type);
    message_type = (PyTypeObject *)type;
    Py_RETURN_NONE;
}

/* The values that consecutive records mostly have in common: made once, and shared by messages. */
static struct {
    int64_t value;
    PyObject *number;
} last_times[2];
static PyObject *last_hosts[2];
static PyObject *last_topic;

static int put_time(PyObject *message, int slot, int which, int64_t value)
{
    if (last_times[which].number == NULL || last_times[which].value != value) {
        PyObject *number = PyLong_FromLongLong(value);
        if (number == NULL)
            return 0;
        Py_XDECREF(last_times[which].number);
        last_times[which].number = number;
        last_times[which].value = value;
    }
    Py_INCREF(last_times[which].number);
    put(message, slot, last_times[which].number);
    return 1;
}
static int put_host(PyObject *message, int slot, int which, const unsigned char *at)
{
    PyObject *last = last_hosts[which];
    if (last == NULL || memcmp(PyBytes_AsString(last), at, HOST)) {
        PyObject *host = PyBytes_FromStringAndSize((const char *)at, HOST);
        if (host == NULL)
            return 0;
        Py_XDECREF(last);
        last = last_hosts[which] = host;
    }
    Py_INCREF(last);
    put(message, slot, last);
    return 1;
}
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

/* A message of a record whose lengths and checksum are right; ``topic`` is borrowed. */
static PyObject *message_of(const unsigned char *record, int32_t size, PyObject *topic,
                            int32_t body_length, const unsigned char *properties)
{
    PyObject *message = allocate(message_type, 0);
    if (message == NULL)
        return NULL;
    Py_INCREF(topic);
    put(message, TOPIC, topic);
    Py_INCREF(one);
    put(message, VERSION, one);
    Py_INCREF(no_bytes);
    put(message, ADDED_PROPERTY_BYTES, no_bytes);
    Py_INCREF(Py_None);
    put(message, BODY, Py_None);
    Py_INCREF(Py_None);
    put(message, PROPERTIES, Py_None);
    if (put_long(message, QUEUE_ID, int_at(record + 12))
        && put_long(message, QUEUE_OFFSET, long_at(record + 20))
        && put_long(message, COMMITLOG_OFFSET, long_at(record + 28))
        && put_long(message, STORE_SIZE, size) && put_long(message, BODY_CRC, int_at(record + 8))
        && put_long(message, FLAG, int_at(record + 16))
        && put_long(message, SYS_FLAG, int_at(record + 36))
        && put_time(message, BORN_TIMESTAMP, 0, long_at(record + 40))
        && put_host(message, BORN_HOST_BYTES, 0, record + 48)
        && put_time(message, STORE_TIMESTAMP, 1, long_at(record + 56))
        && put_host(message, STORE_HOST_BYTES, 1, record + 64)
        && put_long(message, RECONSUME_TIMES, int_at(record + 72))
        && put_long(message, PREPARED_TRANSACTION_OFFSET, long_at(record + 76))
        && put_bytes(message, STORED_BODY, record + HEAD, body_length)
        && put_bytes(message, PROPERTY_BYTES, properties, record + size - properties))
        return message;
    Py_DECREF(message);
    return NULL;
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
    PyObject *topic = args[3], *found = NULL;
    int64_t count = PyLong_AsLongLong(args[7]), byte_limit = PyLong_AsLongLong(args[8]), total = 0;
    Run run = {
        .first = PyLong_AsLongLong(args[2]), .queue_id = PyLong_AsLongLong(args[5]),
        .queue_offset = PyLong_AsLongLong(args[6]), .unusual = (int32_t)PyLong_AsLongLong(args[9]),
    };
    if (!PyErr_Occurred() && !PyUnicode_Check(topic))
        PyErr_SetString(PyExc_TypeError, "a topic is text");
    if (get_run(&run, args[0], args[1], args[4]) < 0)
        return NULL;
    if (message_type == NULL)
        PyErr_SetString(PyExc_RuntimeError, "bind comes first");
    else
        found = PyList_New(0);
    for (Py_ssize_t number = 0; found != NULL; number++) {
        const unsigned char *record = record_of(&run, number);
        if (record == NULL)
            break;
        int32_t size = size_of(&run, number);
        if (number && (size > byte_limit - total || number == count))
            break;
        fetch_next(&run, number + 1);
        int32_t body_length = usual_body(&run, number, record);
        if (body_length < 0)
            break;
        PyObject *message = message_of(record, size, topic, body_length,
                                       record + HEAD + body_length + run.field.len + 2);
        if (message == NULL || PyList_Append(found, message) < 0)
            Py_CLEAR(found);
        Py_XDECREF(message);
        total += size;
    }
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
        || rest > LONGEST_PROPERTIES || (body_length && !has_sum(record, body_length)))
        return NULL;
    PyObject *topic = topic_at(field + 1, length), *message = NULL;
    if (topic != NULL)
        message = message_of(record, size, topic, body_length, properties);
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
    return one && no_bytes ? 0 : -1;
}
