/* Files of the log for compiled loops, see ReadOnlyFiles of storage/files/read_files.py. */
#include "log_file.h"

static PyObject *view_name;

void close_file(LogFile *file)
{
    if (file->first >= 0)
        PyBuffer_Release(&file->bytes);
    file->first = -1;
}

int open_file(LogFile *file, int64_t first)
{
    if (file->first == first)
        return 1;
    close_file(file);
    PyObject *number = PyLong_FromLongLong(first), *map = NULL;
    if (number == NULL)
        return -1;
    if (file->opened == NULL)
        map = PyObject_CallFunctionObjArgs(file->at, number, NULL);
    else /* a thread that maps another one may drop it from the dict */
        map = Py_XNewRef(PyDict_GetItemWithError(file->opened, number));
    Py_DECREF(number);
    if (map == NULL || map == Py_None) {
        Py_XDECREF(map);
        return PyErr_Occurred() ? -1 : 0;
    }
    PyObject *view = PyObject_GetAttr(map, view_name);
    Py_DECREF(map);
    if (view == NULL)
        return -1;
    int failed = PyObject_GetBuffer(view, &file->bytes, PyBUF_SIMPLE); /* keeps the map alive */
    Py_DECREF(view);
    if (failed)
        return -1;
    file->first = first;
    return 1;
}

int prepare_log_file(void)
{
    view_name = PyUnicode_InternFromString("view");
    return view_name ? 0 : -1;
}
