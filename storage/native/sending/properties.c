/* The steps for each message that a producer sends: checking whether it is plain, and setting its
 * id. The rules are those of broker/validation.py; a test compares both.
 */
#include "plain.h"
#include "structmember.h"
#include "text.h"

#define TAGS "TAGS\1"
#define KEYS "KEYS\1"
enum { TAGS_SIZE = sizeof TAGS - 1, KEYS_SIZE = sizeof KEYS - 1 };

PyTypeObject *sent_type, *inner_type; /* owned */
static const char *const NAMES[SENT_SLOTS] = {"topic", "body", "flag", "properties"};
Py_ssize_t sent_slots[SENT_SLOTS];
static PyObject *unique_name, *properties_name;

PyDoc_STRVAR(bind_message_doc, "bind_message(message_class)\n\n"
                               "Set the class of messages to send; once, before all others.");
static PyObject *bind_message(PyObject *module, PyObject *type)
{
    (void)module;
    if (!PyType_Check(type))
        return PyErr_Format(PyExc_TypeError, "a class is wanted");
    PyMemberDef *member = NULL;
    if (PyType_GetFlags((PyTypeObject *)type) & Py_TPFLAGS_HEAPTYPE)
        member = PyType_GetSlot((PyTypeObject *)type, Py_tp_members);
    Py_ssize_t found[SENT_SLOTS] = {0};
    for (; member != NULL && member->name != NULL; member++)
        for (int slot = 0; slot < SENT_SLOTS; slot++)
            if (member->type == T_OBJECT_EX && !strcmp(member->name, NAMES[slot]))
                found[slot] = member->offset;
    for (int slot = 0; slot < SENT_SLOTS; slot++)
        if (!found[slot])
            return PyErr_Format(PyExc_TypeError, "the class has no slot %s", NAMES[slot]);
    memcpy(sent_slots, found, sizeof sent_slots);
    Py_INCREF(type);
    Py_XDECREF((PyObject *)sent_type);
    sent_type = (PyTypeObject *)type;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(bind_inner_doc, "bind_inner(inner_class)\n\n"
                             "Set the class of stored messages; once, before inner_message.");
static PyObject *bind_inner(PyObject *module, PyObject *type)
{
    (void)module;
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, &PyTuple_Type))
        return PyErr_Format(PyExc_TypeError, "a class of tuples is wanted");
    Py_INCREF(type);
    Py_XDECREF((PyObject *)inner_type);
    inner_type = (PyTypeObject *)type;
    Py_RETURN_NONE;
}

/* Whether U+0001 or U+0002 is in a text; texts are short, so eight bytes at once are enough. */
static int has_separator(const char *at, Py_ssize_t size)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t eight;
        memcpy(&eight, at, 8);
        const uint64_t first = eight ^ ones, second = eight ^ (2 * ones);
        if ((((first - ones) & ~first) | ((second - ones) & ~second)) & tops)
            return 1;
    }
    for (; size; at++, size--)
        if (*at == 1 || *at == 2)
            return 1;
    return 0;
}

const char *plain_text(PyObject *text, Py_ssize_t *size)
{
    if (!PyUnicode_CheckExact(text))
        return NULL;
    const char *at = PyUnicode_AsUTF8AndSize(text, size);
    if (at == NULL)
        PyErr_Clear(); /* half a pair */
    else if (!*size || has_separator(at, *size))
        return NULL;
    return at;
}

/* Notes the purpose of a property by its name; 0 if the message is not plain with it. */
static int note(const char *name, Py_ssize_t size, PyObject *value, const char *text,
                Py_ssize_t text_size, struct plain *found)
{
    if (size == 4 && !memcmp(name, "KEYS", 4))
        found->keys = (struct text){value, text, text_size};
    else if (size == 4 && !memcmp(name, "TAGS", 4))
        found->tags = (struct text){value, text, text_size};
    else if (size == 8 && !memcmp(name, "UNIQ_KEY", 8)) {
        found->unique_id = value;
        found->id = text;
        found->id_size = text_size;
    } else
        return !(size == 4 && !memcmp(name, "WAIT", 4)) && !(size == 5 && !memcmp(name, "DELAY", 5))
               && !(size == 8 && !memcmp(name, "TRAN_MSG", 8))
               && !(size == 7 && !memcmp(name, "CLUSTER", 7));
    return 1;
}

static int look_at_text(struct text *text, Py_ssize_t name_size, Py_ssize_t *all)
{
    if (text->object == NULL)
        return 1;
    if ((text->at = plain_text(text->object, &text->size)) == NULL)
        return 0;
    *all += (*all > 0) + name_size + text->size;
    return 1;
}

static int look_at_late(Late *late, struct plain *found)
{
    if (late->size < 0) { /* they never change, so this is done once */
        Py_ssize_t size = 0;
        if (!look_at_text(&late->tags, TAGS_SIZE, &size)
            || !look_at_text(&late->keys, KEYS_SIZE, &size))
            return 0;
        late->size = size;
    }
    found->tags = late->tags;
    found->keys = late->keys;
    found->size = late->size;
    found->unique_id = late->id;
    if (late->id != NULL) {
        if ((found->id = plain_text(late->id, &found->id_size)) == NULL)
            return 0;
    } else if (late->id_size) {
        found->id = late->id_text;
        found->id_size = late->id_size;
    }
    if (found->id != NULL)
        found->size += (found->size > 0) + UNIQ_KEY_SIZE + found->id_size;
    return 1;
}

static int look_at_properties(PyObject *properties, struct plain *found)
{
    PyObject *name, *value;
    Py_ssize_t place = 0, name_size, value_size;
    found->properties = properties;
    found->unique_id = NULL;
    found->keys = found->tags = (struct text){NULL, NULL, 0};
    found->id = NULL;
    found->size = 0;
    if (is_late(properties))
        return look_at_late((Late *)properties, found);
    while (PyDict_Next(properties, &place, &name, &value)) {
        const char *at = plain_text(name, &name_size), *text;
        if (at == NULL || (text = plain_text(value, &value_size)) == NULL)
            return 0;
        found->size += (found->size > 0) + name_size + 1 + value_size;
        if (!note(at, name_size, value, text, value_size, found))
            return 0;
    }
    return 1;
}

int is_plain(PyObject *message, struct plain *found)
{
    if (Py_TYPE(message) != sent_type)
        return 0;
    PyObject *body = slot_of(message, SENT_BODY), *flag = slot_of(message, SENT_FLAG);
    PyObject *properties = slot_of(message, SENT_PROPERTIES);
    found->topic = slot_of(message, SENT_TOPIC);
    if (body == NULL || flag == NULL || properties == NULL || found->topic == NULL
        || !PyBytes_CheckExact(body) || !PyLong_CheckExact(flag)
        || !(is_late(properties) || PyDict_CheckExact(properties))
        || !PyUnicode_CheckExact(found->topic))
        return 0;
    int overflow;
    long number = PyLong_AsLongAndOverflow(flag, &overflow);
    if (overflow || number != (int32_t)number)
        return 0;
    found->flag = (int32_t)number;
    found->body = (const unsigned char *)PyBytes_AsString(body);
    found->body_size = PyBytes_Size(body);
    return look_at_properties(properties, found);
}

static unsigned char *write_one(const char *name, Py_ssize_t name_size, const char *text,
                                Py_ssize_t size, int follows, unsigned char *at)
{
    if (follows)
        *at++ = 2;
    memcpy(at, name, (size_t)name_size);
    return put_text(at + name_size, text, size);
}

/* In the order in which a dict would have them. */
static unsigned char *write_late(const struct plain *found, unsigned char *at)
{
    const unsigned char *const first = at;
    if (found->tags.size)
        at = write_one(TAGS, TAGS_SIZE, found->tags.at, found->tags.size, 0, at);
    if (found->keys.size)
        at = write_one(KEYS, KEYS_SIZE, found->keys.at, found->keys.size, at != first, at);
    if (found->id != NULL)
        at = write_one(UNIQ_KEY, UNIQ_KEY_SIZE, found->id, found->id_size, at != first, at);
    return at;
}

unsigned char *write_properties(const struct plain *found, unsigned char *at)
{
    PyObject *name, *value;
    Py_ssize_t place = 0, size;
    const unsigned char *const first = at;
    if (is_late(found->properties))
        return write_late(found, at);
    while (PyDict_Next(found->properties, &place, &name, &value)) {
        if (at != first)
            *at++ = 2;
        const char *text = PyUnicode_AsUTF8AndSize(name, &size);
        memcpy(at, text, size);
        at += size;
        *at++ = 1;
        text = PyUnicode_AsUTF8AndSize(value, &size);
        memcpy(at, text, size);
        at += size;
    }
    return at;
}

Py_ssize_t length_of(PyObject *messages)
{
    if (PyTuple_CheckExact(messages))
        return PyTuple_Size(messages);
    return PyList_CheckExact(messages) ? PyList_Size(messages) : -1;
}
PyObject *item_of(PyObject *messages, Py_ssize_t number)
{
    if (PyTuple_CheckExact(messages))
        return PyTuple_GetItem(messages, number);
    return PyList_GetItem(messages, number);
}

PyDoc_STRVAR(look_at_doc,
             "look_at(message, largest_body)\n\n"
             "1 for a plain message that has its id, 2 for one that has none, 0 for any other.");
static PyObject *look_at(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    struct plain found;
    (void)module;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "look_at takes a message and a number");
        return NULL;
    }
    Py_ssize_t largest = PyLong_AsSsize_t(arguments[1]);
    if (largest == -1 && PyErr_Occurred())
        return NULL;
    if (!is_plain(arguments[0], &found) || !found.body_size || found.body_size > largest)
        return PyLong_FromLong(0);
    return PyLong_FromLong(found.id == NULL ? 2 : 1);
}

PyDoc_STRVAR(look_over_doc,
             "look_over(messages, topic, largest_body)\n\n"
             "How many of plain messages of one topic have no id, how many bytes their bodies and"
             " properties have together; None if one is not plain.");
static PyObject *look_over(PyObject *module, PyObject *arguments)
{
    struct plain found;
    PyObject *messages, *topic;
    Py_ssize_t largest, missing = 0;
    long long bytes = 0;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OOn", &messages, &topic, &largest))
        return NULL;
    Py_ssize_t count = PyUnicode_CheckExact(topic) ? length_of(messages) : -1;
    for (Py_ssize_t number = 0; number < count; number++) {
        if (!is_plain(item_of(messages, number), &found) || !found.body_size
            || found.body_size > largest
            || (found.topic != topic && PyUnicode_Compare(found.topic, topic)))
            Py_RETURN_NONE;
        missing += found.id == NULL;
        bytes += found.body_size + found.size;
    }
    if (count < 0)
        Py_RETURN_NONE;
    return Py_BuildValue("nL", missing, bytes);
}

PyDoc_STRVAR(have_topic_doc,
             "have_topic(messages, topic)\n\n"
             "Whether all messages of a list or tuple have this very topic; False for what is not"
             " usual.");
static PyObject *have_topic(PyObject *module, PyObject *const *arguments, Py_ssize_t given)
{
    (void)module;
    if (!are_arguments(given, 2))
        return NULL;
    Py_ssize_t count = length_of(arguments[0]);
    int all = count >= 0;
    for (Py_ssize_t number = 0; all && number < count; number++) {
        PyObject *message = item_of(arguments[0], number);
        all = Py_TYPE(message) == sent_type && slot_of(message, SENT_TOPIC) == arguments[1];
    }
    return PyBool_FromLong(all);
}

/* Properties that are not made yet; NULL where there are none of that kind. */
static Late *late_of_message(PyObject *message)
{
    PyObject *properties = Py_TYPE(message) == sent_type ? slot_of(message, SENT_PROPERTIES) : NULL;
    return properties != NULL && is_late(properties) ? (Late *)properties : NULL;
}

/* Whether any message has an id; -1 with an error set. */
static int has_unique_id(PyObject *message)
{
    const Late *late = late_of_message(message);
    if (late != NULL)
        return has_id(late);
    PyObject *properties = PyObject_GetAttr(message, properties_name);
    int has = properties == NULL ? -1 : PySequence_Contains(properties, unique_name);
    Py_XDECREF(properties);
    return has;
}

/* Puts an id into any message; -1 with an error set. */
static int set_unique_id(PyObject *message, PyObject *id)
{
    Late *late = late_of_message(message);
    if (late != NULL && PyUnicode_CheckExact(id) && PyUnicode_GetLength(id)) {
        PyObject *old = late->id;
        Py_INCREF(id);
        late->id = id;
        Py_XDECREF(old);
        return 0;
    }
    PyObject *properties = PyObject_GetAttr(message, properties_name);
    int failed = properties == NULL ? -1 : PyObject_SetItem(properties, unique_name, id);
    Py_XDECREF(properties);
    return failed;
}

PyDoc_STRVAR(has_id_doc, "has_unique_id(message)\n\nWhether a message has a UNIQ_KEY.");
static PyObject *has_unique_id_of(PyObject *module, PyObject *message)
{
    (void)module;
    int has = has_unique_id(message);
    return has < 0 ? NULL : PyBool_FromLong(has);
}

PyDoc_STRVAR(give_id_doc, "give_id(message, unique_id)\n\n"
                          "Put an id into a message, as UNIQ_KEY, in place of any that it has.");
static PyObject *give_id(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (!are_arguments(count, 2) || set_unique_id(arguments[0], arguments[1]) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Puts the first of joined ids into a message that has none: 1 if it did, -1 with an error set. */
static int give_next(PyObject *message, const char *ids, Py_ssize_t left, Py_ssize_t width,
                     int are_short)
{
    int has = has_unique_id(message);
    if (has)
        return has < 0 ? -1 : 0;
    if (width < 1 || left < width) {
        PyErr_SetString(PyExc_ValueError, "there are too few ids");
        return -1;
    }
    Late *late = late_of_message(message);
    if (are_short && late != NULL) {
        memcpy(late->id_text, ids, (size_t)width);
        late->id_size = width;
        return 1;
    }
    PyObject *id = PyUnicode_DecodeASCII(ids, width, "strict");
    int failed = id == NULL || set_unique_id(message, id) < 0;
    Py_XDECREF(id);
    return failed ? -1 : 1;
}

PyDoc_STRVAR(give_ids_doc,
             "give_ids(messages, ids, width)\n\n"
             "Put the next of the joined ids into each message that has none, as UNIQ_KEY.");
static PyObject *give_ids(PyObject *module, PyObject *arguments)
{
    PyObject *messages, *joined;
    char *ids;
    Py_ssize_t size, width;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OSn", &messages, &joined, &width)
        || PyBytes_AsStringAndSize(joined, &ids, &size) < 0)
        return NULL;
    const char *const end = ids + size;
    const int are_short = width <= LATE_ID && is_ascii((const unsigned char *)ids, size)
                          && !has_separator(ids, size);
    for (Py_ssize_t number = 0; number < length_of(messages); number++) {
        PyObject *message = item_of(messages, number);
        Py_INCREF(message); /* others' code may run */
        int done = give_next(message, ids, end - ids, width, are_short);
        Py_DECREF(message);
        if (done < 0)
            return NULL;
        ids += done ? width : 0;
    }
    Py_RETURN_NONE;
}

PyMethodDef property_functions[] = {
    {"bind_message", bind_message, METH_O, bind_message_doc},
    {"bind_inner", bind_inner, METH_O, bind_inner_doc},
    {"make_late", make_late, METH_O, make_late_doc},
    {"look_at", (PyCFunction)(void (*)(void))look_at, METH_FASTCALL, look_at_doc},
    {"have_topic", (PyCFunction)(void (*)(void))have_topic, METH_FASTCALL, have_topic_doc},
    {"look_over", look_over, METH_VARARGS, look_over_doc},
    {"give_ids", give_ids, METH_VARARGS, give_ids_doc},
    {"give_id", (PyCFunction)(void (*)(void))give_id, METH_FASTCALL, give_id_doc},
    {"has_unique_id", has_unique_id_of, METH_O, has_id_doc},
    {NULL, NULL, 0, NULL},
};

int prepare_properties(void)
{
    unique_name = PyUnicode_InternFromString("UNIQ_KEY");
    properties_name = PyUnicode_InternFromString("properties");
    return unique_name && properties_name && prepare_inner() == 0 && prepare_message() == 0 ? 0 : -1;
}
