/* Messages as producers give them: plain ones, that are only to be stored, as nearly all are. All
 * others are left to the references, which have the rules and the errors.
 */
#ifndef RMQCTL_PLAIN_H
#define RMQCTL_PLAIN_H
#include "native.h"

/* A text and its UTF-8, which the object owns; NULL, NULL and 0 without a text. */
struct text {
    PyObject *object;
    const char *at;
    Py_ssize_t size;
};

/* One message, checked; nothing is copied or owned. Valid while the message is not changed. */
struct plain {
    const unsigned char *body;
    Py_ssize_t body_size;
    PyObject *topic;
    int32_t flag;
    PyObject *properties; /* a dict, or Late */
    PyObject *unique_id; /* NULL where it has none; an id may be text only */
    struct text keys, tags;
    const char *id;                    /* NULL: it has no id */
    Py_ssize_t id_size;
    Py_ssize_t size; /* bytes of the properties as text */
};

/* Properties that were not read yet: the arguments of the message, and the id that it got. The
 * first read makes a dict, which the message has from then on. All objects here are str, so the
 * garbage collector need not track it. */
enum { LATE_ID = 56 };
typedef struct {
    PyObject ob_base;
    struct text tags, keys; /* owned and not empty; with their UTF-8 after the first read */
    PyObject *id;           /* owned and not empty; NULL where there is none */
    Py_ssize_t size;        /* of tags and keys as text; -1: not measured yet */
    Py_ssize_t id_size;
    char id_text[LATE_ID]; /* of an id that is no object yet; ASCII */
} Late;
extern PyTypeObject *late_type;
static inline int is_late(PyObject *properties) { return Py_TYPE(properties) == late_type; }
static inline int has_id(const Late *late) { return late->id != NULL || late->id_size; }
/* A new dict of them; NULL with an error set. */
PyObject *dict_of(Late *late);
/* The id as an object, owned by the Late; NULL with an error set. */
PyObject *id_of(Late *late);

/* The class of messages and the class of stored ones, once bind_sent was called; else NULL. */
extern PyTypeObject *sent_type, *inner_type; /* Message, MessageInner */

/* Whether a message is plain: of the bound class, with a body of bytes, a flag of 32 bits, and
 * properties of str that have names, values and no separators in them, none of which requests
 * anything (DELAY, WAIT, TRAN_MSG) or is set by the broker (CLUSTER). Never an error. */
int is_plain(PyObject *message, struct plain *found);

/* The bytes of a text that is allowed in properties; NULL without an error for another. */
const char *plain_text(PyObject *text, Py_ssize_t *size);
/* Writes properties that were checked; gives where they end. */
unsigned char *write_properties(const struct plain *found, unsigned char *at);

/* Slots of a Message. */
enum { SENT_TOPIC, SENT_BODY, SENT_FLAG, SENT_PROPERTIES, SENT_SLOTS };
extern Py_ssize_t sent_slots[SENT_SLOTS]; /* their places in it, in bytes */
static inline PyObject **place_of_slot(PyObject *message, int slot)
{
    return (PyObject **)((char *)message + sent_slots[slot]);
}
static inline PyObject *slot_of(PyObject *message, int slot)
{
    return *place_of_slot(message, slot);
}

PyObject *make_late(PyObject *module, PyObject *function); /* message.c */
extern const char make_late_doc[];
int prepare_message(void);
/* A message from a topic, a body and keyword arguments; 0: it is for the general path. ``made`` is
 * NULL with an error set. */
int make_at_once(PyTypeObject *type, PyObject *const *values, PyObject *names, PyObject **made);
/* message_call.c: makes calls of a class go to make_at_once, if its class is CalledAtOnce. */
void take_calls(PyTypeObject *type);
int add_caller(PyObject *module);

/* An item of a list or tuple, borrowed, and how many there are (-1: it is neither). */
Py_ssize_t length_of(PyObject *messages);
PyObject *item_of(PyObject *messages, Py_ssize_t number);

#endif
