/* The machine's clock, see client/timing.py and storage/clock.py. */
#include "native.h"
#include <time.h>

int64_t clock_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

PyDoc_STRVAR(now_doc, "now_ms()\n\nMilliseconds since the epoch.");
static PyObject *now_ms(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    return PyLong_FromLongLong(clock_ms());
}

PyMethodDef clock_functions[] = {
    {"now_ms", now_ms, METH_NOARGS, now_doc},
    {NULL, NULL, 0, NULL},
};
