/* The compiled module of the client: the functions of the files beside this one. */
#include "pulled.h"

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_compiled", "Compiled loops of the client.", -1, NULL,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__compiled(void)
{
    if (prepare_pulled() < 0 || prepare_calls() < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL
        && (PyModule_AddFunctions(module, pulled_functions) < 0
            || PyModule_AddFunctions(module, call_functions) < 0))
        Py_CLEAR(module);
    return module;
}
