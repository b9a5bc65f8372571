/* Messages of a queue into the columns of a table, in one pass. The reference is MessageTable.add
 * after RecordReader.read (storage/read/message_table.py); a test compares both.
 *
 * The log is mapped, and a damaged disk or another program may change it at any time: each length
 * is read once and checked before it is used, and texts are copied before they are looked at.
 */
#include "runs.h"
#include "tables.h"

enum { TAKEN, SKIPPED, ODD, BEYOND, FULL, FAILED };
enum { AHEAD = 2, KNOWN_HOSTS = 16, LONGEST_HOST = 20, FIRST_ROOM = 256, HEAD_LINES = 128, TAIL = 256,
       LONGEST_NAME = 255, PLACE = 8 };

typedef struct {
    int32_t length, text_length;
    unsigned char host[LONGEST_HOST], text[HOST_TEXT];
} Host;

typedef struct {
    Table table;
    Py_buffer units, log, name;
    long long first, queue_id, queue_offset, begin, end;
    long long rows, most_rows, size, most_bytes, row_bytes;
    PyObject *host_text;
    int checks_body, reads_properties;
    int is_anywhere; /* the units are places in the log only, of messages of any queue */
    Py_ssize_t topic_length;
    unsigned char topic[LONGEST_NAME]; /* of the last message, if they are of any queue */
    Host hosts[KNOWN_HOSTS];
    Properties properties;
    unsigned char text[LONGEST_PROPERTIES];
} Pass;

static int resize(Table *table, int buffer, Py_ssize_t room)
{
    Buffer *to = &table->buffers[buffer];
    PyEval_RestoreThread(table->state);
    int failed = to->owner == NULL;
    if (failed)
        PyErr_SetString(PyExc_TypeError, "a field lacks one of its buffers");
    else
        failed = PyByteArray_Resize(to->owner, room) < 0;
    if (!failed) {
        to->at = (unsigned char *)PyByteArray_AsString(to->owner);
        to->room = room;
    }
    table->state = PyEval_SaveThread();
    return failed ? -1 : 0;
}

int reserve(Table *table, int buffer, Py_ssize_t more, Py_ssize_t expected)
{
    const Buffer *to = &table->buffers[buffer];
    Py_ssize_t room = to->used + to->used / 2 + more + FIRST_ROOM;
    if (room < to->used + expected && to->used <= FIRST_ROOM)
        room = to->used + expected;
    return resize(table, buffer, room);
}

/* The text of a host, which Python makes; few hosts come again and again. */
static Host *host_of(Pass *pass, const unsigned char *at, int length)
{
    uint32_t mixed = (word_at(at) ^ word_at(at + length - 4) ^ word_at(at + length - 8) << 7);
    Host *known = &pass->hosts[(mixed * 2654435761u) >> 28];
    if (known->length == length && !memcmp(known->host, at, (size_t)length))
        return known;
    PyEval_RestoreThread(pass->table.state);
    Py_ssize_t size = 0;
    PyObject *text = PyObject_CallFunction(
        pass->host_text, "N", PyBytes_FromStringAndSize((const char *)at, (Py_ssize_t)length));
    const char *made = text == NULL ? NULL : PyUnicode_AsUTF8AndSize(text, &size);
    if (made != NULL && size > HOST_TEXT) {
        PyErr_SetString(PyExc_ValueError, "the text of a host is too long");
        made = NULL;
    }
    if (made != NULL) {
        memcpy(known->host, at, (size_t)length);
        memcpy(known->text, made, (size_t)size);
        known->length = length;
        known->text_length = (int32_t)size;
    }
    Py_XDECREF(text);
    pass->table.state = PyEval_SaveThread();
    return made == NULL ? NULL : known;
}

static int add_host(Pass *pass, int ends, const unsigned char *at, int length)
{
    if (!wants(&pass->table, ends))
        return 0;
    const Host *host = host_of(pass, at, length);
    return host == NULL ? -1 : add_text(&pass->table, ends, (Text){host->text, host->text_length});
}

static Text id_of(unsigned char *to, const unsigned char *host, int length, uint64_t offset)
{
    static const char digits[] = "0123456789ABCDEF";
    unsigned char *at = to;
    for (int i = 0; i < length; i++) {
        *at++ = (unsigned char)digits[host[i] >> 4];
        *at++ = (unsigned char)digits[host[i] & 15];
    }
    for (int shift = 60; shift >= 0; shift -= 4)
        *at++ = (unsigned char)digits[offset >> shift & 15];
    return (Text){to, at - to};
}

static int add_keys(Table *table, Text keys)
{
    const unsigned char *at = keys.at, *end = at == NULL ? at : at + keys.length;
    while (at < end) {
        const unsigned char *blank = memchr(at, ' ', (size_t)(end - at));
        if (blank == NULL)
            blank = end;
        if (blank > at && add_text(table, KEYS_TEXT_ENDS, (Text){at, blank - at}) < 0)
            return -1;
        at = blank + 1;
    }
    return add_int(table, KEYS_ENDS, texts_in(table, KEYS_TEXT_ENDS));
}

static int add_properties(Table *table, const Properties *found)
{
    for (Py_ssize_t i = 0; i < found->count; i++)
        if (add_text(table, PROPERTIES_NAME_ENDS, found->names[i]) < 0
            || add_text(table, PROPERTIES_VALUE_ENDS, found->values[i]) < 0)
            return -1;
    return add_int(table, PROPERTIES_ENDS, texts_in(table, PROPERTIES_NAME_ENDS));
}

static int add_texts(Pass *pass, const unsigned char *store_host, int length, int64_t offset)
{
    enum { LONGEST_ID = 2 * LONGEST_HOST + 16 };
    Table *table = &pass->table;
    const Properties *found = &pass->properties;
    unsigned char id[LONGEST_ID];
    const Text none = {id, 0};
    int needs_id = wants(table, OFFSET_MSG_ID)
                   || (wants(table, MSG_ID) && found->unique.at == NULL);
    const Text made = needs_id ? id_of(id, store_host, length, (uint64_t)offset) : none;
    if (wants(table, OFFSET_MSG_ID) && add_text(table, OFFSET_MSG_ID_ENDS, made) < 0)
        return -1;
    if (wants(table, MSG_ID)
        && add_text(table, MSG_ID_ENDS, found->unique.at == NULL ? made : found->unique) < 0)
        return -1;
    if (wants(table, TAGS)
        && add_text(table, TAGS_ENDS, found->tags.at == NULL ? none : found->tags) < 0)
        return -1;
    if (wants(table, KEYS_ENDS) && add_keys(table, found->keys) < 0)
        return -1;
    return wants(table, PROPERTIES_ENDS) ? add_properties(table, found) : 0;
}

#define INT(name, value) (!wants(table, name) || !add_int(table, name, value))
#define LONG(name, value) (!wants(table, name) || !add_long(table, name, value))

/* The columns of a record that was checked; its body is there already. */
static int add_row(Pass *pass, const unsigned char *head, int born, int stored, int32_t size,
                   int64_t number, Text topic)
{
    Table *table = &pass->table;
    const unsigned char *store_host = head + 56 + born, *rest = store_host + stored;
    const int64_t offset = long_at(head + 28);
    const int64_t queue_offset = pass->is_anywhere ? long_at(head + 20) : pass->queue_offset + number;
    if (LONG(QUEUE_OFFSET, queue_offset) && LONG(COMMITLOG_OFFSET, offset)
        && INT(STORE_SIZE, size) && INT(FLAG, int_at(head + 16))
        && INT(SYS_FLAG, int_at(head + 36)) && INT(RECONSUME_TIMES, int_at(rest))
        && INT(BODY_CRC, int_at(head + 8)) && LONG(PREPARED_TRANSACTION_OFFSET, long_at(rest + 4))
        && LONG(STORE_TIMESTAMP, long_at(head + 48 + born))
        && LONG(BORN_TIMESTAMP, long_at(head + 40)) && INT(RECORD_QUEUE_ID, int_at(head + 12))
        && LONG(RECORD_QUEUE_OFFSET, long_at(head + 20))
        && (!wants(table, RECORD_TOPIC) || !add_text(table, RECORD_TOPIC_ENDS, topic))
        && !add_host(pass, BORN_HOST_ENDS, head + 48, born)
        && !add_host(pass, STORE_HOST_ENDS, store_host, stored))
        return add_texts(pass, store_host, stored, offset);
    return -1;
}

/* Copies a body into its column, if its checksum is right. */
static int add_body(Pass *pass, const unsigned char *body, int32_t length, int32_t sum,
                    int32_t sys_flag)
{
    Table *table = &pass->table;
    Buffer *to = &table->buffers[STORED_BODY];
    if (to->room - to->used < length && reserve(table, STORED_BODY, length, 0) < 0)
        return FAILED;
    const uint32_t found = crc32_and_copy(to->at + to->used, body, (size_t)length);
    if ((int32_t)(found & CRC_MASK) != sum)
        return ODD;
    if (length && sys_flag & COMPRESSED && add_int(table, STORED_BODY_PACKED, (int32_t)pass->rows) < 0)
        return FAILED;
    to->used += length;
    return add_int(table, STORED_BODY_ENDS, (int32_t)to->used) < 0 ? FAILED : TAKEN;
}

/* The place of a unit in the log file, and the size of its record: places have none, so it is read
 * from the record. */
static int64_t place_of_unit(const Pass *pass, Py_ssize_t number, int64_t *offset, int32_t *size)
{
    const unsigned char *units = pass->units.buf;
    if (pass->is_anywhere)
        memcpy(offset, units + number * PLACE, sizeof *offset);
    else
        *offset = long_at(units + number * UNIT);
    const int64_t position = (int64_t)((uint64_t)*offset - (uint64_t)pass->first);
    if (!pass->is_anywhere)
        *size = int_at(units + number * UNIT + 8);
    else if (position < 0 || position > pass->log.len - LEAST)
        *size = 0;
    else
        *size = int_at((const unsigned char *)pass->log.buf + position);
    return position;
}

static Py_ssize_t units_of(const Pass *pass)
{
    return pass->units.len / (pass->is_anywhere ? (Py_ssize_t)PLACE : (Py_ssize_t)UNIT);
}

/* Takes over the topic of a message of any queue, with its length before it. */
static int take_topic(Pass *pass, const unsigned char *at, int width, int64_t most)
{
    const Py_ssize_t length = (Py_ssize_t)big(at, width);
    if (length > LONGEST_NAME || length > most)
        return 0;
    if (length == pass->topic_length && !memcmp(pass->topic, at + width, (size_t)length))
        return 1;
    memcpy(pass->topic, at + width, (size_t)length);
    pass->topic_length = is_utf8((Text){pass->topic, length}) ? length : -1;
    return pass->topic_length >= 0;
}

static int take(Pass *pass, Py_ssize_t number)
{
    unsigned char head[HEAD + 24];
    int64_t offset;
    int32_t size;
    const int64_t position = place_of_unit(pass, number, &offset, &size);
    if (position < 0 || position >= pass->log.len)
        return number ? BEYOND : ODD;
    if (size < LEAST || size > MOST || position > pass->log.len - size)
        return ODD;
    const unsigned char *record = (const unsigned char *)pass->log.buf + position;
    memcpy(head, record, HEAD);
    const int32_t sys_flag = int_at(head + 36), magic = int_at(head + 4);
    const int born = sys_flag & BORN_V6 ? 20 : 8, stored = sys_flag & STORED_V6 ? 20 : 8;
    const int begins = HEAD - 16 + born + stored, width = magic == MAGIC_V1 ? 1 : 2;
    if (int_at(head) != size || (magic != MAGIC_V1 && magic != MAGIC_V2)
        || begins + width + 2 > size)
        return ODD;
    memcpy(head + HEAD, record + HEAD, (size_t)(begins - HEAD));
    const int64_t time = long_at(head + 48 + born);
    if (pass->begin <= pass->end && time >= 0 && (time < pass->begin || time >= pass->end))
        return SKIPPED;
    const int32_t body_length = int_at(head + begins - 4);
    if (sys_flag & REPLACED || long_at(head + 28) != offset || body_length < 0
        || begins + (int64_t)body_length + width + 2 > size)
        return ODD;
    const unsigned char *topic = record + begins + body_length + width;
    if (pass->is_anywhere) {
        /* a head without a body may be damaged, as no checksum covers it */
        const int64_t most = size - begins - (int64_t)body_length - width - 2;
        if ((!body_length && int_at(head + 8)) || !take_topic(pass, topic - width, width, most))
            return ODD;
    } else if (int_at(head + 12) != pass->queue_id
               || long_at(head + 20) != pass->queue_offset + number)
        return ODD;
    const Text name = pass->is_anywhere
                          ? (Text){pass->topic, pass->topic_length}
                          : (Text){(const unsigned char *)pass->name.buf, pass->name.len};
    if (begins + (int64_t)body_length + width + name.length + 2 > size)
        return ODD;
    const unsigned char *properties = topic + name.length + 2;
    const int32_t length = (int32_t)(record + size - properties);
    if (length > LONGEST_PROPERTIES || (Py_ssize_t)big(topic - width, width) != name.length
        || topic[-width] > 127 || memcmp(topic, name.at, (size_t)name.length)
        || (int32_t)big(properties - 2, 2) != length)
        return ODD;
    const int64_t more = pass->row_bytes + (pass->checks_body ? body_length : 0)
                         + (pass->reads_properties ? length : 0);
    if (pass->rows >= pass->most_rows || (pass->rows && pass->size + more > pass->most_bytes))
        return FULL;
    if (pass->reads_properties) {
        memcpy(pass->text, properties, (size_t)length);
        if (!parse_properties_of(&pass->properties, (Text){pass->text, length}))
            return ODD;
    }
    if (pass->checks_body) {
        int found = add_body(pass, record + begins, body_length, int_at(head + 8), sys_flag);
        if (found != TAKEN)
            return found;
    }
    if (add_row(pass, head, born, stored, size, number, name) < 0)
        return FAILED;
    pass->rows++;
    pass->size += more;
    return TAKEN;
}

/* Prefetch what will be read of a record to come. */
static void fetch_unit(const Pass *pass, Py_ssize_t number)
{
    int64_t offset;
    int32_t size;
    /* the size of a record at a place is known when it is fetched */
    if (number >= units_of(pass) || pass->is_anywhere)
        return;
    const int64_t position = place_of_unit(pass, number, &offset, &size);
    if (position < 0 || size < LEAST || size > MOST || position > pass->log.len - size)
        return;
    const unsigned char *record = (const unsigned char *)pass->log.buf + position;
    if (pass->checks_body || size <= HEAD_LINES + TAIL)
        fetch(record, size);
    else {
        fetch(record, HEAD_LINES);
        fetch(record + size - TAIL, TAIL);
    }
}

static int open_buffers(Pass *pass, PyObject *buffers)
{
    if (!PyTuple_Check(buffers) || PyTuple_Size(buffers) != BUFFERS) {
        PyErr_SetString(PyExc_TypeError, "a table has another number of buffers");
        return -1;
    }
    int32_t end = 0;
    for (int i = 0; i < BUFFERS; i++) {
        PyObject *owner = PyTuple_GetItem(buffers, i);
        if (owner == Py_None)
            continue;
        if (!PyByteArray_Check(owner)) {
            PyErr_SetString(PyExc_TypeError, "a buffer is a bytearray");
            return -1;
        }
        const Py_ssize_t room = PyByteArray_Size(owner);
        const Buffer *ends = &pass->table.buffers[STORED_BODY_ENDS];
        Py_ssize_t used = room;
        if (i == STORED_BODY && ends->used >= 4) /* its memory may be longer: an earlier table's */
            memcpy(&end, ends->at + ends->used - 4, 4), used = end;
        if (used < 0 || used > room) {
            PyErr_SetString(PyExc_ValueError, "the bodies of a table end after their buffer");
            return -1;
        }
        unsigned char *at = (unsigned char *)PyByteArray_AsString(owner);
        pass->table.buffers[i] = (Buffer){owner, at, used, room};
    }
    pass->checks_body = wants(&pass->table, STORED_BODY);
    pass->reads_properties = wants(&pass->table, TAGS) || wants(&pass->table, KEYS_ENDS)
                             || wants(&pass->table, PROPERTIES_ENDS)
                             || wants(&pass->table, MSG_ID);
    return 0;
}

/* Makes room for the bodies of so many units, as far as the table may take them, and for no more:
 * growing it step by step would copy them, and the room of the next table is about as large. */
static int reserve_bodies(Pass *pass, Py_ssize_t count)
{
    int64_t bytes = 0, left = pass->most_bytes - pass->size;
    for (Py_ssize_t i = 0; i < count && bytes < left; i++) {
        int32_t size = int_at((const unsigned char *)pass->units.buf + i * UNIT + 8);
        if (size > LEAST && size <= MOST)
            bytes += size - LEAST;
    }
    bytes = bytes < left ? bytes : left;
    const Buffer *to = &pass->table.buffers[STORED_BODY];
    /* Properties and the topic are counted with each body, so that a little less is enough. */
    if (bytes - bytes / 8 <= to->room - to->used)
        return 0;
    return resize(&pass->table, STORED_BODY, to->used + (Py_ssize_t)bytes);
}

/* The units from the first one on, as far as they are taken; ``*taken`` of them. */
static int run_pass(Pass *pass, Py_ssize_t *taken)
{
    const Py_ssize_t count = units_of(pass);
    const int64_t left = pass->most_rows - pass->rows;
    int found = TAKEN;
    if (!pass->is_anywhere && wants(&pass->table, RECORD_TOPIC) && !is_utf8((Text){pass->name.buf, pass->name.len}))
        return ODD;
    pass->table.expected = (Py_ssize_t)(left < count ? left < 0 ? 0 : left : count);
    pass->table.state = PyEval_SaveThread();
    if (pass->checks_body && !pass->is_anywhere && reserve_bodies(pass, pass->table.expected) < 0)
        found = FAILED;
    while (*taken < count && (found == TAKEN || found == SKIPPED)) {
        fetch_unit(pass, *taken + AHEAD);
        found = take(pass, *taken);
        *taken += found == TAKEN || found == SKIPPED;
    }
    PyEval_RestoreThread(pass->table.state);
    return found;
}

/* Makes the buffers as long as what they hold, but that of bodies; also after an error. */
static int close_buffers(Pass *pass, int failed)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    for (int i = 0; i < BUFFERS; i++) {
        const Buffer *buffer = &pass->table.buffers[i];
        if (i != STORED_BODY && buffer->room != buffer->used
            && PyByteArray_Resize(buffer->owner, buffer->used) < 0)
            failed = 1;
    }
    if (type != NULL)
        PyErr_Restore(type, value, trace);
    return failed;
}

/* Fills the table from what was parsed, and lets go of the units and the log. */
static PyObject *filled(Pass *pass, PyObject *buffers)
{
    Py_ssize_t taken = 0;
    int found = FAILED;
    pass->properties.count = 0;
    pass->properties.tags = pass->properties.keys = pass->properties.unique = (Text){NULL, 0};
    if (open_buffers(pass, buffers) == 0)
        found = run_pass(pass, &taken);
    int failed = close_buffers(pass, found == FAILED);
    PyBuffer_Release(&pass->units);
    PyBuffer_Release(&pass->log);
    if (failed)
        return NULL;
    return Py_BuildValue("nLLO", taken, pass->rows, pass->size,
                         found == FULL ? Py_True : Py_False);
}

PyDoc_STRVAR(fill_doc,
             "fill_table(units, log, first, name, queue_id, queue_offset, begin, end, buffers,\n"
             "           rows, most_rows, size, most_bytes, row_bytes, host_text)\n\n"
             "Add the usual messages of the units whose records lie in the log file that begins\n"
             "at ``first``; see TableReader. How many units were taken, rows and size of the\n"
             "table, and whether it is full.");
static PyObject *fill_table(PyObject *module, PyObject *args)
{
    Pass pass;
    PyObject *buffers;
    (void)module;
    memset(&pass, 0, offsetof(Pass, properties));
    if (!PyArg_ParseTuple(args, "y*y*Ly*LLLLOLLLLLO", &pass.units, &pass.log, &pass.first,
                          &pass.name, &pass.queue_id, &pass.queue_offset, &pass.begin, &pass.end,
                          &buffers, &pass.rows, &pass.most_rows, &pass.size, &pass.most_bytes,
                          &pass.row_bytes, &pass.host_text))
        return NULL;
    PyObject *found = filled(&pass, buffers);
    PyBuffer_Release(&pass.name);
    return found;
}

PyDoc_STRVAR(fill_places_doc,
             "fill_places(places, log, first, buffers, rows, most_rows, size, most_bytes,\n"
             "            row_bytes, host_text)\n\n"
             "The same for records of any queue at places in the log, 8 bytes each.");
static PyObject *fill_places(PyObject *module, PyObject *args)
{
    Pass pass;
    PyObject *buffers;
    (void)module;
    memset(&pass, 0, offsetof(Pass, properties));
    if (!PyArg_ParseTuple(args, "y*y*LOLLLLLO", &pass.units, &pass.log, &pass.first, &buffers,
                          &pass.rows, &pass.most_rows, &pass.size, &pass.most_bytes,
                          &pass.row_bytes, &pass.host_text))
        return NULL;
    pass.end = -1;
    pass.is_anywhere = 1;
    pass.topic_length = -1;
    return filled(&pass, buffers);
}

PyMethodDef message_table_functions[] = {
    {"fill_places", fill_places, METH_VARARGS, fill_places_doc},
    {"fill_table", fill_table, METH_VARARGS, fill_doc},
    {NULL, NULL, 0, NULL},
};
