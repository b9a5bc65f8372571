/* Deaths between two stores, for tests: no replaced file system observes the stores of compiled
 * forms. */
#include "record.h"
#include <signal.h>

long long instants_left = 0;
void count_instant(void)
{
    if (!--instants_left)
        raise(SIGKILL);
}

PyDoc_STRVAR(die_doc, "die_after(instants)\n\n"
                      "Kill this process after so many more stores to maps; for tests.");
static PyObject *die_after(PyObject *module, PyObject *number)
{
    long long value = PyLong_AsLongLong(number);
    (void)module;
    if (value == -1 && PyErr_Occurred())
        return NULL;
    instants_left = value;
    Py_RETURN_NONE;
}

PyMethodDef instant_functions[] = {
    {"die_after", die_after, METH_O, die_doc},
    {NULL, NULL, 0, NULL},
};
