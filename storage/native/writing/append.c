/* Appending one plain record where all is open, known and has room. The reference is
 * FastAppender.append of storage/append/fast_append.py. It takes all other records as well, and
 * registers files and queues here. Both store the same bytes in the same order; a test kills
 * writers between any two stores.
 */
#include "appending.h"
#include <errno.h>
#include <unistd.h>

static PyObject *end_name, *go_on_at_name, *put_name, *has_file_name;

/* The code of a message's tags; -1 without an error for a value that is no text. */
static int code_of(PyObject *tags, int64_t *code)
{
    Py_ssize_t length;
    const char *text;
    if (tags == Py_None) {
        *code = 0;
        return 0;
    }
    if ((text = text_of(tags, &length)) == NULL)
        return -1;
    *code = (int32_t)java_hash_on(0, text, length);
    return 0;
}

/* The tail of a queue, or NULL. */
Tail *tail_of(Appending *a, PyObject *topic, PyObject *queue_id)
{
    PyObject *queues = PyDict_GetItemWithError(a->topics, topic);
    return queues == NULL ? NULL : (Tail *)PyDict_GetItemWithError(queues, queue_id);
}

/* A map's bytes while no Python code runs, or NULL without an error if it has been closed. */
unsigned char *bytes_of_map(PyObject *map, Py_buffer *view, int64_t needed)
{
    if (PyObject_GetBuffer(map, view, PyBUF_WRITABLE) < 0) {
        PyErr_Clear();
        return NULL;
    }
    unsigned char *at = view->buf;
    int fits = view->len >= needed;
    PyBuffer_Release(view); /* only Python code closes a map */
    return fits ? at : NULL;
}

/* One aligned store, after all stores before it and before all stores after it. */
void store_word(Appending *a, int64_t number, int64_t value)
{
    INSTANT;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n((int64_t *)a->words.buf + number, value, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Whether there is an index file: the reference makes the first one. */
static int has_index_file(Appending *a)
{
    if (!a->has_file) {
        PyObject *found = PyObject_GetAttr(a->pending, has_file_name);
        a->has_file = found != NULL && PyObject_IsTrue(found) == 1;
        Py_XDECREF(found);
    }
    return a->has_file;
}

static void drop(Shell *shell)
{
    Py_XDECREF(shell->found);
    Py_XDECREF(shell->log);
    Py_XDECREF(shell->queue);
    Py_XDECREF(shell->row);
}
int allocate(Appending *a, Shell *shell)
{
    shell->found = PyType_GenericAlloc((PyTypeObject *)a->result_type, 5);
    shell->log = PyTuple_New(1);
    shell->queue = PyTuple_New(1);
    shell->row = PyTuple_New(4);
    if (shell->found && shell->log && shell->queue && shell->row)
        return 0;
    drop(shell);
    return -1;
}
/* Set the numbers of the result, which has its other parts by now, except the row. -1 for an
 * error. */
static int fill(Appending *a, Shell *shell, PyObject *message, int64_t start, int64_t queue_offset,
                int64_t timestamp)
{
    PyObject *at = PyLong_FromLongLong(start), *own = PyLong_FromLongLong(queue_offset);
    PyObject *time = PyLong_FromLongLong(timestamp);
    if (at == NULL || own == NULL || time == NULL) {
        Py_XDECREF(at);
        Py_XDECREF(own);
        Py_XDECREF(time);
        return -1;
    }
    PyTuple_SetItem(shell->row, 0, owned(PyTuple_GetItem(message, TOPIC)));
    PyTuple_SetItem(shell->row, 1, owned(PyTuple_GetItem(message, KEYS)));
    PyTuple_SetItem(shell->row, 2, owned(at));
    PyTuple_SetItem(shell->row, 3, owned(time));
    PyTuple_SetItem(shell->log, 0, at);
    PyTuple_SetItem(shell->queue, 0, own);
    PyTuple_SetItem(shell->found, 0, owned(a->put_ok));
    PyTuple_SetItem(shell->found, 1, shell->log);
    PyTuple_SetItem(shell->found, 2, shell->queue);
    PyTuple_SetItem(shell->found, 3, time);
    PyTuple_SetItem(shell->found, 4, owned(a->no_reason));
    shell->log = shell->queue = NULL;
    return 0;
}

/* Where the noted keys end; -1 without an error if it is no number. */
static int64_t noted_end(Appending *a)
{
    int64_t end;
    PyObject *number = PyObject_GetAttr(a->pending, end_name);
    if (number == NULL || number_of(number, &end) < 0)
        end = -1;
    PyErr_Clear();
    Py_XDECREF(number);
    return end;
}

/* PendingKeys.note; -1 with an error set. */
static int note_keys(Appending *a, PyObject *row, int64_t start, int64_t end)
{
    PyObject *done = Py_None;
    if (noted_end(a) != start) {
        done = PyObject_CallMethodObjArgs(a->pending, go_on_at_name, PyTuple_GetItem(row, 2), NULL);
        if (done == NULL)
            return -1;
        Py_DECREF(done);
    }
    PyObject *number = PyLong_FromLongLong(end);
    int failed = number == NULL || PyList_Append(a->rows, row) < 0
                 || PyObject_SetAttr(a->pending, end_name, number) < 0;
    Py_XDECREF(number);
    if (failed)
        return -1;
    if (PyList_Size(a->rows) >= a->most_pending) {
        done = PyObject_CallMethodObjArgs(a->pending, put_name, NULL);
        Py_XDECREF(done);
        if (!a->in_run)
            a->limit = -1; /* it is a run now: FastAppender.have_room handles it */
    }
    return done == NULL ? -1 : 0;
}

/* Bytes that are written at once: the kernel makes one page of what it can, and has blocks of up to
 * 1 MiB ready; for those of 2 MiB a virtual machine may have to ask its host. */
enum { AT_ONCE = 1 << 20 };
static int write_at(Appending *a, const unsigned char *from, Py_ssize_t size, int64_t position)
{
    for (Py_ssize_t done = 0; done < size;) {
        /* A dead writer may have written a part of it. */
        const size_t left = (size_t)(size - done < AT_ONCE ? size - done : AT_ONCE);
        const size_t piece = instants_left && left > 1 ? left / 2 : left;
        INSTANT;
        ssize_t wrote = pwrite(a->log_fd, from + done, piece, position + done);
        if (wrote <= 0 && errno != EINTR) {
            PyErr_SetFromErrno(PyExc_OSError);
            return -1;
        }
        done += wrote > 0 ? wrote : 0;
    }
    return 0;
}

/* Where records lie between others, each write begins and ends within a page, and makes many
 * small pages of the rest. So for less than AHEAD bytes pages of that size are made first, by
 * writing zeros where all is zero and has blocks. Not where each put is synced: a sync scans all
 * of a page. */
enum { AHEAD = 256 << 10 };
static int make_pages(Appending *a, int64_t start, int64_t end)
{
    static const unsigned char zeros[AHEAD];
    if (a->filled < start) /* the first one, or another process has put something since */
        a->filled = a->first + (start - a->first + AHEAD - 1) / AHEAD * AHEAD;
    for (; a->filled < end && a->filled + AHEAD <= a->first + a->reserved; a->filled += AHEAD)
        if (write_at(a, zeros, AHEAD, a->filled - a->first) < 0)
            return -1;
    return 0;
}

int write_to_log(Appending *a, const unsigned char *buffer, Py_ssize_t size, int64_t start)
{
    if (a->largest && size < AHEAD && make_pages(a, start, start + size) < 0)
        return -1;
    return write_at(a, buffer, size, start - a->first);
}

/* Puts one record at its offset, or into a buffer of its own. */
static void store_record(unsigned char *to, const unsigned char *head_bytes, Py_ssize_t head,
                         const Fields *f, const Tail *tail)
{
    INSTANT;
    to = put_bytes(to, head_bytes, head);
    to = put_bytes(to, f->body, f->body_length);
    INSTANT;
    to = put_bytes(to, tail->topic, tail->topic_length);
    put_bytes(put_length(to, f->properties_length), f->properties, f->properties_length);
}

int append_record(Appending *a, PyObject *message, int64_t now, const int64_t *known_crc,
                         Shell *shell, int alone)
{
    Fields f;
    int32_t level;
    int64_t code;
    if (!a->has_words || a->limit < 0 || !is_log_there(a, now) || !has_index_file(a)
        || fields_of(message, &f) < 0
        || int32_of(PyTuple_GetItem(message, DELAY_TIME_LEVEL), &level) < 0 || level > 0
        || f.sys_flag & ROLLBACK || code_of(PyTuple_GetItem(message, TAGS), &code) < 0)
        return 0;
    PyObject *topic = PyTuple_GetItem(message, TOPIC);
    if (!PyUnicode_CheckExact(topic)) /* an equal one may have another name as a text */
        return 0;
    Tail *tail = tail_of(a, topic, PyTuple_GetItem(message, QUEUE_ID));
    volatile int64_t *words = a->words.buf;
    if (tail == NULL || tail->word >= a->words.len / WORD)
        return 0;
    Py_ssize_t head = head_size(&f);
    int64_t size = head + f.body_length + tail->topic_length + 2 + f.properties_length;
    int64_t start = words[LOG_END], end = start + size, position = start - a->first;
    int64_t queue_offset = words[tail->word];
    int64_t unit_position = queue_offset * UNIT - tail->first;
    if (position < 0 || position > a->limit - size || unit_position < 0
        || unit_position > tail->last)
        return 0;
    if (alone
        && (f.body_length > LARGE_BODY || words[FAILED] || words[STAGE]
            || noted_end(a) != start || PyList_Size(a->rows) + 1 >= a->most_pending))
        return 0;
    Py_buffer view;
    unsigned char *to = bytes_of_map(a->log_map, &view, position + size);
    unsigned char *unit_to = bytes_of_map(tail->map, &view, unit_position + UNIT);
    if (to == NULL || unit_to == NULL)
        return 0;
    int64_t last_timestamp = words[LAST_STORE_TIMESTAMP];
    int64_t timestamp = now > last_timestamp ? now : last_timestamp;
    if (fill(a, shell, message, start, queue_offset, timestamp) < 0)
        return -1;
    int32_t crc = known_crc != NULL ? (int32_t)*known_crc
                                    : (int32_t)(crc32_of(f.body, (size_t)f.body_length) & CRC_MASK);
    unsigned char head_bytes[HEAD + 24], unit[UNIT];
    put_head(head_bytes, &f, (int32_t)size, crc, queue_offset, start, timestamp);
    put_long(put_int(put_long(unit, start), (int32_t)size), code);
    unsigned char *buffer = NULL;
    if (!a->largest) {
        if ((buffer = PyMem_Malloc((size_t)size)) == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        store_record(buffer, head_bytes, head, &f, tail);
    }

    store_word(a, FROM, start);
    store_word(a, TO, end);
    store_word(a, STAGE, STAGE_RECORDS);
    if (buffer == NULL) {
        store_record(to + position, head_bytes, head, &f, tail);
    } else {
        int failed = write_to_log(a, buffer, size, start);
        PyMem_Free(buffer);
        if (failed)
            return -1;
    }
    store_word(a, STAGE, STAGE_DISPATCH);
    INSTANT;
    memcpy(unit_to + unit_position, unit, UNIT / 2);
    INSTANT;
    memcpy(unit_to + unit_position + UNIT / 2, unit + UNIT / 2, UNIT / 2);
    store_word(a, tail->word, queue_offset + 1);
    if (timestamp != last_timestamp)
        store_word(a, LAST_STORE_TIMESTAMP, timestamp);
    store_word(a, LOG_END, end);
    store_word(a, STAGE, STAGE_NONE);
    return note_keys(a, shell->row, start, end) < 0 ? -1 : 1;
}

PyObject *given(Shell *shell, int done)
{
    if (done == 0)
        PyErr_Clear(); /* the reference reports the error */
    PyObject *found = done > 0 ? owned(shell->found) : done == 0 ? owned(Py_None) : NULL;
    drop(shell);
    return found;
}

const char append_doc[] = "append(message, now_ms, body_crc=None)\n\n"
                          "As FastAppender.append does if nothing has to be registered for it.";
PyObject *append(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    int64_t now, crc;
    Shell shell;
    if (count < 2 || count > 3) {
        PyErr_SetString(PyExc_TypeError, "a message and a time are required");
        return NULL;
    }
    int has_crc = count == 3 && args[2] != Py_None;
    if (number_of(args[1], &now) < 0 || (has_crc && number_of(args[2], &crc) < 0))
        Py_RETURN_NONE;
    if (allocate((Appending *)self, &shell) < 0)
        return NULL;
    return given(&shell, append_record((Appending *)self, args[0], now, has_crc ? &crc : NULL,
                                       &shell, 0));
}

int prepare_append(void)
{
    end_name = PyUnicode_InternFromString("end");
    go_on_at_name = PyUnicode_InternFromString("go_on_at");
    put_name = PyUnicode_InternFromString("put");
    has_file_name = PyUnicode_InternFromString("has_file");
    return end_name && go_on_at_name && put_name && has_file_name ? 0 : -1;
}
