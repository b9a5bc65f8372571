/* Making a message to send: what Message.__init__ of storage/format/message.py does with the common
 * arguments, a topic, a body, tags and keys. All other calls are left to it.
 */
#include "plain.h"

enum { TAGS_NAME, KEYS_NAME, FLAG_NAME, NAMES };
static PyObject *names[NAMES], *tags_key, *keys_key, *id_key, *no_flag;
static PyObject *pure; /* the function of message.py */
PyTypeObject *late_type;

static void set_slot(PyObject *message, int slot, PyObject *value)
{
    PyObject **at = place_of_slot(message, slot), *old = *at;
    Py_INCREF(value);
    *at = value;
    Py_XDECREF(old);
}

/* -- properties that are made when they are first read ------------------------------------- */

static void free_late(PyObject *object)
{
    Late *late = (Late *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(late->tags.object);
    Py_XDECREF(late->keys.object);
    Py_XDECREF(late->id);
    PyObject_Free(object);
    Py_DECREF(type);
}
static PyType_Slot late_slots[] = {{Py_tp_dealloc, free_late}, {0, NULL}};
static PyType_Spec late_spec = {"storage.native._compiled.Late", sizeof(Late), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, late_slots};

/* A text that is not empty, owned; NULL for None or "". 1 for no text. */
static int take_text(PyObject *value, PyObject **to)
{
    if (value == NULL || value == Py_None)
        return 0;
    if (!PyUnicode_CheckExact(value))
        return 1;
    if (PyUnicode_GetLength(value)) {
        Py_INCREF(value);
        *to = value;
    }
    return 0;
}

/* NULL without an error if one is no text. */
static PyObject *late_of(PyObject *tags, PyObject *keys)
{
    Late *late = PyObject_New(Late, late_type);
    if (late == NULL)
        return NULL;
    late->tags = late->keys = (struct text){NULL, NULL, 0};
    late->id = NULL;
    late->id_size = 0;
    late->size = -1;
    if (take_text(tags, &late->tags.object) || take_text(keys, &late->keys.object))
        Py_CLEAR(late);
    return (PyObject *)late;
}

PyObject *id_of(Late *late)
{
    if (late->id == NULL)
        late->id = PyUnicode_DecodeASCII(late->id_text, late->id_size, "strict");
    return late->id;
}

PyObject *dict_of(Late *late)
{
    PyObject *made = PyDict_New(), *id = has_id(late) ? id_of(late) : NULL;
    if (made == NULL || (has_id(late) && id == NULL)
        || (late->tags.object != NULL && PyDict_SetItem(made, tags_key, late->tags.object) < 0)
        || (late->keys.object != NULL && PyDict_SetItem(made, keys_key, late->keys.object) < 0)
        || (id != NULL && PyDict_SetItem(made, id_key, id) < 0))
        Py_CLEAR(made);
    return made;
}

/* The properties of a message as a dict, which the message has from now on (borrowed); NULL with or
 * without an error set: it has none. */
static PyObject *own_dict(PyObject *message)
{
    PyObject *properties;
    /* While a dict is made the garbage collector may run other code, which may read them. */
    while ((properties = slot_of(message, SENT_PROPERTIES)) != NULL && is_late(properties)) {
        Py_INCREF(properties);
        PyObject *made = dict_of((Late *)properties);
        if (made != NULL && slot_of(message, SENT_PROPERTIES) == properties)
            set_slot(message, SENT_PROPERTIES, made);
        Py_XDECREF(made);
        Py_DECREF(properties);
        if (made == NULL)
            return NULL;
    }
    return properties;
}

static PyObject *get_properties(PyObject *self, void *nothing)
{
    (void)nothing;
    PyObject *found = own_dict(self);
    if (found != NULL)
        Py_INCREF(found);
    else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_AttributeError, "properties");
    return found;
}
static int set_properties(PyObject *self, PyObject *value, void *nothing)
{
    PyObject **at = place_of_slot(self, SENT_PROPERTIES), *old = *at;
    (void)nothing;
    if (value == NULL && old == NULL) {
        PyErr_SetString(PyExc_AttributeError, "properties");
        return -1;
    }
    Py_XINCREF(value);
    *at = value;
    Py_XDECREF(old);
    return 0;
}
static PyGetSetDef properties_way = {"properties", get_properties, set_properties,
                                     "All properties, reserved ones too.", NULL};

const char make_late_doc[] =
    "make_late(pure)\n\n"
    "The ``properties`` for the class that was given to bind_message: from now on they are made"
    " when they are first read. ``pure`` is its own __init__, for the calls that Made leaves to"
    " it.";
PyObject *make_late(PyObject *module, PyObject *function)
{
    (void)module;
    if (sent_type == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "bind_message comes first");
        return NULL;
    }
    Py_INCREF(function);
    Py_XDECREF(pure);
    pure = function;
    take_calls(sent_type);
    return PyDescr_NewGetSet(sent_type, &properties_way);
}

/* -- making -------------------------------------------------------------------------------- */

/* The number of a name, by its identity: callers' names are interned. -1 for another. */
static int name_of(PyObject *name)
{
    for (int i = 0; i < NAMES; i++)
        if (name == names[i])
            return i;
    return -1;
}

/* 1 if it is done, 0 for an unusual call, -1 with an error set. */
static int make(PyObject *self, PyObject *topic, PyObject *body, PyObject *const *values)
{
    if (!PyUnicode_CheckExact(topic))
        return 0;
    PyObject *properties = late_of(values[TAGS_NAME], values[KEYS_NAME]);
    if (properties == NULL)
        return PyErr_Occurred() ? -1 : 0;
    set_slot(self, SENT_TOPIC, topic);
    set_slot(self, SENT_BODY, body);
    set_slot(self, SENT_FLAG, values[FLAG_NAME]);
    set_slot(self, SENT_PROPERTIES, properties);
    Py_DECREF(properties);
    return 1;
}

static int made_init(PyObject *self, PyObject *args, PyObject *by_name);

int make_at_once(PyTypeObject *type, PyObject *const *values, PyObject *names_given, PyObject **made)
{
    PyObject *known[NAMES] = {NULL, NULL, no_flag};
    const Py_ssize_t named = names_given == NULL ? 0 : PyTuple_Size(names_given);
    if (type != sent_type || pure == NULL || PyType_GetSlot(type, Py_tp_init) != (void *)made_init)
        return 0; /* the class has got another __init__ */
    for (Py_ssize_t i = 0; i < named; i++) {
        int number = name_of(PyTuple_GetItem(names_given, i));
        if (number < 0)
            return 0;
        known[number] = values[2 + i];
    }
    PyObject *self = ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    const int done = self == NULL ? -1 : make(self, values[0], values[1], known);
    if (done <= 0)
        Py_CLEAR(self);
    *made = self;
    return done != 0;
}

/* The __init__ slot of a class: Python calls it directly, without looking up a method and without
 * unpacking arguments again. */
static int made_init(PyObject *self, PyObject *args, PyObject *by_name)
{
    PyObject *values[NAMES] = {NULL, NULL, no_flag}, *name, *value;
    Py_ssize_t place = 0;
    const Py_ssize_t count = PyTuple_Size(args);
    if (sent_type == NULL || pure == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "make_late comes first");
        return -1;
    }
    int usual = count == 2 && Py_TYPE(self) == sent_type;
    while (usual && by_name != NULL && PyDict_Next(by_name, &place, &name, &value)) {
        int number = name_of(name);
        usual = number >= 0;
        if (usual)
            values[number] = value;
    }
    if (usual)
        usual = make(self, PyTuple_GetItem(args, 0), PyTuple_GetItem(args, 1), values);
    if (usual)
        return usual < 0 ? -1 : 0;
    PyObject *all = PyTuple_New(count + 1);
    for (Py_ssize_t i = 0; all != NULL && i <= count; i++) {
        value = i ? PyTuple_GetItem(args, i - 1) : self;
        Py_INCREF(value);
        PyTuple_SetItem(all, i, value);
    }
    PyObject *done = all == NULL ? NULL : PyObject_Call(pure, all, by_name);
    Py_XDECREF(all);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}
static char made_doc[] =
    "Made(topic, body, *, tags=None, keys=None, flag=0, delay_time_level=0, properties=None)\n--\n\n";
static PyType_Slot made_slots[] = {
    {Py_tp_init, made_init}, {Py_tp_doc, made_doc}, {0, NULL}};
static PyType_Spec made_spec = {"storage.native._compiled.Made", 0, 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, made_slots};

int add_made(PyObject *module)
{
    PyObject *made = PyType_FromSpec(&made_spec);
    int failed = made == NULL ? -1 : PyModule_AddObjectRef(module, "Made", made);
    Py_XDECREF(made);
    return failed < 0 ? failed : add_caller(module);
}

int prepare_message(void)
{
    static const char *const texts[NAMES] = {"tags", "keys", "flag"};
    for (int i = 0; i < NAMES; i++)
        if ((names[i] = PyUnicode_InternFromString(texts[i])) == NULL)
            return -1;
    tags_key = PyUnicode_InternFromString("TAGS");
    keys_key = PyUnicode_InternFromString("KEYS");
    id_key = PyUnicode_InternFromString("UNIQ_KEY");
    no_flag = PyLong_FromLong(0);
    late_type = (PyTypeObject *)PyType_FromSpec(&late_spec);
    return tags_key && keys_key && id_key && no_flag && late_type ? 0 : -1;
}
