/* When a file was changed last: one field of os.fstat, without an object of all fields. Called at
 * every read, see storage/coordination/java_start.py.
 */
#include "kernel.h"
#include "native.h"

PyDoc_STRVAR(changed_doc, "changed_ns(fd)\n\nos.fstat(fd).st_ctime_ns");
static PyObject *changed_ns(PyObject *module, PyObject *fd)
{
    struct stat found;
    long number = PyLong_AsLong(fd);
    (void)module;
    if (number == -1 && PyErr_Occurred())
        return NULL;
    if (number < 0 || number > INT32_MAX || fstat((int)number, &found) < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    return PyLong_FromLongLong(found.CHANGED.tv_sec * 1000000000ll + found.CHANGED.tv_nsec);
}

PyMethodDef file_change_functions[] = {
    {"changed_ns", changed_ns, METH_O, changed_doc},
    {NULL, NULL, 0, NULL},
};
