/* Conditions on JSON bodies, for the rows of a table. The reference is JsonFilter of
 * rmqctl/parse/json_path.py, which also decides what is left open here; a test compares both.
 */
#include "json_numbers.h"
#include "json_scan.h"

enum { MOST_NODES = 2000, MOST_LITERALS = 20000, MOST_STEPS = 10000, MOST_DEPTH = 500 };
#define EXACT ((int64_t)1 << 53) /* integers up to here are doubles */

typedef struct {
    const unsigned char *at;
    Py_ssize_t length;
    int is_quoted, kind; /* NO_NUMBER, AN_INT, A_FLOAT */
    int64_t whole;
    double fraction;
} Literal;

/* Nodes lie one after the other, each before those inside it. */
typedef struct {
    int kind, path, wanted; /* ``wanted``: the order of ORDERED, the outcome of AMONG */
    Py_ssize_t size;        /* of nodes, with those inside */
    const Literal *literals;
    Py_ssize_t count;
} Node;

typedef struct {
    Path paths[MOST_PATHS];
    Value values[MOST_PATHS];
    Step steps[MOST_STEPS];
    Node nodes[MOST_NODES];
    Literal literals[MOST_LITERALS];
    Py_ssize_t path_count, step_count, node_count, literal_count;
    uint64_t noting;                          /* paths of which missing names are noted */
    uint64_t found, fits, differs;            /* what was seen of the paths */
    int is_read, is_json, is_matched;
} Tests;

static int compare_numbers(const Value *value, const Literal *literal, int *order)
{
    double left = value->fraction, right = literal->fraction;
    if (value->kind == WHOLE && literal->kind == AN_INT) {
        *order = (value->whole > literal->whole) - (value->whole < literal->whole);
        return 1;
    }
    if (value->kind == WHOLE) {
        if (value->whole > EXACT || value->whole < -EXACT)
            return 0;
        left = (double)value->whole;
    } else if (value->kind != FRACTION)
        return 0;
    if (literal->kind == AN_INT) {
        if (literal->whole > EXACT || literal->whole < -EXACT)
            return 0;
        right = (double)literal->whole;
    }
    *order = (left > right) - (left < right);
    return 1;
}

static int is_number(const Value *value)
{
    return value->kind == WHOLE || value->kind == FRACTION || value->kind == NUMBER;
}

static int is_text(const Literal *literal, const char *text)
{
    return literal->length == (Py_ssize_t)strlen(text)
           && !memcmp(literal->at, text, (size_t)literal->length);
}

/* See _equal of json_path.py. */
static int is_equal(const Value *value, const Literal *literal)
{
    int order;
    switch (value->kind) {
    case TEXT:
        return value->length == literal->length
               && !memcmp(value->at, literal->at, (size_t)literal->length);
    case WHOLE: case FRACTION: case NUMBER:
        if (literal->kind == NO_NUMBER)
            return value->kind == NUMBER ? OPEN : NO;
        return compare_numbers(value, literal, &order) ? order == 0 : OPEN;
    case NIL: return !literal->is_quoted && is_text(literal, "null");
    case TRUTH: return !literal->is_quoted && is_text(literal, "true");
    case FALSITY: return !literal->is_quoted && is_text(literal, "false");
    case NESTED:
        return literal->is_quoted || !literal->length
                       || (*literal->at != '[' && *literal->at != '{') ? NO : OPEN;
    default: return OPEN;
    }
}

static int is_among(const Node *node, const Value *value)
{
    for (Py_ssize_t i = 0; i < node->count; i++) {
        const int found = is_equal(value, &node->literals[i]);
        if (found != NO)
            return found == OPEN ? OPEN : node->wanted;
    }
    return !node->wanted;
}

/* See JsonCondition._test. */
static int is_ordered(Tests *tests, const Node *node, const Value *value)
{
    const Literal *literal = node->literals;
    const uint64_t bit = (uint64_t)1 << node->path;
    int order;
    if (is_number(value) && literal->kind != NO_NUMBER) {
        if (!compare_numbers(value, literal, &order))
            return OPEN;
    } else if (literal->is_quoted && value->kind == ESCAPED)
        return OPEN;
    else if (literal->is_quoted && value->kind == TEXT) {
        const int is_shorter = value->length < literal->length;
        order = memcmp(value->at, literal->at, (size_t)(is_shorter ? value->length : literal->length));
        if (!order)
            order = (value->length > literal->length) - is_shorter;
    } else {
        if (value->kind != NIL)
            tests->differs |= bit;
        return NO;
    }
    tests->fits |= bit;
    switch (node->wanted) {
    case LESS: return order < 0;
    case AT_MOST: return order <= 0;
    case MORE: return order > 0;
    default: return order >= 0;
    }
}

/* Whether a condition holds; as the reference, nothing after what decides is looked at. */
static int holds(Tests *tests, Py_ssize_t at)
{
    const Node *node = &tests->nodes[at];
    int found = NO;
    switch (node->kind) {
    case ALL: case ANY: {
        const int goes_on = node->kind == ALL ? YES : NO;
        for (Py_ssize_t inner = at + 1; inner < at + node->size; inner += tests->nodes[inner].size) {
            found = holds(tests, inner);
            if (found != goes_on)
                return found;
        }
        return goes_on;
    }
    case NEGATED:
        found = holds(tests, at + 1);
        return found == OPEN ? OPEN : !found;
    case OTHER:
        return OPEN;
    }
    const Value *value = &tests->values[node->path];
    if (value->kind == ABSENT || value->kind == UNNAMED)
        return value->kind == UNNAMED && (tests->noting >> node->path & 1) ? OPEN : NO;
    tests->found |= (uint64_t)1 << node->path;
    switch (node->kind) {
    case PRESENT: return value->kind != NIL;
    case AMONG: return is_among(node, value);
    default: return is_ordered(tests, node, value);
    }
}

static int tested(Tests *tests, const unsigned char *body, Py_ssize_t length)
{
    if (!scan_json(body, length, tests->paths, tests->path_count, tests->values))
        return OPEN;
    const int found = holds(tests, 0);
    if (found != OPEN) {
        tests->is_read = tests->is_json = 1;
        tests->is_matched |= found;
    }
    return found;
}

static int refuse(const char *reason)
{
    PyErr_SetString(PyExc_ValueError, reason);
    return -1;
}

/* A path: names as bytes, indexes as numbers. */
static int open_path(Tests *tests, PyObject *given)
{
    if (!PyTuple_Check(given) || tests->path_count == MOST_PATHS)
        return refuse("too many paths, or one is no tuple");
    Path *path = &tests->paths[tests->path_count++];
    *path = (Path){&tests->steps[tests->step_count], PyTuple_Size(given)};
    if (path->count > MOST_STEPS - tests->step_count)
        return refuse("too many steps");
    for (Py_ssize_t i = 0; i < path->count; i++) {
        PyObject *one = PyTuple_GetItem(given, i);
        Step *step = &tests->steps[tests->step_count++];
        char *name;
        if (PyBytes_Check(one)) {
            if (PyBytes_AsStringAndSize(one, &name, &step->length) < 0)
                return -1;
            step->name = (const unsigned char *)name;
        } else {
            step->index = PyLong_AsSsize_t(one);
            if (step->index == -1 && PyErr_Occurred())
                return -1;
        }
    }
    return 0;
}

static int open_literals(Tests *tests, Node *node, PyObject *given)
{
    node->literals = &tests->literals[tests->literal_count];
    node->count = PyTuple_Size(given);
    if (node->count > MOST_LITERALS - tests->literal_count)
        return refuse("too many values");
    for (Py_ssize_t i = 0; i < node->count; i++) {
        Literal *literal = &tests->literals[tests->literal_count++];
        long long whole;
        PyObject *bytes;
        char *text;
        if (!PyArg_ParseTuple(PyTuple_GetItem(given, i), "O!piLd", &PyBytes_Type, &bytes,
                              &literal->is_quoted, &literal->kind, &whole, &literal->fraction)
            || PyBytes_AsStringAndSize(bytes, &text, &literal->length) < 0)
            return -1;
        literal->at = (const unsigned char *)text;
        literal->whole = whole;
    }
    return 0;
}

static int open_node(Tests *tests, PyObject *given)
{
    PyObject *literals;
    if (tests->node_count == MOST_NODES)
        return refuse("too many conditions");
    Node *node = &tests->nodes[tests->node_count++];
    if (!PyArg_ParseTuple(given, "iiinO!", &node->kind, &node->path, &node->wanted, &node->size,
                          &PyTuple_Type, &literals)
        || open_literals(tests, node, literals) < 0)
        return -1;
    const int has_path = node->kind == PRESENT || node->kind == AMONG || node->kind == ORDERED;
    if (node->kind < 0 || node->kind >= NODES || (node->kind == ORDERED && node->count != 1)
        || (has_path && (node->path < 0 || node->path >= tests->path_count)))
        return refuse("a condition is wrong");
    return 0;
}

/* Whether the nodes inside each one end with it; gives the end of a node, or -1. */
static Py_ssize_t end_of(const Tests *tests, Py_ssize_t at, int depth)
{
    if (at >= tests->node_count || depth > MOST_DEPTH)
        return -1;
    const Node *node = &tests->nodes[at];
    const Py_ssize_t end = at + node->size;
    if (node->size < 1 || node->size > tests->node_count - at || (node->kind == NEGATED && node->size < 2))
        return -1;
    for (Py_ssize_t inner = at + 1; inner < end;) {
        inner = end_of(tests, inner, depth + 1);
        if (inner < 0 || inner > end)
            return -1;
    }
    return end;
}

static int open_tests(Tests *tests, PyObject *paths, PyObject *nodes)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(paths); i++)
        if (open_path(tests, PyTuple_GetItem(paths, i)) < 0)
            return -1;
    for (Py_ssize_t i = 0; i < PyTuple_Size(nodes); i++)
        if (open_node(tests, PyTuple_GetItem(nodes, i)) < 0)
            return -1;
    return end_of(tests, 0, 0) == tests->node_count ? 0 : refuse("conditions are not well nested");
}

static int test_rows(Tests *tests, const Py_buffer *ends, const Py_buffer *text, Py_buffer *rows)
{
    if (ends->len / 4 != rows->len + 1)
        return refuse("bodies have wrong ends");
    unsigned char *row = rows->buf;
    for (Py_ssize_t i = 0; i < rows->len; i++) {
        int32_t both[2];
        memcpy(both, (const char *)ends->buf + 4 * i, sizeof both);
        if (both[0] < 0 || both[1] < both[0] || both[1] > text->len)
            return refuse("bodies have wrong ends");
        if (row[i])
            row[i] = (unsigned char)tested(tests, (const unsigned char *)text->buf + both[0],
                                           both[1] - both[0]);
    }
    return 0;
}

PyDoc_STRVAR(json_tests_doc, "json_tests(paths, nodes, noting, ends, text, rows)\n\n"
                             "See rmqctl.parse.json_plan.");
static PyObject *json_tests(PyObject *module, PyObject *args)
{
    PyObject *paths, *nodes, *made = NULL;
    Py_buffer ends = {0}, text = {0}, rows = {0};
    unsigned long long noting;
    (void)module;
    Tests *tests = PyMem_Calloc(1, sizeof *tests);
    if (tests == NULL)
        return PyErr_NoMemory();
    if (PyArg_ParseTuple(args, "O!O!Ky*y*w*", &PyTuple_Type, &paths, &PyTuple_Type, &nodes, &noting,
                         &ends, &text, &rows)) {
        tests->noting = noting;
        if (open_tests(tests, paths, nodes) == 0 && test_rows(tests, &ends, &text, &rows) == 0)
            made = Py_BuildValue("iiiKKK", tests->is_read, tests->is_json, tests->is_matched,
                                 (unsigned long long)tests->found, (unsigned long long)tests->fits,
                                 (unsigned long long)tests->differs);
        PyBuffer_Release(&ends);
        PyBuffer_Release(&text);
        PyBuffer_Release(&rows);
    }
    PyMem_Free(tests);
    return made;
}

PyMethodDef json_functions[] = {
    {"json_tests", json_tests, METH_VARARGS, json_tests_doc},
    {NULL, NULL, 0, NULL},
};
