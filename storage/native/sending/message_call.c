/* Calling the class of messages to send. Python puts a call's arguments into a tuple and a dict,
 * and the class unpacks them: a third of the time of making a message. A class whose metaclass has
 * a vectorcall (PEP 590) takes them directly.
 */
#include "plain.h"
#include "structmember.h"

typedef PyObject *(*Way)(PyObject *, PyObject *const *, size_t, PyObject *); /* vectorcallfunc */
enum { TAKES_CALLS = 1 << 11 };                 /* Py_TPFLAGS_HAVE_VECTORCALL, named since 3.12 */
static const size_t COUNT_FLAG = (size_t)1 << (8 * sizeof(size_t) - 1);

static PyTypeObject *caller_type; /* the metaclass */
static Py_ssize_t way_at;         /* offset of the vectorcall in such classes */

/* The call of any class: with a tuple and a dict. */
static PyObject *call_usually(PyObject *type, PyObject *const *values, Py_ssize_t count,
                              PyObject *names)
{
    const Py_ssize_t named = names == NULL ? 0 : PyTuple_Size(names);
    PyObject *args = PyTuple_New(count), *by_name = named ? PyDict_New() : NULL, *made = NULL;
    int good = args != NULL && (!named || by_name != NULL);
    for (Py_ssize_t i = 0; good && i < count; i++) {
        Py_INCREF(values[i]);
        PyTuple_SetItem(args, i, values[i]);
    }
    for (Py_ssize_t i = 0; good && i < named; i++)
        good = PyDict_SetItem(by_name, PyTuple_GetItem(names, i), values[count + i]) == 0;
    if (good)
        made = ((ternaryfunc)PyType_GetSlot(&PyType_Type, Py_tp_call))(type, args, by_name);
    Py_XDECREF(args);
    Py_XDECREF(by_name);
    return made;
}

static PyObject *call(PyObject *type, PyObject *const *values, size_t flagged, PyObject *names)
{
    const Py_ssize_t count = (Py_ssize_t)(flagged & ~COUNT_FLAG);
    PyObject *made;
    if (count == 2 && make_at_once((PyTypeObject *)type, values, names, &made))
        return made;
    return call_usually(type, values, count, names);
}

void take_calls(PyTypeObject *type)
{
    if (Py_TYPE((PyObject *)type) == caller_type) {
        const Way way = call;
        memcpy((char *)type + way_at, &way, sizeof way);
    }
}

/* A metaclass: its classes have one more pointer than usual ones. */
int add_caller(PyObject *module)
{
    PyObject *bases = PyTuple_Pack(1, &PyType_Type);
    PyObject *size = PyObject_GetAttrString((PyObject *)&PyType_Type, "__basicsize__");
    way_at = size == NULL ? -1 : PyLong_AsSsize_t(size);
    PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, way_at, READONLY, NULL}, {0}};
    static char doc[] = "A metaclass whose classes compiled code may make directly callable.";
    PyType_Slot slots[] = {{Py_tp_members, members}, {Py_tp_doc, doc}, {0, NULL}};
    PyType_Spec spec = {"storage.native._compiled.CalledAtOnce", (int)(way_at + sizeof(Way)), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | TAKES_CALLS, slots};
    if (bases != NULL && way_at > 0)
        caller_type = (PyTypeObject *)PyType_FromSpecWithBases(&spec, bases);
    Py_XDECREF(bases);
    Py_XDECREF(size);
    return caller_type == NULL
               ? -1
               : PyModule_AddObjectRef(module, "CalledAtOnce", (PyObject *)caller_type);
}
