/* The functions of input_rows.c, which the module of rows.c offers, too. */
#ifndef RMQCTL_INPUT_ROWS_H
#define RMQCTL_INPUT_ROWS_H
#include "native.h"

extern PyMethodDef input_row_functions[];

#endif
