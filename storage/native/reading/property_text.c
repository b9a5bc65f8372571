/* Property bytes into a dict. The reference is parse_properties of storage/format/properties.py; a
 * test compares both.
 *
 * A store has few names of properties, and some of them always have the same value (WAIT, TAGS,
 * CLUSTER). So a known name is found again by its bytes, together with its last value.
 */
#include "native.h"

enum { KNOWN = 64, LONGEST = 64 };
static struct {
    PyObject *name, *value; /* owned; both or none */
} known[KNOWN];

/* Whether a text has these bytes, which may be no UTF-8. */
static int is_text(PyObject *text, const char *at, Py_ssize_t length)
{
    Py_ssize_t size;
    const char *bytes = PyUnicode_AsUTF8AndSize(text, &size);
    if (bytes == NULL)
        PyErr_Clear(); /* no memory: treated as another one */
    return bytes != NULL && size == length && !memcmp(bytes, at, length);
}

static unsigned place_of(const char *name, Py_ssize_t length)
{
    return ((unsigned char)name[0] * 7u + (unsigned char)name[length - 1] * 31u + (unsigned)length)
           % KNOWN;
}

static int put_item(PyObject *found, const char *name, Py_ssize_t length, const char *text,
                    Py_ssize_t text_length)
{
    unsigned place = place_of(name, length);
    PyObject *key = known[place].name, *value = known[place].value;
    if (key != NULL && is_text(key, name, length)) {
        Py_INCREF(key);
        if (is_text(value, text, text_length))
            Py_INCREF(value);
        else
            value = PyUnicode_DecodeUTF8(text, text_length, "replace");
    } else {
        key = PyUnicode_DecodeUTF8(name, length, "replace");
        value = key ? PyUnicode_DecodeUTF8(text, text_length, "replace") : NULL;
    }
    int failed = value == NULL || PyDict_SetItem(found, key, value) < 0;
    if (!failed && length <= LONGEST && text_length <= LONGEST) {
        PyObject *old_key = known[place].name, *old_value = known[place].value;
        known[place].name = key;
        known[place].value = value;
        key = old_key;
        value = old_value;
    }
    Py_XDECREF(key);
    Py_XDECREF(value);
    return failed ? -1 : 0;
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
        const char *item_end = memchr(at, 2, end - at);
        if (item_end == NULL)
            item_end = end;
        const char *name_end = memchr(at, 1, item_end - at);
        if (name_end != NULL && name_end > at && name_end + 1 < item_end
            && put_item(found, at, name_end - at, name_end + 1, item_end - name_end - 1) < 0)
            Py_CLEAR(found);
        at = (char *)item_end + 1;
    }
    return found;
}

PyMethodDef property_text_functions[] = {
    {"parse_properties", parse_properties, METH_O, parse_doc},
    {NULL, NULL, 0, NULL},
};
