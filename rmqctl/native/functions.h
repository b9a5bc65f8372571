/* The functions of the C files beside this one: each file has a table, which module.c adds. */
#ifndef RMQCTL_FUNCTIONS_H
#define RMQCTL_FUNCTIONS_H
#include "native.h"

extern PyMethodDef input_row_functions[];
extern PyMethodDef row_functions[];
extern PyMethodDef json_functions[];  /* json_tests.c */
extern PyMethodDef merge_functions[]; /* row_merge.c */

#endif
