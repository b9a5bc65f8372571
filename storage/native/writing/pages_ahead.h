/* Blocks and pages of a mapped file that a thread makes ahead of who stores to it. */
#ifndef RMQCTL_PAGES_AHEAD_H
#define RMQCTL_PAGES_AHEAD_H
#include "native.h"

/* What the thread and who stores know of each other; positions in the file. */
typedef struct {
    int64_t at;       /* where who stores is; pages below it are made in vain */
    int64_t from, to; /* the pages that are made; ``from`` is changed while there are none */
} PagesMade;

typedef struct PagesAhead PagesAhead;

int is_pages_ahead(PyObject *object);
PagesMade *made_by(PyObject *pages_ahead);

/* Whether all of [start, end) is made. It says no for a moment while the thread begins elsewhere;
 * wrongly it says yes never for pages without blocks: who asks knows that they have them. */
static inline int are_made(PagesMade *made, int64_t start, int64_t end)
{
    __atomic_store_n(&made->at, start, __ATOMIC_RELAXED);
    return end <= __atomic_load_n(&made->to, __ATOMIC_ACQUIRE)
           && start >= __atomic_load_n(&made->from, __ATOMIC_RELAXED);
}

#endif
