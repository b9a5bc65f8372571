/* Property bytes into a dict. The reference is parse_properties of storage/format/properties.py; a
 * test compares both.
 *
 * A store has few names of properties, and some of them always have the same value (WAIT, TAGS,
 * CLUSTER). So a known name is found again by its bytes, together with its last value.
 */
#include "properties.h"

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

static PyObject *parsed(const char *at, const char *end)
{
    PyObject *found = PyDict_New();
    while (found != NULL && at < end) {
        const char *item_end = memchr(at, 2, end - at);
        if (item_end == NULL)
            item_end = end;
        const char *name_end = memchr(at, 1, item_end - at);
        if (name_end != NULL && name_end > at && name_end + 1 < item_end
            && put_item(found, at, name_end - at, name_end + 1, item_end - name_end - 1) < 0)
            Py_CLEAR(found);
        at = item_end + 1;
    }
    return found;
}

/* The messages of a queue mostly have the same names in the same order, and some values alike. So
 * the last dict is copied, and only the other values are set: half of the time.
 */
enum { MOST_ITEMS = 16, MOST_OTHERS = 8 };
typedef struct {
    PyObject *object; /* owned by the dict */
    const char *at;   /* its UTF-8, which the object owns */
    Py_ssize_t length;
} Part;
static struct {
    PyObject *dict; /* owned, and given to no other code; NULL before the first one */
    Part names[MOST_ITEMS], values[MOST_ITEMS];
    int count;
    int others; /* dicts with other names since it was used; after some it is replaced */
} last;

static int take_part(Part *part, PyObject *text)
{
    part->object = text;
    part->at = PyUnicode_AsUTF8AndSize(text, &part->length);
    if (part->at == NULL)
        PyErr_Clear(); /* no memory: this dict is not remembered */
    return part->at != NULL;
}
/* Remember a dict; 0, or -1 with an error set. */
static int remember(PyObject *found)
{
    PyObject *copy = PyDict_Size(found) <= MOST_ITEMS ? PyDict_Copy(found) : NULL, *name, *value;
    Py_ssize_t place = 0;
    if (copy == NULL)
        return PyErr_Occurred() ? -1 : 0;
    PyObject *old = last.dict;
    last.dict = copy;
    last.count = last.others = 0;
    Py_XDECREF(old);
    while (PyDict_Next(copy, &place, &name, &value)) {
        if (!take_part(&last.names[last.count], name)
            || !take_part(&last.values[last.count], value)) {
            last.count = 0;
            break;
        }
        last.count++;
    }
    return 0;
}

/* A dict with the last one's names; NULL without an error if the text has others. */
static PyObject *like_last(const char *at, const char *end)
{
    const char *starts[MOST_ITEMS];
    Py_ssize_t lengths[MOST_ITEMS];
    for (int i = 0; i < last.count; i++) {
        const Part *name = &last.names[i];
        if (end - at < name->length + 2 || at[name->length] != 1
            || memcmp(at, name->at, (size_t)name->length))
            return NULL;
        at += name->length + 1;
        const char *value_end = memchr(at, 2, (size_t)(end - at));
        starts[i] = at;
        lengths[i] = (value_end ? value_end : end) - at;
        if (lengths[i] == 0 || (value_end == NULL && i + 1 < last.count))
            return NULL;
        at = value_end ? value_end + 1 : end;
    }
    if (at != end || !last.count)
        return NULL;
    PyObject *dict = Py_NewRef(last.dict), *found = PyDict_Copy(dict);
    /* The garbage collector may have run other code, which has replaced it. */
    if (dict != last.dict)
        Py_CLEAR(found);
    Py_DECREF(dict);
    for (int i = 0; found != NULL && i < last.count; i++) {
        const Part *value = &last.values[i];
        if (value->length == lengths[i] && !memcmp(value->at, starts[i], (size_t)lengths[i]))
            continue;
        PyObject *text = PyUnicode_DecodeUTF8(starts[i], lengths[i], "replace");
        if (text == NULL || PyDict_SetItem(found, last.names[i].object, text) < 0)
            Py_CLEAR(found);
        Py_XDECREF(text);
    }
    return found;
}

PyObject *properties_of(const char *at, Py_ssize_t length)
{
    PyObject *found = like_last(at, at + length);
    if (found == NULL && !PyErr_Occurred()) {
        found = parsed(at, at + length);
        last.others++;
        if (found != NULL && (last.dict == NULL || last.others > MOST_OTHERS)
            && remember(found) < 0)
            Py_CLEAR(found);
    } else
        last.others = 0;
    return found;
}

PyDoc_STRVAR(parse_doc, "parse_properties(data)\n\nSee storage.format.properties.");
static PyObject *parse_properties(PyObject *module, PyObject *data)
{
    char *at;
    Py_ssize_t length;
    (void)module;
    return PyBytes_AsStringAndSize(data, &at, &length) < 0 ? NULL : properties_of(at, length);
}

PyMethodDef property_text_functions[] = {
    {"parse_properties", parse_properties, METH_O, parse_doc},
    {NULL, NULL, 0, NULL},
};
