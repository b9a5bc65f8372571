/* The two loops that consumers spend their time in: records of a log into messages, and property
 * bytes into a dict. The pure forms are RecordReader.read_run of storage/reading/record_reader.py
 * and parse_properties of storage/format/properties.py; a test holds both against each other.
 * Nothing here knows more of the format than those do.
 */
#include "native.h"
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

/* The places of the slots of a class and of those it inherits; -1 with an error set if one is
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
                if (!offsets[slot] && member->type == T_OBJECT_EX && !strcmp(member->name, NAMES[slot]))
                    offsets[slot] = member->offset;
    }
    for (int slot = 0; slot < SLOTS; slot++)
        if (!offsets[slot]) {
            PyErr_Format(PyExc_TypeError, "the class has no slot %s", NAMES[slot]);
            return -1;
        }
    return 0;
}

PyDoc_STRVAR(bind_doc, "bind(message_class)\n\nSay what messages are made of; once, before read_run.");
static PyObject *bind(PyObject *module, PyObject *type)
{
    (void)module;
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "a class is wanted");
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

/* One message, or NULL: without an error if the record is none of the usual ones. */
static PyObject *read_one(const unsigned char *record, int32_t size, int64_t offset, PyObject *topic,
                          const unsigned char *field, Py_ssize_t field_size, int32_t queue_id,
                          int64_t queue_offset, PyObject *crc_of, int32_t unusual)
{
    int32_t body_length = int_at(record + 84), sys_flag = int_at(record + 36);
    if (int_at(record) != size || int_at(record + 4) != MAGIC_V1 || int_at(record + 12) != queue_id
        || long_at(record + 20) != queue_offset || long_at(record + 28) != offset
        || (sys_flag & unusual) || body_length < 0
        || (int64_t)HEAD + body_length + field_size + 2 > size)
        return NULL;
    const unsigned char *rest = record + HEAD + body_length, *properties = rest + field_size + 2;
    Py_ssize_t length = record + size - properties;
    if (memcmp(rest, field, field_size) || (Py_ssize_t)big(properties - 2, 2) != length)
        return NULL;
    PyObject *body = PyBytes_FromStringAndSize((const char *)record + HEAD, body_length);
    if (body == NULL)
        return NULL;
    PyObject *sum = PyObject_CallFunctionObjArgs(crc_of, body, NULL);
    if (sum == NULL) {
        Py_DECREF(body);
        return NULL;
    }
    unsigned long crc = PyLong_AsUnsignedLong(sum);
    Py_DECREF(sum);
    if (PyErr_Occurred() || (int32_t)(crc & CRC_MASK) != int_at(record + 8)) {
        Py_DECREF(body);
        return NULL;
    }
    PyObject *message = allocate(message_type, 0);
    if (message == NULL) {
        Py_DECREF(body);
        return NULL;
    }
    put(message, STORED_BODY, body);
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
    if (put_long(message, QUEUE_ID, queue_id) && put_long(message, QUEUE_OFFSET, queue_offset)
        && put_long(message, COMMITLOG_OFFSET, offset) && put_long(message, STORE_SIZE, size)
        && put_long(message, BODY_CRC, int_at(record + 8))
        && put_long(message, FLAG, int_at(record + 16)) && put_long(message, SYS_FLAG, sys_flag)
        && put_long(message, BORN_TIMESTAMP, long_at(record + 40))
        && put_bytes(message, BORN_HOST_BYTES, record + 48, 8)
        && put_long(message, STORE_TIMESTAMP, long_at(record + 56))
        && put_bytes(message, STORE_HOST_BYTES, record + 64, 8)
        && put_long(message, RECONSUME_TIMES, int_at(record + 72))
        && put_long(message, PREPARED_TRANSACTION_OFFSET, long_at(record + 76))
        && put_bytes(message, PROPERTY_BYTES, properties, length))
        return message;
    Py_DECREF(message);
    return NULL;
}

PyDoc_STRVAR(read_run_doc,
             "read_run(units, log, first, topic, field, queue_id, queue_offset, count, byte_limit,"
             " crc32, unusual)\n\n"
             "Messages of the units whose records lie in one log file that begins at ``first``.\n\n"
             "Ends before whatever is unusual, as RecordReader.read_run says.");
static PyObject *read_run(PyObject *module, PyObject *args)
{
    Py_buffer units, log, field;
    PyObject *topic, *crc_of, *found = NULL;
    long long first, queue_offset, byte_limit;
    int queue_id, unusual;
    Py_ssize_t count;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*LUy*iLnLOi", &units, &log, &first, &topic, &field, &queue_id,
                          &queue_offset, &count, &byte_limit, &crc_of, &unusual))
        return NULL;
    if (message_type == NULL)
        PyErr_SetString(PyExc_RuntimeError, "bind comes first");
    else
        found = PyList_New(0);
    const unsigned char *unit = units.buf;
    for (Py_ssize_t number = 0; found != NULL && (number + 1) * UNIT <= units.len;
         number++, unit += UNIT) {
        int64_t offset = long_at(unit), position = offset - first;
        int32_t size = int_at(unit + 8);
        if (position < 0 || size < LEAST || size > MOST || position > log.len - size)
            break;
        if (number && (size > byte_limit || number == count))
            break;
        PyObject *message = read_one((const unsigned char *)log.buf + position, size, offset, topic,
                                     field.buf, field.len, queue_id, queue_offset + number, crc_of,
                                     unusual);
        if (message == NULL) {
            if (PyErr_Occurred())
                Py_CLEAR(found);
            break;
        }
        int failed = PyList_Append(found, message);
        Py_DECREF(message);
        if (failed)
            Py_CLEAR(found);
        byte_limit -= size;
    }
    PyBuffer_Release(&units);
    PyBuffer_Release(&log);
    PyBuffer_Release(&field);
    return found;
}

PyDoc_STRVAR(parse_doc, "parse_properties(data)\n\nSee storage.format.properties.");
static PyObject *parse_properties(PyObject *module, PyObject *data)
{
    char *at;
    Py_ssize_t length;
    (void)module;
    if (PyBytes_AsStringAndSize(data, &at, &length) < 0)
        return NULL;
    PyObject *found = PyDict_New();
    const char *end = at + length;
    while (found != NULL && at < end) {
        const char *behind = memchr(at, 2, end - at);
        if (behind == NULL)
            behind = end;
        const char *name_end = memchr(at, 1, behind - at);
        if (name_end != NULL && name_end > at && name_end + 1 < behind) {
            PyObject *name = PyUnicode_DecodeUTF8(at, name_end - at, "replace");
            PyObject *value =
                name ? PyUnicode_DecodeUTF8(name_end + 1, behind - name_end - 1, "replace") : NULL;
            if (value == NULL || PyDict_SetItem(found, name, value) < 0)
                Py_CLEAR(found);
            Py_XDECREF(name);
            Py_XDECREF(value);
        }
        at = (char *)behind + 1;
    }
    return found;
}

PyMethodDef message_functions[] = {
    {"bind", bind, METH_O, bind_doc},
    {"read_run", read_run, METH_VARARGS, read_run_doc},
    {"parse_properties", parse_properties, METH_O, parse_doc},
    {NULL, NULL, 0, NULL},
};

int prepare_messages(void)
{
    one = PyLong_FromLong(1);
    no_bytes = PyBytes_FromStringAndSize("", 0);
    return one && no_bytes ? 0 : -1;
}
