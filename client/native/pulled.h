/* Work on messages between their pull and the listener: pulled.c. */
#ifndef RMQCTL_PULLED_H
#define RMQCTL_PULLED_H
#include "native.h"

/* Where the slots of a class lie (a few), those that it inherits too; -1 with an error set if it
 * has not all of them, or is no class: nothing is changed then. */
enum { MOST_SLOTS = 4 };
int find_places(PyObject *type, const char *const *names, int count, Py_ssize_t *places);

/* Properties (borrowed bytes) for many messages. ``known`` and ``both`` (owned) are those that
 * the last message had before, and the sum: messages pulled together mostly have the same. */
typedef struct {
    PyObject *items, *known, *both;
} Added;

/* For each message of a list or tuple; -1 with an error set. */
int add_properties(PyObject *messages, Added *added);
void let_go(Added *added);

extern PyMethodDef pulled_functions[];
int prepare_pulled(void);
extern PyMethodDef call_functions[]; /* calls.c */
int prepare_calls(void);

#endif
