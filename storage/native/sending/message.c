/* Making a message to send: what Message.__init__ of storage/model.py does with what nearly all give,
 * a topic, a body, tags and keys. All else is left to it.
 */
#include "plain.h"

enum { TAGS_NAME, KEYS_NAME, FLAG_NAME, NAMES };
static PyObject *names[NAMES], *tags_key, *keys_key, *no_flag;
static PyObject *pure; /* the function of model.py */

static void set_slot(PyObject *message, int slot, PyObject *value)
{
    PyObject **at = place_of_slot(message, slot), *old = *at;
    Py_INCREF(value);
    *at = value;
    Py_XDECREF(old);
}

/* Which name it is, by who it is: callers' names are interned. -1 for another. */
static int name_of(PyObject *name)
{
    for (int i = 0; i < NAMES; i++)
        if (name == names[i])
            return i;
    return -1;
}

static PyObject *make_purely(PyObject *self, PyObject *const *args, Py_ssize_t count,
                             PyObject *given)
{
    PyObject *all = PyTuple_New(count + 1), *by_name = PyDict_New(), *done = NULL;
    int good = all != NULL && by_name != NULL;
    for (Py_ssize_t i = 0; good && i <= count; i++) {
        PyObject *value = i ? args[i - 1] : self;
        Py_INCREF(value);
        good = PyTuple_SetItem(all, i, value) == 0;
    }
    for (Py_ssize_t i = 0; good && given != NULL && i < PyTuple_Size(given); i++)
        good = PyDict_SetItem(by_name, PyTuple_GetItem(given, i), args[count + i]) == 0;
    if (good)
        done = PyObject_Call(pure, all, by_name);
    Py_XDECREF(all);
    Py_XDECREF(by_name);
    return done;
}

/* Puts a text that is not empty; nothing for None or "". -1 with an error set, 1 for no text. */
static int put_text(PyObject *properties, PyObject *key, PyObject *value)
{
    if (value == NULL || value == Py_None)
        return 0;
    if (!PyUnicode_CheckExact(value))
        return 1;
    return PyUnicode_GetLength(value) ? PyDict_SetItem(properties, key, value) : 0;
}

PyDoc_STRVAR(init_doc,
             "__init__($self, /, topic, body, *, tags=None, keys=None, flag=0, delay_time_level=0,"
             " properties=None)\n--\n\n");
static PyObject *init(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *given)
{
    PyObject *values[NAMES] = {NULL, NULL, no_flag};
    int usual = count == 2 && Py_TYPE(self) == sent_type;
    for (Py_ssize_t i = 0; usual && given != NULL && i < PyTuple_Size(given); i++) {
        int name = name_of(PyTuple_GetItem(given, i));
        usual = name >= 0;
        if (usual)
            values[name] = args[count + i];
    }
    if (usual) {
        PyObject *properties = PyDict_New();
        if (properties == NULL)
            return NULL;
        int failed = put_text(properties, tags_key, values[TAGS_NAME]);
        if (!failed)
            failed = put_text(properties, keys_key, values[KEYS_NAME]);
        if (!failed) {
            set_slot(self, SENT_TOPIC, args[0]);
            set_slot(self, SENT_BODY, args[1]);
            set_slot(self, SENT_FLAG, values[FLAG_NAME]);
            set_slot(self, SENT_PROPERTIES, properties);
        }
        Py_DECREF(properties);
        if (failed < 0)
            return NULL;
        usual = !failed;
    }
    if (!usual)
        return make_purely(self, args, count, given);
    Py_RETURN_NONE;
}

static PyMethodDef init_method = {"__init__", (PyCFunction)(void (*)(void))init,
                                  METH_FASTCALL | METH_KEYWORDS, init_doc};

const char message_init_doc[] =
    "message_init(pure)\n\n"
    "A method for the class that bind_sent was told: the same as ``pure``, its own __init__.";
PyObject *message_init(PyObject *module, PyObject *function)
{
    (void)module;
    if (sent_type == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "bind_sent comes first");
        return NULL;
    }
    Py_INCREF(function);
    Py_XDECREF(pure);
    pure = function;
    return PyDescr_NewMethod(sent_type, &init_method);
}

int prepare_message(void)
{
    static const char *const texts[NAMES] = {"tags", "keys", "flag"};
    for (int i = 0; i < NAMES; i++)
        if ((names[i] = PyUnicode_InternFromString(texts[i])) == NULL)
            return -1;
    tags_key = PyUnicode_InternFromString("TAGS");
    keys_key = PyUnicode_InternFromString("KEYS");
    no_flag = PyLong_FromLong(0);
    return tags_key && keys_key && no_flag ? 0 : -1;
}
