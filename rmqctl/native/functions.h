/* The functions of the C files beside this one: each file has a table, which module.c adds. */
#ifndef RMQCTL_FUNCTIONS_H
#define RMQCTL_FUNCTIONS_H
#include "native.h"

extern PyMethodDef input_row_functions[];
extern PyMethodDef row_functions[];
extern PyMethodDef json_functions[];  /* json_tests.c */
extern PyMethodDef merge_functions[]; /* row_merge.c */

typedef struct {
    const unsigned char *at; /* NULL: there is none */
    Py_ssize_t length;
} Text;

/* The bytes of an object; -1 with an error set, else 0. */
static inline int text_of_bytes(PyObject *bytes, Text *text)
{
    char *at;
    if (PyBytes_AsStringAndSize(bytes, &at, &text->length) < 0)
        return -1;
    text->at = (const unsigned char *)at;
    return 0;
}

#endif
