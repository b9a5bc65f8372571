/* The compiled module of the command line: the functions of all files beside this one. */
#include "functions.h"

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_compiled", "Compiled loops of the command line.", -1, NULL,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__compiled(void)
{
    PyMethodDef *const tables[] = {row_functions, merge_functions, json_functions, input_row_functions};
    PyObject *module = PyModule_Create(&definition);
    for (size_t i = 0; module != NULL && i < sizeof tables / sizeof tables[0]; i++)
        if (PyModule_AddFunctions(module, tables[i]) < 0)
            Py_CLEAR(module);
    return module;
}
