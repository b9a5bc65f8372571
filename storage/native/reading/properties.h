/* Properties of a record as a dict. */
#ifndef RMQCTL_PROPERTIES_H
#define RMQCTL_PROPERTIES_H
#include "native.h"

/* A new dict, see parse_properties of storage/format/properties.py; NULL with an error set. */
PyObject *properties_of(const char *at, Py_ssize_t length);

#endif
