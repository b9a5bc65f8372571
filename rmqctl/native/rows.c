/* Columns of messages as the text of rows. The reference is encoded_rows of
 * rmqctl/output/encoded_rows.py; a test compares both.
 *
 * The buffers are those of a table that is complete. Their ends are checked, as a wrong one would
 * read another memory.
 */
#include "input_rows.h"
#include "row_numbers.h"
#include "utf8.h"

enum { MOST_COLUMNS = 64, PARTS = 5, LONGEST_NUMBER = 20, LONGEST_TIME = 35, JSON_MOST = 6,
       FIRST_ROOM = 1024 };

typedef struct {
    const unsigned char *at;
    Py_ssize_t length;
} Text;

typedef struct {
    Text before;      /* what is written before the value */
    int kind, offset; /* seconds east of UTC, of times */
    Py_buffer parts[PARTS];
    int used; /* of parts */
} Column;

typedef struct {
    unsigned char *at;
    Py_ssize_t used, room;
} Sink;

typedef struct {
    Column columns[MOST_COLUMNS];
    Py_ssize_t count;
    int style;
    Text end;
    int is_unsure; /* whether another form decides how a text of the row is written in YAML */
    Sink row, cell;
} Rows;

static const char digits[] = "0001020304050607080910111213141516171819202122232425262728293031323334"
                             "3536373839404142434445464748495051525354555657585960616263646566676869"
                             "707172737475767778798081828384858687888990919293949596979899";

/* Makes room for so many bytes more; NULL with an error set, else where they go. */
static unsigned char *room_in(Sink *sink, Py_ssize_t more)
{
    if (sink->at == NULL || sink->room - sink->used < more) {
        const Py_ssize_t room = 2 * (sink->used + more) + FIRST_ROOM;
        unsigned char *at = PyMem_Realloc(sink->at, (size_t)room);
        if (at == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        sink->at = at;
        sink->room = room;
    }
    return sink->at + sink->used;
}

static int put(Sink *sink, const void *at, Py_ssize_t length)
{
    unsigned char *to = room_in(sink, length);
    if (to == NULL)
        return -1;
    if (length)
        memcpy(to, at, (size_t)length);
    sink->used += length;
    return 0;
}

static int put_number(Sink *sink, int64_t value)
{
    unsigned char text[LONGEST_NUMBER], *at = text + sizeof text;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    for (; left >= 100; left /= 100) {
        at -= 2;
        memcpy(at, digits + 2 * (left % 100), 2);
    }
    if (left >= 10) {
        at -= 2;
        memcpy(at, digits + 2 * left, 2);
    } else
        *--at = (unsigned char)('0' + left);
    if (value < 0)
        *--at = '-';
    return put(sink, at, text + sizeof text - at);
}

static unsigned char *two(unsigned char *to, int64_t value)
{
    memcpy(to, digits + 2 * value, 2);
    return to + 2;
}

/* A time (ms) as 2026-01-31T10:00:00.123+01:00; years of four digits, days by the civil calendar. */
static int put_time(Sink *sink, int64_t time, int offset)
{
    enum { DAY = 86400, ERA = 146097, TO_ERA = 719468 };
    unsigned char *to = room_in(sink, LONGEST_TIME);
    if (to == NULL)
        return -1;
    const int64_t local = time + (int64_t)offset * 1000;
    const int64_t seconds = local / 1000 - (local % 1000 < 0), ms = local - seconds * 1000;
    int64_t days = seconds / DAY - (seconds % DAY < 0);
    const int64_t of_day = seconds - days * DAY;
    days += TO_ERA;
    const int64_t era = days / ERA, in_era = days - era * ERA;
    const int64_t years = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    const int64_t in_year = in_era - (365 * years + years / 4 - years / 100);
    const int64_t shifted = (5 * in_year + 2) / 153, month = shifted < 10 ? shifted + 3 : shifted - 9;
    const int64_t year = years + era * 400 + (month <= 2), day = in_year - (153 * shifted + 2) / 5 + 1;
    to = two(to, year / 100);
    to = two(to, year % 100);
    *to++ = '-';
    to = two(to, month);
    *to++ = '-';
    to = two(to, day);
    *to++ = 'T';
    to = two(to, of_day / 3600);
    *to++ = ':';
    to = two(to, of_day / 60 % 60);
    *to++ = ':';
    to = two(to, of_day % 60);
    *to++ = '.';
    *to++ = (unsigned char)('0' + ms / 100);
    to = two(to, ms % 100);
    const int east = offset < 0 ? -offset : offset;
    *to++ = offset < 0 ? '-' : '+';
    to = two(to, east / 3600);
    *to++ = ':';
    to = two(to, east / 60 % 60);
    sink->used = to - sink->at;
    return 0;
}

static unsigned char *put_escape(unsigned char *to, unsigned code)
{
    static const char hex[] = "0123456789abcdef";
    *to++ = '\\';
    switch (code) {
    case '"': case '\\': *to++ = (unsigned char)code; return to;
    case '\n': *to++ = 'n'; return to;
    case '\r': *to++ = 'r'; return to;
    case '\t': *to++ = 't'; return to;
    case '\b': *to++ = 'b'; return to;
    case '\f': *to++ = 'f'; return to;
    }
    *to++ = 'u';
    for (int shift = 12; shift >= 0; shift -= 4)
        *to++ = (unsigned char)hex[code >> shift & 15];
    return to;
}

/* Whether eight bytes are ASCII, and none is escaped in JSON. */
static inline int are_plain(const unsigned char *at)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    uint64_t eight;
    memcpy(&eight, at, 8);
#define HAS(byte) (((eight ^ ones * (byte)) - ones) & ~(eight ^ ones * (byte)))
    return !((eight | (eight - ones * 0x20) | HAS('"') | HAS('\\') | HAS(0x7Fu)) & high);
#undef HAS
}

/* A text in quotes; besides those of JSON, control characters, bidirectional overrides and the line
 * ends of some readers are escaped, as safe_json does. */
static int put_json(Sink *sink, const unsigned char *at, Py_ssize_t length)
{
    unsigned char *to = room_in(sink, JSON_MOST * length + 2);
    const unsigned char *end = at + length;
    if (to == NULL)
        return -1;
    *to++ = '"';
    while (at < end) {
        if (end - at >= 8 && are_plain(at)) {
            memcpy(to, at, 8);
            to += 8;
            at += 8;
            continue;
        }
        const unsigned char c = *at;
        if (c < 0x20 || c == '"' || c == '\\' || c == 0x7F) {
            to = put_escape(to, c);
            at++;
        } else if (c == 0xC2 && end - at > 1 && at[1] < 0xA0) {
            to = put_escape(to, at[1]);
            at += 2;
        } else if (c == 0xE2 && end - at > 2
                   && ((at[1] == 0x80 && at[2] >= 0xA8 && at[2] <= 0xAE)
                       || (at[1] == 0x81 && at[2] >= 0xA6 && at[2] <= 0xA9))) {
            to = put_escape(to, 0x2000u + (at[1] & 0x3Fu) * 64 + (at[2] & 0x3Fu));
            at += 3;
        } else
            *to++ = *at++;
    }
    *to++ = '"';
    sink->used = to - sink->at;
    return 0;
}

/* A cell of RFC 4180: in quotes where it has to be. */
static int put_csv(Sink *sink, const unsigned char *at, Py_ssize_t length)
{
    const unsigned char *end = at + length;
    int quoted = 0;
    for (const unsigned char *c = at; c < end && !quoted; c++)
        quoted = *c == '"' || *c == ',' || *c == '\r' || *c == '\n';
    if (!quoted)
        return put(sink, at, length);
    unsigned char *to = room_in(sink, 2 * length + 2);
    if (to == NULL)
        return -1;
    *to++ = '"';
    for (; at < end; at++) {
        if (*at == '"')
            *to++ = '"';
        *to++ = *at;
    }
    *to++ = '"';
    sink->used = to - sink->at;
    return 0;
}

/* A value between tabs: tab, newline and backslash are escaped. */
static int put_line(Sink *sink, const unsigned char *at, Py_ssize_t length)
{
    unsigned char *to = room_in(sink, 2 * length);
    if (to == NULL)
        return -1;
    for (const unsigned char *end = at + length; at < end; at++) {
        const char escaped = *at == '\\' ? '\\' : *at == '\t' ? 't' : *at == '\n' ? 'n' : 0;
        if (escaped)
            *to++ = '\\';
        *to++ = escaped ? (unsigned char)escaped : *at;
    }
    sink->used = to - sink->at;
    return 0;
}

static int is_one_of(Text text, const char *words)
{
    for (const char *at = words; *at; at += strlen(at) + 1)
        if ((Py_ssize_t)strlen(at) == text.length && !memcmp(at, text.at, (size_t)text.length))
            return 1;
    return 0;
}

/* Whether a text that begins with a digit is certainly no number and no time of YAML: these have at
 * most one point, and other letters in hexadecimal numbers only. */
static int is_surely_text(Text text)
{
    int points = 0, letters = 0, others = 0;
    const int is_prefixed = text.length > 1 && text.at[0] == '0'
                            && (text.at[1] == 'x' || text.at[1] == 'b');
    for (Py_ssize_t i = 0; i < text.length; i++) {
        const unsigned char c = text.at[i], low = c | 0x20;
        points += c == '.';
        letters += (low >= 'a' && low <= 'f' && low != 'e');
        others += !((c >= '0' && c <= '9') || (low >= 'a' && low <= 'f') || low == 'x' || low == 't'
                    || low == 'z' || strchr("_.:+- ", c) != NULL);
    }
    return points > 1 || others || (letters && !is_prefixed);
}

enum { QUOTED, PLAIN, UNSURE };

/* How YamlRows writes an ASCII text of one line; see rmqctl/output/yaml_rows.py. */
static int yaml_style(Text text)
{
    static const char never[] = "#,[]{}&*!|>'\"%@` ", words[] =
        "yes\0Yes\0YES\0no\0No\0NO\0true\0True\0TRUE\0false\0False\0FALSE\0"
        "on\0On\0ON\0off\0Off\0OFF\0null\0Null\0NULL\0~\0=\0<<\0";
    for (Py_ssize_t i = 0; i < text.length; i++)
        if (text.at[i] < ' ' || text.at[i] > '~')
            return UNSURE;
    if (!text.length)
        return QUOTED;
    const unsigned char first = text.at[0], last = text.at[text.length - 1];
    if (strchr("-?:.+", first) != NULL)
        return UNSURE;
    if (strchr(never, first) != NULL || last == ' ' || last == ':' || is_one_of(text, words))
        return QUOTED;
    for (Py_ssize_t i = 0; i + 1 < text.length; i++)
        if ((text.at[i] == ':' && text.at[i + 1] == ' ')
            || (text.at[i] == ' ' && text.at[i + 1] == '#'))
            return QUOTED;
    return first > '9' || first < '0' || is_surely_text(text) ? PLAIN : UNSURE;
}

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

/* The row as bytes, or None where the style of a text is not sure. */
static PyObject *row_of(Rows *rows, Py_ssize_t row)
{
    rows->row.used = 0;
    rows->is_unsure = 0;
    for (Py_ssize_t i = 0; i < rows->count; i++) {
        const Column *column = &rows->columns[i];
        if (put(&rows->row, column->before.at, column->before.length) < 0
            || put_value(rows, column, row) < 0)
            return NULL;
    }
    /* A line of one empty cell would be an empty line, which parsers skip. */
    if (rows->style == CSV && rows->count == 1 && !rows->row.used && put(&rows->row, "\"\"", 2) < 0)
        return NULL;
    if (put(&rows->row, rows->end.at, rows->end.length) < 0)
        return NULL;
    if (rows->is_unsure)
        return Py_NewRef(Py_None);
    return PyBytes_FromStringAndSize((const char *)rows->row.at, rows->row.used);
}

static int text_of_bytes(PyObject *bytes, Text *text)
{
    char *at;
    if (PyBytes_AsStringAndSize(bytes, &at, &text->length) < 0)
        return -1;
    text->at = (const unsigned char *)at;
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

PyDoc_STRVAR(encoded_rows_doc, "encoded_rows(columns, rows, style, end)\n\n"
                               "See rmqctl.output.encoded_rows.");
static PyObject *encoded_rows(PyObject *module, PyObject *args)
{
    PyObject *columns, *end, *list = NULL;
    Py_ssize_t count;
    Rows *rows = PyMem_Calloc(1, sizeof *rows);
    (void)module;
    if (rows == NULL)
        return PyErr_NoMemory();
    if (PyArg_ParseTuple(args, "O!niO!", &PyTuple_Type, &columns, &count, &rows->style,
                         &PyBytes_Type, &end)
        && text_of_bytes(end, &rows->end) == 0) {
        const Py_ssize_t wanted = PyTuple_Size(columns);
        int failed = count < 0 || wanted > MOST_COLUMNS;
        if (failed)
            PyErr_SetString(PyExc_ValueError, "too many columns, or fewer rows than none");
        while (!failed && rows->count < wanted)
            failed = open_column(&rows->columns[rows->count],
                                 PyTuple_GetItem(columns, rows->count)) < 0
                     || (rows->count++, 0);
        if (!failed)
            list = PyList_New(count);
        for (Py_ssize_t row = 0; list != NULL && row < count; row++) {
            PyObject *text = row_of(rows, row);
            if (text == NULL || PyList_SetItem(list, row, text) < 0)
                Py_CLEAR(list);
        }
    }
    for (Py_ssize_t i = 0; i < MOST_COLUMNS; i++)
        for (int part = 0; part < rows->columns[i].used; part++)
            PyBuffer_Release(&rows->columns[i].parts[part]);
    PyMem_Free(rows->row.at);
    PyMem_Free(rows->cell.at);
    PyMem_Free(rows);
    return list;
}

static PyMethodDef functions[] = {
    {"encoded_rows", encoded_rows, METH_VARARGS, encoded_rows_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_compiled", "Compiled loops of the command line.", -1, functions,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__compiled(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddFunctions(module, input_row_functions) < 0)
        Py_CLEAR(module);
    return module;
}
