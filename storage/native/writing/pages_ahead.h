/* Blocks and pages of a mapped file that a thread makes ahead of the stores. */
#ifndef RMQCTL_PAGES_AHEAD_H
#define RMQCTL_PAGES_AHEAD_H
#include "native.h"

/* Fields that the thread and the caller that stores share; positions in the file. */
typedef struct {
    int64_t at;       /* where stores are; pages below it are made in vain */
    int64_t from, to; /* the pages that are made; ``from`` changes only while there are none */
} PagesMade;

typedef struct PagesAhead PagesAhead;

int is_pages_ahead(PyObject *object);
PagesMade *made_by(PyObject *pages_ahead);

/* Whether all of [start, end) is made. Says no for a moment while the thread begins elsewhere. A
 * wrong yes is only possible for pages that have blocks, which the caller has reserved. */
static inline int are_made(PagesMade *made, int64_t start, int64_t end)
{
    __atomic_store_n(&made->at, start, __ATOMIC_RELAXED);
    return end <= __atomic_load_n(&made->to, __ATOMIC_ACQUIRE)
           && start >= __atomic_load_n(&made->from, __ATOMIC_RELAXED);
}

#endif
