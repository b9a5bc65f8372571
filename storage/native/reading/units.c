/* Whether the units of consecutive queue offsets are those of some records. The reference is
 * _compare_queue of storage/tools/fsck/queue_compare.py, which also reports the difference.
 */
#include "native.h"

PyDoc_STRVAR(match_doc,
             "units_match(units, rows, offsets, sizes, tags_codes)\n\n"
             "Whether unit i is that of record ``rows[i]`` of the columns.");
static PyObject *units_match(PyObject *module, PyObject *args)
{
    Py_buffer units, rows, offsets, sizes, codes;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*", &units, &rows, &offsets, &sizes, &codes))
        return NULL;
    const unsigned char *unit = units.buf;
    const int64_t *row = rows.buf, *offset = offsets.buf, *size = sizes.buf, *code = codes.buf;
    Py_ssize_t count = rows.len / 8, records = offsets.len / 8;
    int match = units.len >= count * UNIT && sizes.len == offsets.len && codes.len == offsets.len;
    for (Py_ssize_t i = 0; match && i < count; i++, unit += UNIT)
        match = row[i] >= 0 && row[i] < records && long_at(unit) == offset[row[i]]
                && int_at(unit + 8) == size[row[i]] && long_at(unit + 12) == code[row[i]];
    PyBuffer_Release(&units);
    PyBuffer_Release(&rows);
    PyBuffer_Release(&offsets);
    PyBuffer_Release(&sizes);
    PyBuffer_Release(&codes);
    return PyBool_FromLong(match);
}

PyMethodDef unit_functions[] = {
    {"units_match", units_match, METH_VARARGS, match_doc},
    {NULL, NULL, 0, NULL},
};
