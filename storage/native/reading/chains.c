/* Whether the chains of an index file reach each entry once, from its own slot.
 * storage/tools/fsck/index_file.py reports what is wrong; its _check_chains is the reference.
 */
#include "index_file.h"
#include "native.h"

enum { AHEAD = 16 };

typedef struct {
    const unsigned char *slots, *entries;
    int64_t slot_count, count;
    unsigned char *reached;
} Index;

static void fetch(const Index *index, int64_t number)
{
#if defined(__GNUC__)
    if (number > 0 && number < index->count) {
        __builtin_prefetch(index->entries + number * ENTRY);
        __builtin_prefetch(index->reached + number);
    }
#else
    (void)index, (void)number;
#endif
}

/* Note that a link of ``slot`` leads to an entry; 0 if the entry is not of that slot, or was
 * reached before. */
static int reach(const Index *index, int64_t number, int64_t slot)
{
    int32_t key_hash = int_at(index->entries + number * ENTRY);
    return key_hash >= 0 && key_hash % index->slot_count == slot && !index->reached[number]++;
}

static int are_sound(const Index *index)
{
    for (int64_t slot = 0; slot < index->slot_count; slot++) {
        if (slot + AHEAD < index->slot_count)
            fetch(index, int_at(index->slots + (slot + AHEAD) * SLOT));
        int64_t named = int_at(index->slots + slot * SLOT);
        if (named && (named < 0 || named >= index->count || !reach(index, named, slot)))
            return 0;
    }
    for (int64_t number = 1; number < index->count; number++) {
        const unsigned char *entry = index->entries + number * ENTRY;
        if (number + AHEAD < index->count)
            fetch(index, int_at(entry + AHEAD * ENTRY + PREVIOUS));
        int64_t before = int_at(entry + PREVIOUS);
        int32_t key_hash = int_at(entry);
        if (key_hash < 0 || before < 0 || before >= number
            || (before && !reach(index, before, key_hash % index->slot_count)))
            return 0;
    }
    return index->count < 2 || memchr(index->reached + 1, 0, (size_t)index->count - 1) == NULL;
}

PyDoc_STRVAR(chains_doc,
             "chains_are_sound(slots, entries)\n\n"
             "Whether every entry but the first, unused one is reached once, from its own slot.");
static PyObject *chains_are_sound(PyObject *module, PyObject *args)
{
    Py_buffer slots, entries;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*", &slots, &entries))
        return NULL;
    Index index = {slots.buf, entries.buf, slots.len / SLOT, entries.len / ENTRY, NULL};
    index.reached = PyMem_Calloc((size_t)index.count + 1, 1);
    int sound = 0;
    if (index.reached != NULL) {
        Py_BEGIN_ALLOW_THREADS;
        sound = are_sound(&index);
        Py_END_ALLOW_THREADS;
    }
    int failed = index.reached == NULL;
    PyMem_Free(index.reached);
    PyBuffer_Release(&slots);
    PyBuffer_Release(&entries);
    return failed ? PyErr_NoMemory() : PyBool_FromLong(sound);
}

PyMethodDef chain_functions[] = {
    {"chains_are_sound", chains_are_sound, METH_VARARGS, chains_doc},
    {NULL, NULL, 0, NULL},
};
