/* The compiled module of the store: the functions of all files in the folders beside this one. */
#include "native.h"

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_compiled", "Compiled loops of the store.", -1, NULL,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__compiled(void)
{
    PyMethodDef *const tables[] = {
        clock_functions, crc_functions, scan_functions, take_functions, column_functions, chain_functions, unit_functions,
        tally_functions,
        message_functions, message_table_functions, property_text_functions, index_chain_functions, key_query_functions,
        time_search_functions, pull_functions, file_change_functions, many_file_functions, number_table_functions,
        lag_column_functions, property_functions, inner_functions,
        sent_functions, id_functions, encode_functions, encode_row_functions, table_functions, key_functions,
        appending_functions, instant_functions, readdressed_functions, bell_functions, page_functions,
    };
    prepare_crc();
    if (prepare_messages() < 0 || prepare_log_file() < 0 || prepare_steady() < 0 || prepare_properties() < 0
        || prepare_appending() < 0 || prepare_pages() < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    for (size_t i = 0; module != NULL && i < sizeof tables / sizeof tables[0]; i++)
        if (PyModule_AddFunctions(module, tables[i]) < 0)
            Py_CLEAR(module);
    if (module != NULL && add_made(module) < 0)
        Py_CLEAR(module);
    return module;
}
