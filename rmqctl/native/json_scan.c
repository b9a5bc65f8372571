/* A strict reader of JSON that keeps the values at some paths. What it accepts, Python's json accepts
 * with the same values; a test compares both. It leaves to Python: texts that are no JSON, NaN and
 * Infinity, other encodings than UTF-8, names with escapes beside a name that is looked for, very
 * long numbers, and deep nesting.
 */
#include "json_scan.h"
#include "utf8.h"
#include <float.h>

enum { DEEPEST = 100, LONGEST_NUMBER = 1000, DIGITS_OF_WHOLE = 18, DIGITS_OF_DOUBLE = 15,
       EXACT_TENS = 22 };

typedef struct {
    const unsigned char *at, *end;
    const Path *paths;
    Value *values;
} Scan;

static int scan_value(Scan *scan, uint64_t active, Py_ssize_t depth);

static inline void skip_blanks(Scan *scan)
{
    while (scan->at < scan->end
           && (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\t' || *scan->at == '\r'))
        scan->at++;
}

static inline int accept(Scan *scan, unsigned char sign)
{
    skip_blanks(scan);
    const int is_there = scan->at < scan->end && *scan->at == sign;
    scan->at += is_there;
    return is_there;
}

/* Whether none of eight bytes ends a text, begins an escape, or is a control character. */
static inline int are_letters(const unsigned char *at)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    uint64_t eight, quote, back;
    memcpy(&eight, at, 8);
    quote = eight ^ ones * '"';
    back = eight ^ ones * '\\';
    return !((((eight - ones * 0x20) & ~eight) | ((quote - ones) & ~quote) | ((back - ones) & ~back))
             & high);
}

static int is_hex(unsigned char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* After the first quote, up to after the last one. */
static int scan_text(Scan *scan, Value *value)
{
    const unsigned char *at = scan->at, *end = scan->end;
    value->kind = TEXT;
    value->at = at;
    for (;;) {
        while (end - at >= 8 && are_letters(at))
            at += 8;
        if (at >= end || *at < 0x20)
            return 0;
        if (*at == '"')
            break;
        if (*at++ != '\\')
            continue;
        value->kind = ESCAPED;
        if (at >= end)
            return 0;
        if (*at == 'u') {
            if (end - at < 5 || !is_hex(at[1]) || !is_hex(at[2]) || !is_hex(at[3]) || !is_hex(at[4]))
                return 0;
            at += 5;
        } else if (*at && strchr("\"\\/bfnrt", *at) != NULL)
            at++;
        else
            return 0;
    }
    value->length = at - value->at;
    scan->at = at + 1;
    return 1;
}

static double scaled(double value, int tens)
{
    static const double powers[EXACT_TENS + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    return tens < 0 ? value / powers[-tens] : value * powers[tens];
}

static inline int is_digit(const Scan *scan, const unsigned char *at)
{
    return at < scan->end && *at >= '0' && *at <= '9';
}

/* Digits and powers of ten of a double are exact up to a size, so one operation rounds as Python. */
static int scan_number(Scan *scan, Value *value)
{
    const unsigned char *begin = scan->at, *at = begin;
    const int is_negative = *at == '-';
    int64_t number = 0, exponent = 0;
    int digits = 0, tens = 0, is_fraction = 0;
    at += is_negative;
    if (!is_digit(scan, at))
        return 0;
    const unsigned char *first = at;
    for (; is_digit(scan, at); at++)
        if (digits < DIGITS_OF_WHOLE) {
            number = number * 10 + (*at - '0');
            digits += number != 0;
        } else
            digits++;
    if (*first == '0' && at - first > 1)
        return 0;
    if (at < scan->end && *at == '.') {
        is_fraction = 1;
        if (!is_digit(scan, ++at))
            return 0;
        for (; is_digit(scan, at); at++)
            if (digits < DIGITS_OF_WHOLE) {
                number = number * 10 + (*at - '0');
                digits += number != 0;
                tens--;
            } else
                digits++;
    }
    if (at < scan->end && (*at | 0x20) == 'e') {
        is_fraction = 1;
        at++;
        const int is_small = at < scan->end && *at == '-';
        at += at < scan->end && (*at == '-' || *at == '+');
        if (!is_digit(scan, at))
            return 0;
        for (; is_digit(scan, at); at++)
            exponent = exponent < LONGEST_NUMBER ? exponent * 10 + (*at - '0') : exponent;
        exponent = is_small ? -exponent : exponent;
    }
    if (at - begin > LONGEST_NUMBER) /* Python reads no integer of some thousand digits */
        return 0;
    exponent += tens;
    value->kind = NUMBER;
    if (!is_fraction && digits <= DIGITS_OF_WHOLE) {
        value->kind = WHOLE;
        value->whole = is_negative ? -number : number;
    } else if (FLT_EVAL_METHOD == 0 && is_fraction && digits <= DIGITS_OF_DOUBLE
               && exponent >= -EXACT_TENS && exponent <= EXACT_TENS) {
        value->kind = FRACTION;
        value->fraction = scaled(is_negative ? -(double)number : (double)number, (int)exponent);
    }
    scan->at = at;
    return 1;
}

static int scan_word(Scan *scan, const char *word, Py_ssize_t length, Value *value, Kind kind)
{
    if (scan->end - scan->at < length || memcmp(scan->at, word, (size_t)length))
        return 0;
    scan->at += length;
    value->kind = kind;
    return 1;
}

/* Says what the paths that go on from here have if nothing is found. */
static void begin_nested(Scan *scan, uint64_t active, Py_ssize_t depth, int is_object)
{
    for (Py_ssize_t path = 0; active; path++, active >>= 1)
        if (active & 1) {
            const int is_named = scan->paths[path].steps[depth].name != NULL;
            scan->values[path].kind = is_object && is_named ? UNNAMED : ABSENT;
        }
}

/* Those of the paths that go on with this name. */
static uint64_t going_on(const Scan *scan, uint64_t active, Py_ssize_t depth, const Value *name)
{
    uint64_t found = 0;
    for (Py_ssize_t path = 0; active >> path; path++) {
        const Step *step = &scan->paths[path].steps[depth];
        if ((active >> path & 1) && step->name != NULL && step->length == name->length
            && !memcmp(step->name, name->at, (size_t)name->length))
            found |= (uint64_t)1 << path;
    }
    return found;
}

static int scan_object(Scan *scan, uint64_t active, Py_ssize_t depth)
{
    Value name;
    begin_nested(scan, active, depth, 1);
    if (accept(scan, '}'))
        return 1;
    do {
        if (!accept(scan, '"') || !scan_text(scan, &name) || (active && name.kind == ESCAPED)
            || !accept(scan, ':')
            || !scan_value(scan, active ? going_on(scan, active, depth, &name) : 0, depth + 1))
            return 0;
    } while (accept(scan, ','));
    return accept(scan, '}');
}

static int scan_array(Scan *scan, uint64_t active, Py_ssize_t depth)
{
    begin_nested(scan, active, depth, 0);
    if (accept(scan, ']'))
        return 1;
    Py_ssize_t index = 0;
    do {
        uint64_t found = 0;
        for (Py_ssize_t path = 0; active >> path; path++) {
            const Step *step = &scan->paths[path].steps[depth];
            if ((active >> path & 1) && step->name == NULL && step->index == index)
                found |= (uint64_t)1 << path;
        }
        if (!scan_value(scan, found, depth + 1))
            return 0;
        index++;
    } while (accept(scan, ','));
    return accept(scan, ']');
}

/* ``active`` are the paths that have come so deep; some end here, the others go on. */
static int scan_value(Scan *scan, uint64_t active, Py_ssize_t depth)
{
    Value value = {NESTED, 0, 0, NULL, 0};
    uint64_t here = 0;
    for (Py_ssize_t path = 0; active >> path; path++)
        if ((active >> path & 1) && scan->paths[path].count == depth)
            here |= (uint64_t)1 << path;
    skip_blanks(scan);
    if (scan->at >= scan->end || depth > DEEPEST)
        return 0;
    int is_read;
    switch (*scan->at) {
    case '{':
    case '[': {
        const int is_object = *scan->at++ == '{';
        is_read = is_object ? scan_object(scan, active & ~here, depth)
                            : scan_array(scan, active & ~here, depth);
        active = here; /* the others are set */
        break;
    }
    case '"':
        scan->at++;
        is_read = scan_text(scan, &value);
        break;
    case 't': is_read = scan_word(scan, "true", 4, &value, TRUTH); break;
    case 'f': is_read = scan_word(scan, "false", 5, &value, FALSITY); break;
    case 'n': is_read = scan_word(scan, "null", 4, &value, NIL); break;
    default: is_read = scan_number(scan, &value); break;
    }
    for (Py_ssize_t path = 0; is_read && active >> path; path++)
        if (active >> path & 1) {
            if (here >> path & 1)
                scan->values[path] = value;
            else
                scan->values[path].kind = ABSENT;
        }
    return is_read;
}

int scan_json(const unsigned char *at, Py_ssize_t length, const Path *paths, Py_ssize_t count,
              Value *values)
{
    Scan scan = {at, at + length, paths, values};
    if (!are_utf8(at, length))
        return 0;
    if (!scan_value(&scan, ((uint64_t)1 << count) - 1, 0))
        return 0;
    skip_blanks(&scan);
    return scan.at == scan.end;
}
