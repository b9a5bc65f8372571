/* Records that are stored again, for the topic and the queue that two of their own properties name:
 * due delayed messages. The reference is DelayLevel of broker/schedule/level.py; a test compares
 * both.
 */
#include "record.h"
#include "runs.h"

enum { MOST_QUEUES = 64, MOST_DIGITS = 9 };
#define LIGHT "INNER_MULTI_QUEUE_OFFSET"

typedef struct {
    const char *at;
    Py_ssize_t size;
} Text;
enum { REAL_TOPIC, REAL_QUEUE, UNIQUE, OWN_KEYS, OWN_TAGS, NAMES };

/* One record that was checked; nothing is copied. */
typedef struct {
    const unsigned char *record;
    int32_t body_length;
    Text properties, found[NAMES];
    int queue;
} Again;

/* The queues of the records, in order of appearance. */
typedef struct {
    Text topic;
    int32_t queue_id;
    uint32_t begun; /* the hash of ``topic#`` */
} Target;
typedef struct {
    Target known[MOST_QUEUES];
    int count, last;
} Targets;

static int same(Text one, Text other)
{
    return one.size == other.size && !memcmp(one.at, other.at, (size_t)one.size);
}

static int holds(Text text, Text wanted)
{
    const char *at = text.at, *const end = text.at + text.size;
    while ((at = memchr(at, wanted.at[0], (size_t)(end - at))) != NULL) {
        if (end - at < wanted.size)
            return 0;
        if (!memcmp(at, wanted.at, (size_t)wanted.size))
            return 1;
        at++;
    }
    return 0;
}

/* The last value of each name, as parse_properties has it. */
static void find_values(Text properties, const Text *names, Text *found)
{
    const char *at = properties.at, *const end = at + properties.size;
    while (at < end) {
        const char *behind = memchr(at, 2, (size_t)(end - at));
        if (behind == NULL)
            behind = end;
        const char *stop = memchr(at, 1, (size_t)(behind - at));
        if (stop != NULL && stop > at && stop + 1 < behind) {
            Text name = {at, stop - at};
            for (int number = 0; number < NAMES; number++)
                if (same(name, names[number])) {
                    found[number] = (Text){stop + 1, behind - stop - 1};
                    break;
                }
        }
        at = behind + 1;
    }
}

/* The number of a queue, -1 if there are too many. */
static int target_of(Targets *targets, Text topic, int32_t queue_id)
{
    Target *known = targets->known;
    if (targets->count && known[targets->last].queue_id == queue_id
        && same(known[targets->last].topic, topic))
        return targets->last;
    int number = 0;
    while (number < targets->count
           && (known[number].queue_id != queue_id || !same(known[number].topic, topic)))
        number++;
    if (number == MOST_QUEUES)
        return -1;
    if (number == targets->count) {
        uint32_t begun = java_hash_on(java_hash_on(0, topic.at, topic.size), "#", 1);
        known[number] = (Target){topic, queue_id, begun};
        targets->count++;
    }
    return targets->last = number;
}

/* The number in digits, -1 if they are none, or too many. */
static int32_t queue_id_of(Text digits)
{
    int32_t value = 0;
    if (digits.size < 1 || digits.size > MOST_DIGITS)
        return -1;
    for (Py_ssize_t i = 0; i < digits.size; i++) {
        if (digits.at[i] < '0' || digits.at[i] > '9')
            return -1;
        value = value * 10 + (digits.at[i] - '0');
    }
    return value;
}

/* Whether a topic is printable and can be the name of a folder (is_possible_topic of
 * storage/format/dispatch.py); of ASCII. */
static int is_possible(Text topic)
{
    for (Py_ssize_t i = 0; i < topic.size; i++)
        if (topic.at[i] < ' ' || topic.at[i] > '~' || topic.at[i] == '/')
            return 0;
    return !same(topic, (Text){".", 1}) && !same(topic, (Text){"..", 2});
}

/* Whether the record of a unit is a common one, with a common destination. */
static int look(const Run *run, Py_ssize_t number, const Text *names, Text refused,
                Targets *targets, Again *again)
{
    const unsigned char *record = record_of(run, number);
    if (record == NULL)
        return 0;
    fetch_next(run, number + 1);
    memset(again, 0, sizeof *again);
    again->record = record;
    again->body_length = usual_body(run, number, record);
    if (again->body_length < 0)
        return 0;
    const char *at = (const char *)record + HEAD + again->body_length + run->field.len + 2;
    Text properties = {at, (const char *)record + size_of(run, number) - at};
    if (properties.size && at[properties.size - 1] == 2)
        properties.size--;
    if (properties.size > LONGEST_PROPERTIES
        || holds(properties, (Text){LIGHT, sizeof LIGHT - 1}))
        return 0;
    again->properties = properties;
    find_values(properties, names, again->found);
    for (int name = 0; name < NAMES; name++)
        if (!is_ascii((const unsigned char *)again->found[name].at, again->found[name].size))
            return 0;
    Text topic = again->found[REAL_TOPIC];
    int32_t queue_id = queue_id_of(again->found[REAL_QUEUE]);
    if (topic.size < 1 || topic.size > LONGEST_TOPIC || same(topic, refused) || queue_id < 0
        || !is_possible(topic))
        return 0;
    again->queue = target_of(targets, topic, queue_id);
    return again->queue >= 0;
}

static int64_t size_again(const Again *again)
{
    return HEAD + again->body_length + 1 + again->found[REAL_TOPIC].size + 2
           + again->properties.size;
}

static unsigned char *put_again(const Again *again, const Target *target, int32_t size,
                                unsigned char *to)
{
    const unsigned char *record = again->record;
    Fields f = {
        .queue_id = target->queue_id, .flag = int_at(record + 16),
        .sys_flag = int_at(record + 36), .born_timestamp = long_at(record + 40),
        .born_host = record + 48, .born_length = 8, .store_host = record + 64, .store_length = 8,
        .reconsume_times = int_at(record + 72), .body_length = again->body_length,
    };
    to = put_head(to, &f, size, int_at(record + 8), 0, 0, 0);
    to = put_bytes(to, record + HEAD, again->body_length);
    *to++ = (unsigned char)target->topic.size;
    to = put_bytes(to, target->topic.at, target->topic.size);
    to = put_length(to, again->properties.size);
    return put_bytes(to, again->properties.at, again->properties.size);
}

static int64_t *put_keys(const Again *again, uint32_t begun, int64_t *hash)
{
    const Text *unique = again->found + UNIQUE, *keys = again->found + OWN_KEYS;
    if (unique->size)
        *hash++ = absolute_hash(java_hash_on(begun, unique->at, unique->size));
    return keys->size ? hash_parts(keys->at, keys->size, begun, hash) : hash;
}

static int is_indexed(const Again *again)
{
    return (int_at(again->record + 36) & ROLLBACK) != ROLLBACK;
}

static PyObject *list_of(const Targets *targets)
{
    PyObject *queues = PyList_New(targets->count);
    for (int number = 0; queues != NULL && number < targets->count; number++) {
        const Target *target = targets->known + number;
        PyObject *queue = Py_BuildValue(
            "(Ni)", PyUnicode_FromStringAndSize(target->topic.at, target->topic.size),
            (int)target->queue_id);
        if (queue == NULL || PyList_SetItem(queues, number, queue) < 0)
            Py_CLEAR(queues);
    }
    return queues;
}

/* Buffer, table, queues, key hashes, and the number of records. */
static PyObject *write_all(const Again *items, Py_ssize_t count, const Targets *targets)
{
    int64_t bytes = 0, keys = 0;
    for (const Again *again = items; again < items + count; again++) {
        const Text *own = again->found + OWN_KEYS;
        bytes += size_again(again);
        if (is_indexed(again))
            keys += (again->found[UNIQUE].size > 0) + (own->size ? key_count(own->at, own->size) : 0);
    }
    PyObject *buffer = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)bytes), *found = NULL;
    PyObject *table = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(Row));
    PyObject *hashes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)keys * 8);
    PyObject *queues = list_of(targets);
    if (buffer != NULL && table != NULL && hashes != NULL && queues != NULL) {
        unsigned char *const first = (unsigned char *)PyByteArray_AsString(buffer), *to = first;
        int64_t *hash = (int64_t *)PyBytes_AsString(hashes);
        Row *row = (Row *)PyBytes_AsString(table);
        for (const Again *again = items; again < items + count; again++, row++) {
            const Target *target = targets->known + again->queue;
            const Text *tags = again->found + OWN_TAGS;
            int64_t *const own = hash;
            row->start = to - first;
            row->size = size_again(again);
            row->code = tags->size ? (int32_t)java_hash_on(0, tags->at, tags->size) : 0;
            row->queue = again->queue;
            row->delay = -1;
            row->has_unit = !(int_at(again->record + 36) & NO_UNIT);
            to = put_again(again, target, (int32_t)row->size, to);
            if (is_indexed(again))
                hash = put_keys(again, target->begun, hash);
            row->keys = hash - own;
        }
        found = Py_BuildValue("OOOOn", buffer, table, queues, hashes, count);
    }
    Py_XDECREF(buffer);
    Py_XDECREF(table);
    Py_XDECREF(hashes);
    Py_XDECREF(queues);
    return found;
}

static int text_from(PyObject *given, Text *text)
{
    text->at = text_of(given, &text->size);
    if (text->at == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "a text is required");
    return text->at == NULL ? -1 : 0;
}

PyDoc_STRVAR(readdressed_doc,
             "readdressed(units, log, first, field, queue_id, queue_offset, unusual, topic_name,"
             " queue_name, refused)\n\n"
             "The result of encode_run for the records of units in the log file that begins at\n"
             "``first``, stored again for the topic and queue id that two properties name, and"
             " how\n"
             "many these are. Ends before an unusual record, or one for the topic ``refused``;\n"
             "None if that is the first.");
static PyObject *readdressed(PyObject *module, PyObject *const *args, Py_ssize_t given)
{
    Text names[NAMES] = {
        [UNIQUE] = {UNIQ_KEY, UNIQ_KEY_SIZE - 1}, [OWN_KEYS] = {"KEYS", 4}, [OWN_TAGS] = {"TAGS", 4},
    };
    Text refused;
    (void)module;
    if (!are_arguments(given, 10) || text_from(args[7], names + REAL_TOPIC) < 0
        || text_from(args[8], names + REAL_QUEUE) < 0 || text_from(args[9], &refused) < 0)
        return NULL;
    Run run = {
        .first = PyLong_AsLongLong(args[2]), .queue_id = PyLong_AsLongLong(args[4]),
        .queue_offset = PyLong_AsLongLong(args[5]), .unusual = (int32_t)PyLong_AsLongLong(args[6]),
    };
    if (get_run(&run, args[0], args[1], args[3]) < 0)
        return NULL;
    Py_ssize_t most = run.units.len / UNIT, count = 0;
    Again *items = PyMem_Malloc((size_t)(most + 1) * sizeof *items);
    Targets *targets = PyMem_Malloc(sizeof *targets);
    PyObject *found = NULL;
    if (items == NULL || targets == NULL)
        PyErr_NoMemory();
    else {
        targets->count = targets->last = 0;
        while (count < most && look(&run, count, names, refused, targets, items + count))
            count++;
        found = count ? write_all(items, count, targets) : Py_NewRef(Py_None);
    }
    PyMem_Free(items);
    PyMem_Free(targets);
    release_run(&run);
    return found;
}

PyMethodDef readdressed_functions[] = {
    {"readdressed", (PyCFunction)(void (*)(void))readdressed, METH_FASTCALL, readdressed_doc},
    {NULL, NULL, 0, NULL},
};
