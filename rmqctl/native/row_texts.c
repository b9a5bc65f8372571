/* Texts and numbers as the encoders of rmqctl/output/encoders.py write them. */
#include "row_texts.h"

enum { LONGEST_NUMBER = 20, LONGEST_TIME = 35, JSON_MOST = 6, FIRST_ROOM = 1024 };

static const char digits[] = "0001020304050607080910111213141516171819202122232425262728293031323334"
                             "3536373839404142434445464748495051525354555657585960616263646566676869"
                             "707172737475767778798081828384858687888990919293949596979899";

unsigned char *grown(Sink *sink, Py_ssize_t more)
{
    const Py_ssize_t room = 2 * (sink->used + more) + FIRST_ROOM;
    if (sink->owner == NULL) {
        unsigned char *at = PyMem_Realloc(sink->at, (size_t)room);
        if (at == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        sink->at = at;
    } else if (PyByteArray_Resize(sink->owner, room) < 0)
        return NULL;
    else
        sink->at = (unsigned char *)PyByteArray_AsString(sink->owner);
    sink->room = room;
    return sink->at + sink->used;
}

int put_number(Sink *sink, int64_t value)
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

int put_time(Sink *sink, int64_t time, int offset)
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

int put_json(Sink *sink, const unsigned char *at, Py_ssize_t length)
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

int put_csv(Sink *sink, const unsigned char *at, Py_ssize_t length)
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

int put_line(Sink *sink, const unsigned char *at, Py_ssize_t length)
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

int yaml_style(Text text)
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
