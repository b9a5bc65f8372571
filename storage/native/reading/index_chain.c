/* A key in index files: from its slot along the chain of entries. The reference is _search of
 * storage/index/reader.py; a test compares both. Links of a file are only followed within the file,
 * and only backwards.
 */
#include "index_file.h"
#include "lookups.h"
#include "text.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Append the offsets of one chain, newest first; 0, or -1 with an error set. */
static int append_hits(const unsigned char *file, int64_t length, const Question *asked,
                       int64_t wanted, PyObject *hits)
{
    int64_t first = long_at(file + FIRST_TIME), found = PyList_Size(hits);
    int64_t known = asked->follow_slots ? asked->entries : int_at(file + NEXT_NUMBER);
    int64_t count = smaller(known, asked->entries);
    int64_t at = HEADER + SLOT * (wanted % asked->slots);
    if (at + SLOT > length)
        return 0;
    int64_t number = int_at(file + at);
    if (number <= 0 || number > known || known <= 1)
        return 0;
    while (found < asked->most) {
        at = HEADER + SLOT * asked->slots + ENTRY * number;
        if (number > count || at + ENTRY > length)
            return 0;
        const unsigned char *entry = file + at;
        int64_t offset = long_at(entry + OFFSET), seconds = int_at(entry + SECONDS), when;
        int64_t previous = int_at(entry + PREVIOUS);
        if (seconds < 0)
            return 0;
        int beyond = __builtin_add_overflow(first, seconds * 1000, &when);
        if (beyond)
            when = INT64_MAX;
        if (int_at(entry) == wanted && asked->begin <= when && when <= asked->end && !beyond
            && (!asked->has_below || offset < asked->below)) {
            PyObject *hit = PyLong_FromLongLong(offset);
            int failed = hit == NULL || PyList_Append(hits, hit) < 0;
            Py_XDECREF(hit);
            if (failed)
                return -1;
            found++;
        }
        /* An entry's predecessor was put before it; anything else is damage, perhaps circular. */
        if (previous <= 0 || previous >= number || when < asked->begin)
            return 0;
        number = previous;
    }
    return 0;
}

int64_t hash_of(PyObject *topic, PyObject *key)
{
    Py_ssize_t length, key_length;
    const char *text = text_of(topic, &length), *key_text = text_of(key, &key_length);
    if (text == NULL || key_text == NULL)
        return -1;
    uint32_t hash = java_hash_on(java_hash_on(0, text, length), "#", 1);
    return absolute_hash(java_hash_on(hash, key_text, key_length));
}

/* Search one file: 1 if older ones may have more, 0 if not, -1 with an error set. */
static int look_into(PyObject *map, const Question *asked, int64_t wanted, PyObject *hits)
{
    Py_buffer file;
    if (PyObject_GetBuffer(map, &file, PyBUF_SIMPLE) < 0)
        return -1;
    int goes_on = 1;
    if (file.len >= HEADER) {
        const unsigned char *at = file.buf;
        int64_t first = long_at(at + FIRST_TIME), last = long_at(at + LAST_TIME);
        int64_t begin = asked->begin, end = asked->end;
        goes_on = first >= begin;
        if ((begin < first && end > last) || (first <= begin && begin <= last)
            || (first <= end && end <= last))
            goes_on = append_hits(at, file.len, asked, wanted, hits) < 0 ? -1 : goes_on;
    }
    PyBuffer_Release(&file);
    return goes_on;
}

int search_files(PyObject *files, const Question *asked, int64_t wanted, PyObject *hits)
{
    int goes_on = 1;
    for (Py_ssize_t i = 0;
         goes_on > 0 && i < PyTuple_Size(files) && PyList_Size(hits) < asked->most; i++)
        goes_on = look_into(PyTuple_GetItem(files, i), asked, wanted, hits);
    return goes_on;
}

PyDoc_STRVAR(search_doc,
             "search_index(files, slots, entries, topic, key, begin, end, below, follow_slots,"
             " most, hits)\n\n"
             "Append the hits of index files, newest first, for a topic's key; gives whether"
             " older\n"
             "files may have more, None for text that is no UTF-8.");
static PyObject *search_index(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!are_arguments(count, 11))
        return NULL;
    PyObject *files = args[0], *below = args[7], *hits = args[10];
    if (!PyTuple_Check(files) || !PyList_Check(hits)) {
        PyErr_SetString(PyExc_TypeError, "a tuple of files and a list are required");
        return NULL;
    }
    const Question asked = {
        .slots = PyLong_AsLongLong(args[1]), .entries = PyLong_AsLongLong(args[2]),
        .begin = PyLong_AsLongLong(args[5]), .end = PyLong_AsLongLong(args[6]),
        .below = below == Py_None ? 0 : PyLong_AsLongLong(below), .has_below = below != Py_None,
        .follow_slots = PyObject_IsTrue(args[8]) > 0, .most = PyLong_AsLongLong(args[9]),
    };
    if (!PyErr_Occurred() && (asked.slots <= 0 || asked.slots > INT32_MAX))
        PyErr_SetString(PyExc_ValueError, "no index file has so many slots");
    if (PyErr_Occurred())
        return NULL;
    int64_t wanted = hash_of(args[3], args[4]);
    if (wanted < 0)
        Py_RETURN_NONE;
    int goes_on = search_files(files, &asked, wanted, hits);
    return goes_on < 0 ? NULL : PyBool_FromLong(goes_on);
}

PyMethodDef index_chain_functions[] = {
    {"search_index", (PyCFunction)(void (*)(void))search_index, METH_FASTCALL, search_doc},
    {NULL, NULL, 0, NULL},
};
