/* Appending a batch that was encoded by compiled code, where all is open, known and has room: log,
 * queues and index in one step. The reference is Appender._append_part of storage/append/append.py,
 * which takes all other batches as well. Both store the same bytes, in the same order of stages; a
 * test kills writers between any two stores.
 */
#include "appending.h"
#include "keys.h"
#include "rows.h"
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { LINE = 64 }; /* of the processor's caches */

static PyObject *cast_name, *long_format;

const char use_index_doc[] =
    "use_index(map, name, slots, most_entries, first, end)\n\n"
    "The index file whose bytes from ``first`` to ``end`` take the next keys; None: there are no"
    " keys.";
PyObject *use_index(PyObject *self, PyObject *args)
{
    Appending *a = (Appending *)self;
    PyObject *map;
    long long name, slots, most, first, end;
    if (!PyArg_ParseTuple(args, "OLLLLL", &map, &name, &slots, &most, &first, &end))
        return NULL;
    if (map != Py_None && (slots < 1 || slots > INT32_MAX || first < HEADER + slots * SLOT)) {
        PyErr_SetString(PyExc_ValueError, "no index file");
        return NULL;
    }
    Py_XDECREF(a->index.map);
    a->index = (Index){map == Py_None ? NULL : owned(map), name, first, end, slots, most,
                       map == Py_None};
    Py_RETURN_NONE;
}

/* One batch, and the offsets and maps that it goes to. Only ``memory`` and ``changes`` are
 * owned. */
typedef struct {
    const Row *rows;
    Py_ssize_t count, queue_count, keys;
    unsigned char *buffer;
    Py_ssize_t size;
    const int64_t *hashes;
    void *memory; /* holds the arrays: */
    int64_t *following, *counts, *places;
    unsigned char **unit_to;
    Tail **tails;
    unsigned char *log_to, *index_to; /* NULL: it goes through the descriptor; no keys */
    int is_large; /* more than ``largest`` bytes: stored past the caches */
    int64_t start, timestamp;
    Header header;
    Changes changes;
} Batch;

/* The result of a put: allocated first, because the garbage collector may run other code then. The
 * numbers are columns of native longs: a reader makes an int of each that it reads, and no reader
 * needs all of them. */
typedef struct {
    PyObject *found, *log, *queue;
    int64_t *in_log, *in_queue;
} Columns;

static PyObject *column_of(Py_ssize_t count, int64_t **numbers)
{
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof **numbers);
    PyObject *view = bytes == NULL ? NULL : PyMemoryView_FromObject(bytes), *column = NULL;
    if (view != NULL) {
        *numbers = (int64_t *)PyBytes_AsString(bytes);
        column = PyObject_CallMethodObjArgs(view, cast_name, long_format, NULL);
    }
    Py_XDECREF(view);
    Py_XDECREF(bytes);
    return column;
}
static int allocate_columns(Appending *a, Columns *columns, Py_ssize_t count)
{
    columns->found = PyType_GenericAlloc((PyTypeObject *)a->result_type, 5);
    columns->log = column_of(count, &columns->in_log);
    columns->queue = column_of(count, &columns->in_queue);
    return columns->found && columns->log && columns->queue ? 0 : -1;
}
static void drop_columns(Columns *columns)
{
    Py_XDECREF(columns->found);
    Py_XDECREF(columns->log);
    Py_XDECREF(columns->queue);
}
int prepare_append_batch(void)
{
    cast_name = PyUnicode_InternFromString("cast");
    long_format = PyUnicode_InternFromString("q");
    return cast_name && long_format ? 0 : -1;
}

/* -- checking ------------------------------------------------------------------------------ */

/* The arrays of a batch whose numbers of rows, queues and keys are known. */
static int allocate_arrays(Batch *b)
{
    const size_t queues = (size_t)b->queue_count;
    b->memory = PyMem_Calloc(4 * queues + (size_t)b->keys + 1, 8);
    if (b->memory == NULL)
        return -1;
    b->following = b->memory;
    b->counts = b->following + queues;
    b->unit_to = (unsigned char **)(b->counts + queues);
    b->tails = (Tail **)(b->unit_to + queues);
    b->places = (int64_t *)(b->tails + queues);
    return 0;
}

/* Whether the rows are those of the buffer, of the queues and of the hashes; counts units, and
 * notes where the record of each key will be. */
static int rows_agree(Batch *b)
{
    int64_t at = 0, keys = 0;
    for (Py_ssize_t i = 0; i < b->count; i++) {
        const Row *row = b->rows + i;
        if (row->start != at || row->size < LEAST || row->size > b->size - at || row->queue < 0
            || row->queue >= b->queue_count || row->keys < 0 || row->keys > b->keys - keys)
            return 0;
        b->counts[row->queue] += row->has_unit != 0;
        for (int64_t key = 0; key < row->keys; key++)
            b->places[keys++] = b->start + at;
        at += row->size;
    }
    return at == b->size && keys == b->keys;
}

static int look_at_queues(Appending *a, Batch *b, PyObject *queues)
{
    volatile int64_t *words = a->words.buf;
    Py_buffer view;
    for (Py_ssize_t i = 0; i < b->queue_count; i++) {
        PyObject *queue = PyList_GetItem(queues, i), *topic, *queue_id;
        if (!PyTuple_Check(queue) || PyTuple_Size(queue) != 2
            || !PyUnicode_CheckExact(topic = PyTuple_GetItem(queue, 0))
            || !PyLong_CheckExact(queue_id = PyTuple_GetItem(queue, 1)))
            return BATCH_UNUSUAL;
        Tail *tail = tail_of(a, topic, queue_id);
        if (tail == NULL || tail->word >= a->words.len / WORD)
            return BATCH_NO_QUEUE;
        int64_t next = words[tail->word], position = next * UNIT - tail->first;
        int64_t last = position + (b->counts[i] - 1) * UNIT;
        if (position < 0 || last > tail->last)
            return BATCH_NO_QUEUE;
        unsigned char *to = bytes_of_map(tail->map, &view, last + UNIT);
        if (to == NULL)
            return BATCH_NO_QUEUE;
        b->tails[i] = tail;
        b->following[i] = next;
        b->unit_to[i] = to + position;
    }
    return BATCH_DONE;
}

static int look_at_index(Appending *a, Batch *b)
{
    Py_buffer view;
    const Index *index = &a->index;
    if (index->none_wanted || !b->keys)
        return BATCH_DONE;
    if (index->map == NULL || ((volatile int64_t *)a->words.buf)[INDEX_FILE] != index->name)
        return BATCH_NO_INDEX;
    unsigned char *file = bytes_of_map(index->map, &view, index->end);
    if (file == NULL)
        return BATCH_NO_INDEX;
    read_header(file, &b->header);
    int64_t at = HEADER + index->slots * SLOT + (int64_t)b->header.index_count * ENTRY;
    if (at < index->first || at + b->keys * ENTRY > index->end
        || b->header.index_count + b->keys > index->most)
        return BATCH_NO_INDEX;
    if (!can_put(&b->header, b->hashes, b->keys))
        return BATCH_UNUSUAL;
    b->index_to = file;
    return BATCH_DONE;
}

/* Finds all offsets and maps; nothing is stored. -1 with an error set. */
static int look(Appending *a, Batch *b, PyObject *queues, int64_t now)
{
    volatile int64_t *words = a->words.buf;
    Py_buffer view;
    if (!a->has_words || !b->count || words[FAILED] || words[STAGE])
        return BATCH_UNUSUAL;
    b->start = words[LOG_END];
    int64_t position = b->start - a->first, newest = words[LAST_STORE_TIMESTAMP];
    b->timestamp = now > newest ? now : newest;
    if (words[KEYS_FROM] != b->start || PyList_Size(a->rows))
        return BATCH_UNUSUAL;
    const int is_large = b->is_large = b->size > a->largest;
    const int may_be_run = !a->in_run && now != a->now; /* FastAppender.have_room handles it */
    if (position < 0 || may_be_run || !is_log_there(a, now)
        || position > (is_large ? a->reserved : a->limit) - b->size)
        return BATCH_NO_ROOM;
    unsigned char *log = bytes_of_map(a->log_map, &view, position + b->size);
    if (log == NULL)
        return BATCH_NO_ROOM;
    const int is_for_map =
        !is_large || (a->pages != NULL && are_made(made_by(a->pages), position, position + b->size));
    b->log_to = is_for_map ? log + position : NULL;
    if (allocate_arrays(b) < 0) {
        PyErr_NoMemory();
        return -1;
    }
    if (!rows_agree(b))
        return BATCH_UNUSUAL;
    int found = look_at_queues(a, b, queues);
    if (found == BATCH_DONE)
        found = look_at_index(a, b);
    if (found == BATCH_DONE && b->index_to != NULL && begin_changes(&b->changes, b->keys) < 0) {
        PyErr_NoMemory();
        return -1;
    }
    return found;
}

/* -- storing ------------------------------------------------------------------------------- */

/* Gives the buffer and the columns their last numbers; -1 with an error set. */
static int place(Appending *a, Batch *b, Columns *columns)
{
    for (Py_ssize_t i = 0; i < b->count; i++) {
        const Row *row = b->rows + i;
        int64_t in_queue = row->has_unit ? b->following[row->queue]++ : 0;
        int64_t in_log = b->start + row->start;
        place_record(b->buffer + row->start, in_queue, in_log, b->timestamp);
        columns->in_log[i] = in_log;
        columns->in_queue[i] = in_queue;
    }
    PyObject *time = PyLong_FromLongLong(b->timestamp);
    if (time == NULL)
        return -1;
    PyTuple_SetItem(columns->found, 0, owned(a->put_ok));
    PyTuple_SetItem(columns->found, 1, owned(columns->log));
    PyTuple_SetItem(columns->found, 2, owned(columns->queue));
    PyTuple_SetItem(columns->found, 3, time);
    PyTuple_SetItem(columns->found, 4, owned(a->no_reason));
    return 0;
}

static void store_units(Batch *b)
{
    unsigned char unit[UNIT];
    for (const Row *row = b->rows; row < b->rows + b->count; row++) {
        if (!row->has_unit)
            continue;
        put_unit(unit, row, b->start, b->timestamp);
        unsigned char *to = b->unit_to[row->queue];
        INSTANT;
        memcpy(to, unit, UNIT / 2);
        INSTANT;
        memcpy(to + UNIT / 2, unit + UNIT / 2, UNIT / 2);
        b->unit_to[row->queue] = to + UNIT;
    }
}

/* Puts the keys, as PendingKeys._put does. */
static void store_keys(Appending *a, Batch *b, int64_t end)
{
    unsigned char *const file = b->index_to, *const table = file + HEADER;
    const Index *index = &a->index;
    int64_t at = HEADER + index->slots * SLOT + (int64_t)b->header.index_count * ENTRY;
    const int64_t undo[] = {b->header.begin_timestamp, b->header.end_timestamp,
                            b->header.begin_offset,    b->header.end_offset,
                            b->header.slot_count,      int_at(file + NEXT_NUMBER)};
    unsigned char header[HEADER];
    store_word(a, KEYS_TO, end);
    store_word(a, UNDO_INDEX_FILE, index->name);
    for (int i = 0; i < 6; i++)
        store_word(a, UNDO_INDEX_HEADER + i, undo[i]);
    store_word(a, STAGE, STAGE_KEYS);
    chain_keys(table, (uint32_t)index->slots, &b->header, b->keys, b->hashes, b->places,
               &b->timestamp, 0, file + at, &b->changes);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < b->changes.count; i++)
        store_slot(table, b->changes.changes[i]);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    write_header(header, &b->header);
    INSTANT;
    memcpy(file, header, HEADER / 2);
    INSTANT;
    memcpy(file + HEADER / 2, header + HEADER / 2, HEADER / 2);
    store_word(a, KEYS_FROM, end);
    store_word(a, STAGE, STAGE_NONE);
}

/* ``is_large``: past the caches, which do not fetch the bytes that are overwritten, and keep bytes
 * that are needed again. All is stored when it returns. */
static void copy(unsigned char *to, const unsigned char *from, size_t size, int is_large)
{
#ifdef __SSE2__
    if (is_large) {
        const size_t head = -(uintptr_t)to % LINE < size ? -(uintptr_t)to % LINE : size;
        memcpy(to, from, head);
        for (to += head, from += head, size -= head; size >= LINE; size -= LINE) {
            for (int i = 0; i < LINE; i += 16)
                _mm_stream_si128((__m128i *)(void *)(to + i),
                                 _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
            to += LINE;
            from += LINE;
        }
        _mm_sfence();
    }
#else
    (void)is_large;
#endif
    memcpy(to, from, size);
}

/* -1 with an error set. */
static int store(Appending *a, Batch *b)
{
    const int64_t end = b->start + b->size;
    const size_t half = (size_t)b->size / 2;
    if (b->index_to != NULL) /* they are fetched while the records are copied */
        fetch_slots(b->index_to + HEADER, (uint32_t)a->index.slots, b->hashes, b->keys);
    store_word(a, FROM, b->start);
    store_word(a, TO, end);
    store_word(a, STAGE, STAGE_RECORDS);
    if (b->log_to == NULL) {
        if (write_to_log(a, b->buffer, b->size, b->start) < 0)
            return -1;
    } else {
        INSTANT;
        copy(b->log_to, b->buffer, half, b->is_large);
        INSTANT;
        copy(b->log_to + half, b->buffer + half, (size_t)b->size - half, b->is_large);
    }
    store_word(a, STAGE, STAGE_DISPATCH);
    store_units(b);
    for (Py_ssize_t i = 0; i < b->queue_count; i++)
        store_word(a, b->tails[i]->word, b->following[i]);
    store_word(a, LAST_STORE_TIMESTAMP, b->timestamp);
    store_word(a, LOG_END, end);
    store_word(a, STAGE, STAGE_NONE);
    if (b->index_to != NULL)
        store_keys(a, b, end);
    else
        store_word(a, KEYS_FROM, end);
    return 0;
}

/* -- both ---------------------------------------------------------------------------------- */

/* Takes the encoded batch: buffer, table, queues, hashes; -1 with an error set. */
static int take(Batch *b, PyObject *const *args, Py_buffer *hashes)
{
    char *table;
    Py_ssize_t length;
    if (!PyByteArray_CheckExact(args[0]) || !PyList_CheckExact(args[2])) {
        PyErr_SetString(PyExc_TypeError, "no buffer, or no queues");
        return -1;
    }
    if (PyBytes_AsStringAndSize(args[1], &table, &length) < 0
        || PyObject_GetBuffer(args[3], hashes, PyBUF_SIMPLE) < 0)
        return -1;
    b->buffer = (unsigned char *)PyByteArray_AsString(args[0]);
    b->size = PyByteArray_Size(args[0]);
    b->rows = (const Row *)table;
    b->count = length / (Py_ssize_t)sizeof(Row);
    b->queue_count = PyList_Size(args[2]);
    b->hashes = hashes->buf;
    b->keys = hashes->len / 8;
    if (length % (Py_ssize_t)sizeof(Row) == 0 && hashes->len % 8 == 0)
        return 0;
    PyBuffer_Release(hashes);
    PyErr_SetString(PyExc_ValueError, "no table, or no hashes");
    return -1;
}

/* Checks and stores; gives BATCH_DONE, or the reason for nothing, -1 with an error set. */
static int append_all(Appending *a, Batch *b, Columns *columns, PyObject *queues, int64_t now)
{
    int found = look(a, b, queues, now);
    if (found == BATCH_DONE && (place(a, b, columns) < 0 || store(a, b) < 0))
        found = -1;
    end_changes(&b->changes);
    PyMem_Free(b->memory);
    return found;
}

const char append_batch_doc[] =
    "append_batch(buffer, table, queues, hashes, now_ms)\n\n"
    "What Appender.append does of a PreparedTable where all is known and has room; else a number"
    " of the reason: 1 an unusual batch, 2 no room in the log, 3 an unknown queue, 4 the index.";
PyObject *append_batch(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Appending *a = (Appending *)self;
    Batch b = {0};
    Columns columns = {0};
    Py_buffer hashes;
    int64_t now;
    if (!are_arguments(count, 5) || take(&b, args, &hashes) < 0)
        return NULL;
    int found = number_of(args[4], &now) < 0 ? BATCH_UNUSUAL : allocate_columns(a, &columns, b.count);
    if (found == 0)
        found = append_all(a, &b, &columns, args[2], now);
    PyObject *given = NULL;
    if (found == BATCH_DONE)
        given = owned(columns.found);
    else if (found > 0) {
        PyErr_Clear();
        given = PyLong_FromLong(found);
    }
    drop_columns(&columns);
    PyBuffer_Release(&hashes);
    return given;
}

/* Wakes for each topic of the queues; -1 with an error set. */
static int tell_waiting(Appending *a, PyObject *queues)
{
    PyObject *told = NULL;
    for (Py_ssize_t i = 0; i < PyList_Size(queues); i++) {
        PyObject *topic = PyTuple_GetItem(PyList_GetItem(queues, i), 0);
        if (topic != told && wake_for(a, topic) < 0)
            return -1;
        told = topic;
    }
    return 0;
}

const char put_batch_doc[] =
    "put_batch(buffer, table, queues, hashes)\n\n"
    "What MessageStore.put does of a PreparedTable while this process keeps the write lock and"
    " nothing has to be registered. Else nothing is done, and it gives the time, or None if it"
    " did not read the clock.";
PyObject *put_batch(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Appending *a = (Appending *)self;
    Batch b = {0};
    Columns columns = {0};
    Py_buffer hashes;
    int64_t now = -1;
    if (!are_arguments(count, 4))
        return NULL;
    if (!lock_is_ours(a))
        Py_RETURN_NONE;
    if (time_of(a, &now) < 0 || take(&b, args, &hashes) < 0)
        return NULL;
    int found = allocate_columns(a, &columns, b.count);
    if (found == 0) /* other code may have run since */
        found = lock_is_ours(a) ? append_all(a, &b, &columns, args[2], now) : BATCH_UNUSUAL;
    if (found < 0 && PyErr_ExceptionMatches(PyExc_OSError))
        found = BATCH_UNUSUAL; /* the caller undoes it, tries again and reports the error */
    PyObject *given = NULL;
    if (found > 0) {
        PyErr_Clear();
        given = now < 0 ? owned(Py_None) : PyLong_FromLongLong(now);
    } else if (found == BATCH_DONE && give_up_if_wanted(a) == 0
               && (!is_process_waiting(a) || tell_waiting(a, args[2]) == 0)) {
        given = owned(columns.found);
    }
    drop_columns(&columns);
    PyBuffer_Release(&hashes);
    return given;
}
