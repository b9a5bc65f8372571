/* The values at some paths of a JSON text, in one pass without objects. */
#ifndef RMQCTL_JSON_SCAN_H
#define RMQCTL_JSON_SCAN_H
#include "functions.h"

enum { MOST_PATHS = 63 }; /* bits of a number */

typedef enum {
    ABSENT,   /* there is no value: on its way is no object and no array that could have it */
    UNNAMED,  /* an object lacks the name of a step */
    NIL,
    FALSITY,
    TRUTH,
    WHOLE,    /* a number that fits into 64 bits, with no point and no exponent */
    FRACTION, /* a number that a double has exactly as Python's reader rounds it */
    NUMBER,   /* another number */
    TEXT,
    ESCAPED,  /* a text with escapes */
    NESTED,   /* an object or an array */
} Kind;

typedef struct {
    Kind kind;
    int64_t whole;
    double fraction;
    const unsigned char *at; /* the bytes of a text, without its quotes */
    Py_ssize_t length;
} Value;

/* A step is a name, or an index where the name is NULL. */
typedef struct {
    const unsigned char *name;
    Py_ssize_t length, index;
} Step;

typedef struct {
    const Step *steps;
    Py_ssize_t count;
} Path;

/* Reads a text; sets a value for each path. 0 if it cannot be said here: what is no JSON, and what
 * Python's reader may take in another way. */
int scan_json(const unsigned char *at, Py_ssize_t length, const Path *paths, Py_ssize_t count,
              Value *values);

#endif
