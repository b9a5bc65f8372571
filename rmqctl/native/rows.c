/* Columns of messages as the text of rows. The reference is encoded_rows of
 * rmqctl/output/encoded_rows.py; a test compares both.
 *
 * The buffers are those of a table that is complete. Their ends are checked, as a wrong one would
 * read another memory.
 */
#include "row_numbers.h"
#include "row_texts.h"
#include "utf8.h"

enum { MOST_COLUMNS = 64, PARTS = 5 };

typedef struct {
    Text before;      /* what is written before the value */
    int kind, offset; /* seconds east of UTC, of times */
    Py_buffer parts[PARTS];
    int used; /* of parts */
} Column;

typedef struct {
    Column columns[MOST_COLUMNS];
    Py_ssize_t count;
    int style;
    Text end;
    int is_unsure; /* whether another form decides how a text of the row is written in YAML */
    Sink row, cell;
} Rows;

/* A text of YAML after a colon or a dash. */
static int put_yaml(Rows *rows, Sink *sink, Text text)
{
    const int style = yaml_style(text);
    rows->is_unsure |= style == UNSURE;
    if (style != QUOTED)
        return put(sink, text.at, text.length);
    unsigned char *to = room_in(sink, 2 * text.length + 2);
    if (to == NULL)
        return -1;
    *to++ = '\'';
    for (Py_ssize_t i = 0; i < text.length; i++) {
        if (text.at[i] == '\'')
            *to++ = '\'';
        *to++ = text.at[i];
    }
    *to++ = '\'';
    sink->used = to - sink->at;
    return 0;
}

/* A text as a value of the style. */
static int put_text(Rows *rows, Text text)
{
    switch (rows->style) {
    case YAML: return put(&rows->row, " ", 1) < 0 ? -1 : put_yaml(rows, &rows->row, text);
    case JSON: return put_json(&rows->row, text.at, text.length);
    case CSV: return put_csv(&rows->row, text.at, text.length);
    case LINES: return put_line(&rows->row, text.at, text.length);
    default: return put(&rows->row, text.at, text.length);
    }
}

static int put_null(Rows *rows)
{
    if (rows->style == JSON || rows->style == YAML)
        return put(&rows->row, " null" + (rows->style == JSON), 4 + (rows->style == YAML));
    return rows->style == LINES ? put(&rows->row, "-", 1) : 0;
}

/* The item between two ends; an error is set if they are wrong. */
static int item_of(const Py_buffer *ends, Py_ssize_t size, Py_ssize_t item, Py_ssize_t *from,
                   Py_ssize_t *to)
{
    int32_t both[2];
    if (item < 0 || (item + 2) * 4 > ends->len)
        both[0] = -1;
    else
        memcpy(both, (const char *)ends->buf + item * 4, sizeof both);
    if (both[0] < 0 || both[1] < both[0] || both[1] > size) {
        PyErr_SetString(PyExc_ValueError, "a column has wrong ends");
        return -1;
    }
    *from = both[0];
    *to = both[1];
    return 0;
}

static int text_at(const Py_buffer *parts, Py_ssize_t item, Text *found)
{
    Py_ssize_t from = 0, to = 0;
    if (item_of(&parts[0], parts[1].len, item, &from, &to) < 0)
        return -1;
    *found = (Text){(const unsigned char *)parts[1].buf + from, to - from};
    return 0;
}

/* A list of YAML, or with a margin the members of an object: a line each. */
static int put_yaml_items(Rows *rows, const Column *column, Py_ssize_t from, Py_ssize_t to)
{
    enum { LONGEST_NAME = 100 };
    const int is_list = column->kind == LIST;
    Text name = {NULL, 0}, text;
    for (Py_ssize_t item = from; item < to; item++) {
        if (put(&rows->row, is_list ? "\n  - " : "\n    ", 5) < 0
            || text_at(&column->parts[1], item, is_list ? &text : &name) < 0)
            return -1;
        rows->is_unsure |= !is_list && (!name.length || name.length > LONGEST_NAME);
        if (!is_list
            && (text_at(&column->parts[3], item, &text) < 0 || put_yaml(rows, &rows->row, name) < 0
                || put(&rows->row, ": ", 2) < 0))
            return -1;
        if (put_yaml(rows, &rows->row, text) < 0)
            return -1;
    }
    return from < to ? 0 : put(&rows->row, is_list ? " []" : " {}", 3);
}

/* Texts of a list: an array in JSON, else joined by a blank. */
static int put_list(Rows *rows, const Column *column, Py_ssize_t row)
{
    Py_ssize_t from = 0, to = 0;
    Text text;
    const int is_json = rows->style == JSON;
    Sink *sink = is_json ? &rows->row : &rows->cell;
    if (item_of(&column->parts[0], column->parts[1].len / 4 - 1, row, &from, &to) < 0
        || (is_json && put(sink, "[", 1) < 0))
        return -1;
    if (rows->style == YAML)
        return put_yaml_items(rows, column, from, to);
    rows->cell.used = 0;
    for (Py_ssize_t item = from; item < to; item++)
        if (text_at(&column->parts[1], item, &text) < 0
            || (item > from && put(sink, is_json ? "," : " ", 1) < 0)
            || (is_json ? put_json(sink, text.at, text.length)
                        : put(sink, text.at, text.length)) < 0)
            return -1;
    return is_json ? put(sink, "]", 1) : put_text(rows, (Text){sink->at, sink->used});
}

/* Names and values as an object of JSON, which is one text in other styles. */
static int put_pairs(Rows *rows, const Column *column, Py_ssize_t row)
{
    Py_ssize_t from = 0, to = 0;
    Text name, value;
    Sink *sink = rows->style == JSON ? &rows->row : &rows->cell;
    rows->cell.used = 0;
    if (item_of(&column->parts[0], column->parts[1].len / 4 - 1, row, &from, &to) < 0)
        return -1;
    if (rows->style == YAML)
        return put_yaml_items(rows, column, from, to);
    for (Py_ssize_t item = from; item < to; item++)
        if (text_at(&column->parts[1], item, &name) < 0 || text_at(&column->parts[3], item, &value) < 0
            || put(sink, item > from ? "," : "{", 1) < 0
            || put_json(sink, name.at, name.length) < 0 || put(sink, ":", 1) < 0
            || put_json(sink, value.at, value.length) < 0)
            return -1;
    if (put(sink, from == to ? "{}" : "}", from == to ? 2 : 1) < 0)
        return -1;
    return rows->style == JSON ? 0 : put_text(rows, (Text){sink->at, sink->used});
}

static int put_base64(Rows *rows, Text text)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *at = text.at, *end = at + text.length;
    rows->cell.used = 0;
    unsigned char *to = room_in(&rows->cell, (text.length + 2) / 3 * 4);
    if (to == NULL)
        return -1;
    for (; at < end; at += 3) {
        const Py_ssize_t left = end - at;
        const uint32_t bits = (uint32_t)at[0] << 16 | (left > 1 ? (uint32_t)at[1] << 8 : 0)
                              | (left > 2 ? at[2] : 0u);
        *to++ = (unsigned char)letters[bits >> 18];
        *to++ = (unsigned char)letters[bits >> 12 & 63];
        *to++ = left > 1 ? (unsigned char)letters[bits >> 6 & 63] : '=';
        *to++ = left > 2 ? (unsigned char)letters[bits & 63] : '=';
    }
    return put_text(rows, (Text){rows->cell.at, to - rows->cell.at});
}

static int put_of_text(Rows *rows, const Column *column, Py_ssize_t row)
{
    Text text;
    if (text_at(column->parts, row, &text) < 0)
        return -1;
    switch (column->kind) {
    case NAME:
        return put_text(rows, text);
    case TAG:
        return text.length ? put_text(rows, text) : put_null(rows);
    case LENGTH:
        return put_number(&rows->row, text.length);
    case BODY:
        return rows->style == RAW || are_utf8(text.at, text.length) ? put_text(rows, text)
                                                                     : put_null(rows);
    default: /* BODY_BASE64 */
        return are_utf8(text.at, text.length) ? put_null(rows) : put_base64(rows, text);
    }
}

static int put_value(Rows *rows, const Column *column, Py_ssize_t row)
{
    const int is_number = column->kind == INT || column->kind == LONG || column->kind == LENGTH;
    if (is_number && rows->style == YAML && put(&rows->row, " ", 1) < 0)
        return -1;
    int32_t number;
    int64_t large;
    const Py_buffer *numbers = &column->parts[0];
    switch (column->kind) {
    case INT:
        if ((row + 1) * 4 > numbers->len)
            break;
        memcpy(&number, (const char *)numbers->buf + row * 4, 4);
        return put_number(&rows->row, number);
    case LONG: case TIME:
        if ((row + 1) * 8 > numbers->len)
            break;
        memcpy(&large, (const char *)numbers->buf + row * 8, 8);
        return column->kind == LONG ? put_number(&rows->row, large)
                                    : put_time(&rows->row, large, column->offset);
    case LIST:
        return put_list(rows, column, row);
    case PAIRS:
        return put_pairs(rows, column, row);
    default:
        return put_of_text(rows, column, row);
    }
    PyErr_SetString(PyExc_ValueError, "a column has too few rows");
    return -1;
}

/* Adds a row; no bytes where the style of a text is not sure. */
static int add_row(Rows *rows, Py_ssize_t row)
{
    const Py_ssize_t begin = rows->row.used;
    rows->is_unsure = 0;
    for (Py_ssize_t i = 0; i < rows->count; i++) {
        const Column *column = &rows->columns[i];
        if (put(&rows->row, column->before.at, column->before.length) < 0
            || put_value(rows, column, row) < 0)
            return -1;
    }
    /* A line of one empty cell would be an empty line, which parsers skip. */
    if (rows->style == CSV && rows->count == 1 && rows->row.used == begin
        && put(&rows->row, "\"\"", 2) < 0)
        return -1;
    if (put(&rows->row, rows->end.at, rows->end.length) < 0)
        return -1;
    if (rows->is_unsure)
        rows->row.used = begin;
    return 0;
}

/* A column: (what is before it, kind, offset, buffers). */
static int open_column(Column *column, PyObject *given)
{
    PyObject *before, *parts;
    column->used = 0;
    if (!PyArg_ParseTuple(given, "O!iiO!", &PyBytes_Type, &before, &column->kind, &column->offset,
                          &PyTuple_Type, &parts)
        || text_of_bytes(before, &column->before) < 0)
        return -1;
    static const int wanted[] = {[INT] = 1, [LONG] = 1, [TIME] = 1, [NAME] = 2, [TAG] = 2,
                                 [LENGTH] = 2, [BODY] = 2, [BODY_BASE64] = 2, [LIST] = 3,
                                 [PAIRS] = 5};
    const Py_ssize_t count = PyTuple_Size(parts);
    if (column->kind < 0 || column->kind >= KINDS || count != wanted[column->kind]) {
        PyErr_SetString(PyExc_ValueError, "a column has another number of buffers");
        return -1;
    }
    for (; column->used < count; column->used++)
        if (PyObject_GetBuffer(PyTuple_GetItem(parts, column->used), &column->parts[column->used],
                               PyBUF_SIMPLE) < 0)
            return -1;
    return 0;
}

/* Adds the rows; those that are not chosen, and those of YAML that are not sure, get no bytes. */
static int add_rows(Rows *rows, Py_ssize_t count, const Py_buffer *chosen, PyObject *ends,
                    PyObject *unsure)
{
    unsigned char *to = (unsigned char *)PyByteArray_AsString(ends);
    memset(to, 0, 8);
    for (Py_ssize_t row = 0; row < count; row++) {
        if (chosen->buf == NULL || ((const unsigned char *)chosen->buf)[row]) {
            if (add_row(rows, row) < 0)
                return -1;
            if (rows->is_unsure) {
                PyObject *number = PyLong_FromSsize_t(row);
                const int failed = number == NULL || PyList_Append(unsure, number) < 0;
                Py_XDECREF(number);
                if (failed)
                    return -1;
            }
        }
        const int64_t end = rows->row.used;
        memcpy(to + 8 * (row + 1), &end, 8);
    }
    return 0;
}

static PyObject *made_rows(Rows *rows, Py_ssize_t count, const Py_buffer *chosen)
{
    PyObject *ends = PyByteArray_FromStringAndSize(NULL, 8 * (count + 1));
    PyObject *unsure = PyList_New(0), *made = NULL;
    rows->row.owner = PyByteArray_FromStringAndSize(NULL, 0);
    if (ends != NULL && unsure != NULL && rows->row.owner != NULL
        && add_rows(rows, count, chosen, ends, unsure) == 0
        && PyByteArray_Resize(rows->row.owner, rows->row.used) == 0)
        made = PyTuple_Pack(3, rows->row.owner, ends, unsure);
    Py_XDECREF(rows->row.owner);
    Py_XDECREF(ends);
    Py_XDECREF(unsure);
    return made;
}

static int open_chosen(Py_buffer *chosen, PyObject *given, Py_ssize_t count)
{
    if (given == Py_None)
        return 0;
    if (PyObject_GetBuffer(given, chosen, PyBUF_SIMPLE) < 0)
        return -1;
    if (chosen->len >= count)
        return 0;
    PyErr_SetString(PyExc_ValueError, "not all rows are said to be chosen or not");
    return -1;
}

PyDoc_STRVAR(encoded_rows_doc, "encoded_rows(columns, rows, style, end, chosen)\n\n"
                               "See rmqctl.output.encoded_rows.");
static PyObject *encoded_rows(PyObject *module, PyObject *args)
{
    PyObject *columns, *end, *given, *made = NULL;
    Py_buffer chosen = {0};
    Py_ssize_t count;
    Rows *rows = PyMem_Calloc(1, sizeof *rows);
    (void)module;
    if (rows == NULL)
        return PyErr_NoMemory();
    if (PyArg_ParseTuple(args, "O!niO!O", &PyTuple_Type, &columns, &count, &rows->style,
                         &PyBytes_Type, &end, &given)
        && text_of_bytes(end, &rows->end) == 0) {
        const Py_ssize_t wanted = PyTuple_Size(columns);
        int failed = count < 0 || wanted > MOST_COLUMNS;
        if (failed)
            PyErr_SetString(PyExc_ValueError, "too many columns, or fewer rows than none");
        else
            failed = open_chosen(&chosen, given, count) < 0;
        while (!failed && rows->count < wanted)
            failed = open_column(&rows->columns[rows->count],
                                 PyTuple_GetItem(columns, rows->count)) < 0
                     || (rows->count++, 0);
        if (!failed)
            made = made_rows(rows, count, &chosen);
    }
    PyBuffer_Release(&chosen);
    for (Py_ssize_t i = 0; i < MOST_COLUMNS; i++)
        for (int part = 0; part < rows->columns[i].used; part++)
            PyBuffer_Release(&rows->columns[i].parts[part]);
    PyMem_Free(rows->cell.at);
    PyMem_Free(rows);
    return made;
}

PyMethodDef row_functions[] = {
    {"encoded_rows", encoded_rows, METH_VARARGS, encoded_rows_doc},
    {NULL, NULL, 0, NULL},
};
