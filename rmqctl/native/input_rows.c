/* Rows of JSON or CSV as the parts of messages to send. The reference is the parser of one row,
 * rmqctl/produce/parsers.py: a row that is unusual in any way is left to it, so only rows are taken
 * here that it certainly accepts. A test compares both.
 */
#include "functions.h"
#include "input_numbers.h"
#include "utf8.h"

enum { MOST_COLUMNS = 64, MOST_PROPERTIES = 64, RESERVED = 256, LONGEST_NUMBER = 18,
       LONGEST_OF_PROPERTIES = 32000 };

typedef struct {
    Text name;
    int kind;
} Column;

typedef struct {
    Column columns[MOST_COLUMNS];
    Py_ssize_t count, expected; /* the column that comes after the last one */
    Text reserved[RESERVED];    /* names of properties, by their hash */
    int is_csv, has_places;
    /* the rest of a row, and memory for texts that differ from what is stored in it */
    const unsigned char *at, *end;
    unsigned char *arena, *to;
    Py_ssize_t room, header; /* bytes that names of columns may add to a row's */
    /* what the row has */
    Text found[KINDS], names[MOST_PROPERTIES], values[MOST_PROPERTIES];
    int pairs;
    uint64_t seen_columns;
    uint32_t seen_kinds;
    int64_t flag, queue_id;
} Reader;

enum { BODIES, KEYS_OF, TAGS_OF, PROPERTIES_OF, FLAGS, TOPICS, QUEUE_IDS, LISTS };

static int are_equal(Text a, Text b)
{
    return a.length == b.length && !memcmp(a.at, b.at, (size_t)a.length);
}

/* Whether a text has one of the two characters that separate properties. */
static int has_separator(Text text)
{
    const size_t length = (size_t)text.length;
    return length && (memchr(text.at, 1, length) != NULL || memchr(text.at, 2, length) != NULL);
}

/* Whether a key is several, as brokers divide keys there. */
static int has_blank(Text key)
{
    return key.length && memchr(key.at, ' ', (size_t)key.length) != NULL;
}

static uint32_t hash_of(Text text)
{
    uint32_t hash = (uint32_t)text.length;
    for (Py_ssize_t i = 0; i < text.length; i++)
        hash = hash * 31 + text.at[i];
    return hash;
}

static Text *place_of(Reader *r, Text name)
{
    uint32_t place = hash_of(name) % RESERVED;
    while (r->reserved[place].at != NULL && !are_equal(r->reserved[place], name))
        place = (place + 1) % RESERVED;
    return &r->reserved[place];
}

/* -- JSON: each function gives 0 for what it does not take --------------------------------------- */

static void skip_blanks(Reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static int take(Reader *r, unsigned char wanted)
{
    skip_blanks(r);
    if (r->at == r->end || *r->at != wanted)
        return 0;
    r->at++;
    skip_blanks(r);
    return 1;
}

static int take_word(Reader *r, const char *word)
{
    const Py_ssize_t length = (Py_ssize_t)strlen(word);
    if (r->end - r->at < length || memcmp(r->at, word, (size_t)length))
        return 0;
    r->at += length;
    return 1;
}

/* Whether one of eight bytes ends the plain part of a string. */
static inline int has_mark(const unsigned char *at)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    uint64_t eight;
    memcpy(&eight, at, 8);
#define HAS(byte) (((eight ^ ones * (byte)) - ones) & ~(eight ^ ones * (byte)))
    return ((((eight - ones * 0x20) & ~eight) | HAS('"') | HAS('\\')) & high) != 0;
#undef HAS
}

static const unsigned char *end_of_plain(const unsigned char *at, const unsigned char *end)
{
    while (end - at >= 8 && !has_mark(at))
        at += 8;
    while (at < end && *at >= 0x20 && *at != '"' && *at != '\\')
        at++;
    return at;
}

static int hex_of(const unsigned char *at)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned char c = at[i], low = c | 0x20;
        if (c >= '0' && c <= '9')
            value = value * 16 + c - '0';
        else if (low >= 'a' && low <= 'f')
            value = value * 16 + low - 'a' + 10;
        else
            return -1;
    }
    return value;
}

static int take_code(Reader *r)
{
    if (r->end - r->at < 4)
        return 0;
    int code = hex_of(r->at);
    r->at += 4;
    if (code < 0 || (code >= 0xDC00 && code < 0xE000))
        return 0;
    if (code >= 0xD800 && code < 0xDC00) {
        if (r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u')
            return 0;
        const int second = hex_of(r->at + 2);
        if (second < 0xDC00 || second >= 0xE000)
            return 0;
        code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
        r->at += 6;
        *r->to++ = (unsigned char)(0xF0 | code >> 18);
        *r->to++ = (unsigned char)(0x80 | (code >> 12 & 63));
    } else if (code >= 0x800)
        *r->to++ = (unsigned char)(0xE0 | code >> 12);
    if (code >= 0x800)
        *r->to++ = (unsigned char)(0x80 | (code >> 6 & 63));
    else if (code >= 0x80)
        *r->to++ = (unsigned char)(0xC0 | code >> 6);
    *r->to++ = (unsigned char)(code < 0x80 ? code : 0x80 | (code & 63));
    return 1;
}

static int take_escape(Reader *r)
{
    static const char marks[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    if (r->at == r->end)
        return 0;
    const unsigned char c = *r->at++;
    if (c == 'u')
        return take_code(r);
    const char *mark = c ? strchr(marks, c) : NULL;
    if (mark == NULL)
        return 0;
    *r->to++ = (unsigned char)meant[mark - marks];
    return 1;
}

/* A string: as it lies in the row, or without its escapes in the arena, which has room for all. */
static int take_string(Reader *r, Text *text)
{
    if (r->at == r->end || *r->at != '"')
        return 0;
    const unsigned char *begin = ++r->at;
    r->at = end_of_plain(begin, r->end);
    if (r->at < r->end && *r->at == '"') {
        *text = (Text){begin, r->at++ - begin};
        return 1;
    }
    unsigned char *made = r->to;
    for (;; begin = r->at, r->at = end_of_plain(begin, r->end)) {
        memcpy(r->to, begin, (size_t)(r->at - begin));
        r->to += r->at - begin;
        if (r->at == r->end || *r->at < 0x20)
            return 0;
        if (*r->at++ == '"')
            break;
        if (!take_escape(r))
            return 0;
    }
    *text = (Text){made, r->to - made};
    return 1;
}

static int take_number(Reader *r, int64_t *number)
{
    const int is_negative = r->at < r->end && *r->at == '-';
    const unsigned char *begin = r->at += is_negative;
    int64_t value = 0;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9' && r->at - begin < LONGEST_NUMBER)
        value = value * 10 + (*r->at++ - '0');
    if (r->at == begin || (*begin == '0' && r->at - begin > 1))
        return 0;
    /* what a digit, a point or an exponent follows is another number, or none */
    if (r->at < r->end && ((*r->at >= '0' && *r->at <= '9') || strchr(".eE", *r->at) != NULL))
        return 0;
    *number = is_negative ? -value : value;
    return 1;
}

static int take_scalar(Reader *r)
{
    Text text;
    int64_t number;
    if (r->at == r->end)
        return 0;
    switch (*r->at) {
    case '"': return take_string(r, &text);
    case 'n': return take_word(r, "null");
    case 't': return take_word(r, "true");
    case 'f': return take_word(r, "false");
    default: return take_number(r, &number);
    }
}

static int is_null(Reader *r) { return r->at < r->end && *r->at == 'n' && take_word(r, "null"); }

static int take_text(Reader *r, Text *text) { return is_null(r) || take_string(r, text); }

/* Texts of a list, joined by blanks. */
static int take_keys(Reader *r, Text *keys)
{
    if (r->at == r->end || *r->at != '[')
        return take_text(r, keys);
    take(r, '[');
    *keys = (Text){r->to, 0};
    for (int first = 1; !take(r, ']'); first = 0) {
        Text key;
        if ((!first && !take(r, ',')) || !take_string(r, &key) || has_blank(key))
            return 0;
        if (first) {
            *keys = key;
            continue;
        }
        /* the texts before may lie below; the arena has room for both */
        unsigned char *made = r->to;
        memcpy(made, keys->at, (size_t)keys->length);
        made[keys->length] = ' ';
        memcpy(made + keys->length + 1, key.at, (size_t)key.length);
        *keys = (Text){made, keys->length + 1 + key.length};
        r->to += keys->length;
        if (r->to - r->arena > r->room / 2)
            return 0;
    }
    return 1;
}

static int add_pair(Reader *r, Text name, Text value)
{
    if (r->pairs == MOST_PROPERTIES || !name.length || !value.length)
        return 0;
    for (int i = 0; i < r->pairs; i++)
        if (are_equal(r->names[i], name))
            return 0;
    r->names[r->pairs] = name;
    r->values[r->pairs++] = value;
    return 1;
}

static int take_properties(Reader *r)
{
    if (is_null(r))
        return 1;
    if (!take(r, '{'))
        return 0;
    for (int first = 1; r->at == r->end || *r->at != '}'; first = 0) {
        Text name, value;
        if ((!first && !take(r, ',')) || !take_string(r, &name) || !take(r, ':')
            || !take_string(r, &value) || !add_pair(r, name, value))
            return 0;
        skip_blanks(r);
    }
    r->at++;
    return 1;
}

static int is_int32(int64_t number) { return number >= INT32_MIN && number <= INT32_MAX; }

static int take_value(Reader *r, int kind)
{
    switch (kind) {
    case BODY: case BODY_BASE64: case TAGS: return take_text(r, &r->found[kind]);
    case TOPIC: return r->has_places ? take_text(r, &r->found[kind]) : take_scalar(r);
    case KEYS: return take_keys(r, &r->found[kind]);
    case PROPERTIES: return take_properties(r);
    case FLAG: return is_null(r) || (take_number(r, &r->flag) && is_int32(r->flag));
    case QUEUE_ID:
        if (!r->has_places)
            return take_scalar(r);
        return is_null(r)
               || (take_number(r, &r->queue_id) && r->queue_id >= 0 && is_int32(r->queue_id));
    default: return take_scalar(r);
    }
}

static const Column *column_of(Reader *r, Text name)
{
    for (Py_ssize_t i = 0; i < r->count; i++) {
        const Py_ssize_t at = (r->expected + i) % r->count;
        if (are_equal(r->columns[at].name, name)) {
            r->expected = (at + 1) % r->count;
            return &r->columns[at];
        }
    }
    return NULL;
}

static int take_object(Reader *r)
{
    r->expected = 0;
    if (!take(r, '{'))
        return 0;
    for (int first = 1; r->at == r->end || *r->at != '}'; first = 0) {
        Text name;
        if ((!first && !take(r, ',')) || !take_string(r, &name) || !take(r, ':'))
            return 0;
        const Column *column = column_of(r, name);
        if (column == NULL)
            return 0;
        const uint64_t bit = (uint64_t)1 << (column - r->columns);
        const uint32_t kind = column->kind == IGNORED ? 0 : 1u << column->kind;
        if (r->seen_columns & bit || r->seen_kinds & kind)
            return 0;
        r->seen_columns |= bit;
        r->seen_kinds |= kind;
        if (!take_value(r, column->kind))
            return 0;
        skip_blanks(r);
    }
    r->at++;
    skip_blanks(r);
    return r->at == r->end;
}

/* -- CSV ----------------------------------------------------------------------------------------- */

static int take_cell(Reader *r, Text *cell)
{
    const unsigned char *begin = r->at;
    if (begin == r->end || *begin != '"') {
        for (; r->at < r->end && *r->at != ','; r->at++)
            if (*r->at == '"' || *r->at == '\r' || *r->at == '\n')
                return 0;
        *cell = (Text){begin, r->at - begin};
        return 1;
    }
    unsigned char *made = r->to;
    int is_made = 0;
    for (begin++;; begin = r->at) {
        r->at = memchr(begin, '"', (size_t)(r->end - begin));
        if (r->at == NULL)
            return 0;
        const Py_ssize_t length = r->at - begin;
        r->at++;
        const int is_end = r->at == r->end || *r->at != '"';
        if (is_end && !is_made) {
            *cell = (Text){begin, length};
            break;
        }
        is_made = 1;
        memcpy(r->to, begin, (size_t)length);
        r->to += length;
        if (is_end) {
            *cell = (Text){made, r->to - made};
            break;
        }
        *r->to++ = '"';
        r->at++;
    }
    return r->at == r->end || *r->at == ',';
}

static int number_of_cell(Text cell, int64_t *number, int has_sign)
{
    const int is_negative = has_sign && cell.length && *cell.at == '-';
    int64_t value = 0;
    if (cell.length - is_negative < 1 || cell.length > LONGEST_NUMBER)
        return 0;
    for (Py_ssize_t i = is_negative; i < cell.length; i++) {
        if (cell.at[i] < '0' || cell.at[i] > '9')
            return 0;
        value = value * 10 + (cell.at[i] - '0');
    }
    *number = is_negative ? -value : value;
    return is_int32(*number);
}

static int take_properties_of_cell(Reader *r, Text cell)
{
    const unsigned char *at = r->at, *end = r->end;
    if (!cell.length)
        return 1;
    r->at = cell.at;
    r->end = cell.at + cell.length;
    skip_blanks(r);
    int good = r->at < r->end && *r->at == '{' && take_properties(r);
    skip_blanks(r);
    good = good && r->at == r->end;
    r->at = at;
    r->end = end;
    return good;
}

static int put_cell(Reader *r, const Column *column, Text cell)
{
    switch (column->kind) {
    case IGNORED: return 1;
    case PROPERTIES: return take_properties_of_cell(r, cell);
    case FLAG: return !cell.length || number_of_cell(cell, &r->flag, 1);
    case QUEUE_ID:
        return !r->has_places || !cell.length || number_of_cell(cell, &r->queue_id, 0);
    case PROPERTY:
        return !cell.length
               || (place_of(r, column->name)->at == NULL && add_pair(r, column->name, cell));
    case KEY:
        r->found[KEYS] = cell;
        return !has_blank(cell);
    default:
        r->found[column->kind] = cell;
        return 1;
    }
}

static int is_blank(const unsigned char *at, const unsigned char *end)
{
    while (at < end && (*at == ' ' || (*at >= '\t' && *at <= '\r')))
        at++;
    return at == end;
}

static int take_cells(Reader *r)
{
    if (is_blank(r->at, r->end))
        return 0;
    if (r->end[-1] == '\r')
        r->end--;
    if (memchr(r->at, 0, (size_t)(r->end - r->at)) != NULL)
        return 0;
    for (Py_ssize_t i = 0; i < r->count; i++) {
        Text cell;
        if (i) {
            if (r->at == r->end)
                return 0;
            r->at++; /* the comma */
        }
        if (!take_cell(r, &cell) || !put_cell(r, &r->columns[i], cell))
            return 0;
    }
    if (r->found[BODY_BASE64].length && !r->found[BODY].length)
        r->found[BODY].at = NULL;
    return r->at == r->end;
}

/* -- the parts of a message ---------------------------------------------------------------------- */

static int sextet_of(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26
         : c >= '0' && c <= '9' ? c - '0' + 52 : c == '+' ? 62 : c == '/' ? 63 : -1;
}

static int decode_base64(Reader *r, Text text, Text *body)
{
    if (text.length % 4)
        return 0;
    unsigned char *made = r->to;
    const int padding = text.length ? (text.at[text.length - 1] == '=')
                                          + (text.at[text.length - 2] == '=') : 0;
    for (Py_ssize_t i = 0; i < text.length; i += 4) {
        const int given = i + 4 < text.length ? 4 : 4 - padding;
        uint32_t bits = 0;
        for (int j = 0; j < 4; j++) {
            const int sextet = j < given ? sextet_of(text.at[i + j]) : 0;
            if (sextet < 0)
                return 0;
            bits = bits << 6 | (uint32_t)sextet;
        }
        if (given < 4 && bits & (given == 3 ? 0xFFu : 0xFFFFu))
            return 0; /* not what an encoder writes */
        *r->to++ = (unsigned char)(bits >> 16);
        if (given > 2)
            *r->to++ = (unsigned char)(bits >> 8);
        if (given > 3)
            *r->to++ = (unsigned char)bits;
    }
    *body = (Text){made, r->to - made};
    return 1;
}

/* The user's properties as they are stored, in the arena. */
static int encode_properties(Reader *r, Text *encoded)
{
    static const Text keys = {(const unsigned char *)"KEYS", 4};
    static const Text tags = {(const unsigned char *)"TAGS", 4};
    static const Text delay = {(const unsigned char *)"DELAY", 5};
    unsigned char *made = r->to;
    for (int i = 0; i < r->pairs; i++) {
        const Text name = r->names[i], value = r->values[i];
        if (place_of(r, name)->at != NULL) {
            /* the parser knows whether they say the same, and of delays whether a broker set them */
            if ((are_equal(name, keys) && !are_equal(value, r->found[KEYS]))
                || (are_equal(name, tags) && !are_equal(value, r->found[TAGS]))
                || are_equal(name, delay))
                return 0;
            continue;
        }
        if (has_separator(name) || has_separator(value))
            return 0;
        if (r->to > made)
            *r->to++ = 2;
        memcpy(r->to, name.at, (size_t)name.length);
        r->to += name.length;
        *r->to++ = 1;
        memcpy(r->to, value.at, (size_t)value.length);
        r->to += value.length;
    }
    *encoded = (Text){made, r->to - made};
    return encoded->length <= LONGEST_OF_PROPERTIES;
}

static int is_like_bytes(PyObject *last, Text text)
{
    return PyBytes_Size(last) == text.length
           && !memcmp(PyBytes_AsString(last), text.at, (size_t)text.length);
}

static int is_like_text(PyObject *last, Text text)
{
    Py_ssize_t length;
    const char *at = PyUnicode_AsUTF8AndSize(last, &length);
    return at != NULL && length == text.length && !memcmp(at, text.at, (size_t)length);
}

static PyObject *str_of(Text text)
{
    return PyUnicode_DecodeUTF8((const char *)text.at, text.length, "strict");
}

/* The text of a column, the object of the row before if they are equal; None for none. */
static PyObject *text_like(PyObject *last, Text text)
{
    if (text.at == NULL || !text.length)
        return Py_NewRef(Py_None);
    if (last != NULL && last != Py_None && is_like_text(last, text))
        return Py_NewRef(last);
    return str_of(text);
}

static PyObject *bytes_like(PyObject *last, Text text)
{
    if (last != NULL && last != Py_None && is_like_bytes(last, text))
        return Py_NewRef(last);
    return PyBytes_FromStringAndSize((const char *)text.at, text.length);
}

static PyObject *last_of(PyObject *list, Py_ssize_t row)
{
    return row ? PyList_GetItem(list, row - 1) : NULL;
}

/* Whether it is taken; -1 with an error set. */
static int put_row(Reader *r, PyObject *const *lists, Py_ssize_t row)
{
    Text body = r->found[BODY], properties;
    const Text keys = r->found[KEYS], tags = r->found[TAGS];
    if (body.at == NULL
        && (r->found[BODY_BASE64].at == NULL || !decode_base64(r, r->found[BODY_BASE64], &body)))
        return 0;
    if (has_separator(keys) || has_separator(tags)
        || keys.length + tags.length > LONGEST_OF_PROPERTIES || !encode_properties(r, &properties))
        return 0;
    PyObject *made[LISTS] = {NULL};
    made[BODIES] = PyBytes_FromStringAndSize((const char *)body.at, body.length);
    made[KEYS_OF] = str_of(keys.at == NULL ? (Text){(const unsigned char *)"", 0} : keys);
    made[TAGS_OF] = text_like(last_of(lists[TAGS_OF], row), tags);
    made[PROPERTIES_OF] = bytes_like(last_of(lists[PROPERTIES_OF], row), properties);
    made[FLAGS] = PyLong_FromLongLong(r->flag);
    if (r->has_places) {
        made[TOPICS] = text_like(last_of(lists[TOPICS], row), r->found[TOPIC]);
        made[QUEUE_IDS] = r->queue_id < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(r->queue_id);
    }
    for (int i = 0; i < (r->has_places ? LISTS : TOPICS); i++)
        if (made[i] == NULL || PyList_SetItem(lists[i], row, made[i]) < 0) {
            while (++i < LISTS)
                Py_XDECREF(made[i]);
            return -1;
        }
    return 1;
}

/* Whether the row is taken; -1 with an error set. */
static int read_row(Reader *r, PyObject *record, PyObject *const *lists, Py_ssize_t row)
{
    char *at;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(record, &at, &length) < 0)
        return -1;
    const Py_ssize_t room = 8 * length + r->header + 64;
    if (room > r->room) {
        unsigned char *arena = PyMem_Realloc(r->arena, (size_t)room);
        if (arena == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        r->arena = arena;
        r->room = room;
    }
    r->at = (const unsigned char *)at;
    r->end = r->at + length;
    r->to = r->arena;
    memset(r->found, 0, sizeof r->found);
    r->pairs = 0;
    r->seen_columns = r->seen_kinds = 0;
    r->flag = 0;
    r->queue_id = -1;
    if (!are_utf8(r->at, length) || !(r->is_csv ? take_cells(r) : take_object(r)))
        return 0;
    return put_row(r, lists, row);
}

static int open_reader(Reader *r, PyObject *columns, PyObject *reserved)
{
    r->count = PyTuple_Size(columns);
    const Py_ssize_t names = PyTuple_Size(reserved);
    if (r->count < 1 || r->count > MOST_COLUMNS || names > RESERVED / 2) {
        PyErr_SetString(PyExc_ValueError, "too many columns or names, or no column");
        return -1;
    }
    for (Py_ssize_t i = 0; i < r->count; i++) {
        PyObject *name;
        if (!PyArg_ParseTuple(PyTuple_GetItem(columns, i), "O!i", &PyBytes_Type, &name,
                              &r->columns[i].kind)
            || text_of_bytes(name, &r->columns[i].name) < 0)
            return -1;
        if (r->columns[i].kind < 0 || r->columns[i].kind >= KINDS) {
            PyErr_SetString(PyExc_ValueError, "a column is of no kind");
            return -1;
        }
        if (r->is_csv) /* a property has its name from here, and two separators */
            r->header += r->columns[i].name.length + 2;
    }
    for (Py_ssize_t i = 0; i < names; i++) {
        Text name;
        if (text_of_bytes(PyTuple_GetItem(reserved, i), &name) < 0)
            return -1;
        *place_of(r, name) = name;
    }
    return 0;
}

/* A list of Nones. */
static PyObject *list_of(Py_ssize_t count)
{
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list != NULL && i < count; i++)
        PyList_SetItem(list, i, Py_NewRef(Py_None));
    return list;
}

PyDoc_STRVAR(given_rows_doc, "given_rows(records, columns, reserved, is_csv, has_places)\n\n"
                             "See rmqctl.produce.given_rows.");
static PyObject *given_rows(PyObject *module, PyObject *args)
{
    PyObject *records, *columns, *reserved, *lists[LISTS] = {NULL}, *found = NULL;
    Reader *r = PyMem_Calloc(1, sizeof *r);
    (void)module;
    if (r == NULL)
        return PyErr_NoMemory();
    if (PyArg_ParseTuple(args, "O!O!O!pp", &PyList_Type, &records, &PyTuple_Type, &columns,
                         &PyTuple_Type, &reserved, &r->is_csv, &r->has_places)
        && open_reader(r, columns, reserved) == 0) {
        const Py_ssize_t count = PyList_Size(records);
        int good = 1;
        for (int i = 0; good && i < LISTS; i++)
            good = (lists[i] = list_of(i < TOPICS || r->has_places ? count : 0)) != NULL;
        for (Py_ssize_t row = 0; good && row < count && row < PyList_Size(records); row++)
            good = read_row(r, PyList_GetItem(records, row), lists, row) >= 0;
        if (good)
            found = PyTuple_Pack(LISTS, lists[BODIES], lists[KEYS_OF], lists[TAGS_OF],
                                 lists[PROPERTIES_OF], lists[FLAGS], lists[TOPICS],
                                 lists[QUEUE_IDS]);
    }
    for (int i = 0; i < LISTS; i++)
        Py_XDECREF(lists[i]);
    PyMem_Free(r->arena);
    PyMem_Free(r);
    return found;
}

PyMethodDef input_row_functions[] = {
    {"given_rows", given_rows, METH_VARARGS, given_rows_doc},
    {NULL, NULL, 0, NULL},
};
