/* The checksum of bodies: CRC-32 as zlib has it, over bytes that are in the processor's cache
 * anyway.
 *
 * Where the processor multiplies polynomials (x86 with PCLMULQDQ), 64 bytes are folded at a time,
 * or 256 where it does so by four (VPCLMULQDQ): Gopal et al., "Fast CRC Computation for Generic
 * Polynomials Using PCLMULQDQ Instruction", Intel 2009. The constants for a distance of n bits are
 * x^(n+32) and x^(n-32) modulo the polynomial, bits reversed. Elsewhere eight tables take eight
 * bytes at a time.
 */
#include "native.h"

enum { TABLES = 8, LANE = 16, FOLDED = 64, WIDE = 256 };
static uint32_t table[TABLES][256];

static uint32_t by_tables(uint32_t sum, const unsigned char *at, size_t length)
{
    for (; length >= TABLES; length -= TABLES, at += TABLES) {
        uint32_t low = sum ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16
                              | (uint32_t)at[3] << 24);
        sum = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255]
              ^ table[4][low >> 24] ^ table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]]
              ^ table[0][at[7]];
    }
    for (; length; length--)
        sum = sum >> 8 ^ table[0][(sum ^ *at++) & 255];
    return sum;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define FOLDING __attribute__((target("pclmul,sse4.1")))
#define WIDELY __attribute__((target("pclmul,sse4.1,avx512f,vpclmulqdq")))

static int can_fold, can_fold_wide;

FOLDING static __m128i loaded(const unsigned char *at)
{
    return _mm_loadu_si128((const __m128i *)at);
}

/* Move 128 bits on by the distance of the two constants. */
FOLDING static __m128i moved(__m128i bits, __m128i by)
{
    const __m128i low = _mm_clmulepi64_si128(bits, by, 0x00);
    return _mm_xor_si128(low, _mm_clmulepi64_si128(bits, by, 0x11));
}

FOLDING static inline __m128i joined(__m128i before, __m128i behind)
{
    const __m128i by_128 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    return _mm_xor_si128(moved(before, by_128), behind);
}

/* From the last 128 bits and a rest of whole lanes to 32: folding, then Barrett's reduction. */
FOLDING static inline uint32_t reduced(__m128i bits, const unsigned char *at, size_t length)
{
    const __m128i by_128 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    const __m128i by_64 = _mm_set_epi64x(0, 0x163cd6124);
    const __m128i barrett = _mm_set_epi64x(0x1f7011641, 0x1db710641);
    const __m128i low_32 = _mm_set_epi32(0, 0, 0, -1);
    for (; length; at += LANE, length -= LANE)
        bits = joined(bits, loaded(at));
    bits = _mm_xor_si128(_mm_srli_si128(bits, 8), _mm_clmulepi64_si128(bits, by_128, 0x10));
    bits = _mm_xor_si128(_mm_srli_si128(bits, 4),
                         _mm_clmulepi64_si128(_mm_and_si128(bits, low_32), by_64, 0x00));
    __m128i times = _mm_clmulepi64_si128(_mm_and_si128(bits, low_32), barrett, 0x10);
    times = _mm_clmulepi64_si128(_mm_and_si128(times, low_32), barrett, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(bits, times), 1);
}

/* ``length`` is a multiple of LANE and at least FOLDED. */
FOLDING static uint32_t by_folding(uint32_t sum, const unsigned char *at, size_t length)
{
    const __m128i by_512 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
    __m128i a = _mm_xor_si128(loaded(at), _mm_cvtsi32_si128((int)sum));
    __m128i b = loaded(at + LANE), c = loaded(at + 2 * LANE), d = loaded(at + 3 * LANE);
    for (at += FOLDED, length -= FOLDED; length >= FOLDED; at += FOLDED, length -= FOLDED) {
        a = _mm_xor_si128(moved(a, by_512), loaded(at));
        b = _mm_xor_si128(moved(b, by_512), loaded(at + LANE));
        c = _mm_xor_si128(moved(c, by_512), loaded(at + 2 * LANE));
        d = _mm_xor_si128(moved(d, by_512), loaded(at + 3 * LANE));
    }
    return reduced(joined(joined(joined(a, b), c), d), at, length);
}

WIDELY static inline __m512i wide_at(const unsigned char *at)
{
    return _mm512_loadu_si512(at);
}

/* The same, and a copy of them if there is somewhere to put it. */
WIDELY static inline __m512i wide_taken(const unsigned char *at, unsigned char *to)
{
    const __m512i bits = wide_at(at);
    if (to != NULL)
        _mm512_storeu_si512(to, bits);
    return bits;
}

WIDELY static inline __m512i wide_moved(__m512i bits, __m512i by, __m512i behind)
{
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(bits, by, 0x00),
                                     _mm512_clmulepi64_epi128(bits, by, 0x11), behind,
                                     0x96 /* xor of all three */);
}

/* The same for at least WIDE bytes, which are copied on the way unless ``to`` is NULL. */
WIDELY static inline uint32_t wide_folding(uint32_t sum, const unsigned char *at, size_t length,
                                           unsigned char *to)
{
    const unsigned char *const from = at;
#define TAKEN(place) wide_taken(place, to == NULL ? NULL : to + ((place) - from))
    const __m512i by_2048 = _mm512_broadcast_i32x4(_mm_set_epi64x(0x1322d1430, 0x11542778a));
    const __m512i by_512 = _mm512_broadcast_i32x4(_mm_set_epi64x(0x1c6e41596, 0x154442bd4));
    __m512i a = _mm512_xor_si512(TAKEN(at), _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)sum)));
    __m512i b = TAKEN(at + FOLDED), c = TAKEN(at + 2 * FOLDED), d = TAKEN(at + 3 * FOLDED);
    for (at += WIDE, length -= WIDE; length >= WIDE; at += WIDE, length -= WIDE) {
        a = wide_moved(a, by_2048, TAKEN(at));
        b = wide_moved(b, by_2048, TAKEN(at + FOLDED));
        c = wide_moved(c, by_2048, TAKEN(at + 2 * FOLDED));
        d = wide_moved(d, by_2048, TAKEN(at + 3 * FOLDED));
    }
    a = wide_moved(a, by_512, b);
    a = wide_moved(a, by_512, c);
    a = wide_moved(a, by_512, d);
    for (; length >= FOLDED; at += FOLDED, length -= FOLDED)
        a = wide_moved(a, by_512, TAKEN(at));
    if (to != NULL)
        memcpy(to + (at - from), at, length);
    __m128i bits = joined(_mm512_castsi512_si128(a), _mm512_extracti32x4_epi32(a, 1));
    bits = joined(bits, _mm512_extracti32x4_epi32(a, 2));
    bits = joined(bits, _mm512_extracti32x4_epi32(a, 3));
    return reduced(bits, at, length);
}
WIDELY static uint32_t by_wide_folding(uint32_t sum, const unsigned char *at, size_t length)
{
    return wide_folding(sum, at, length, NULL);
}
WIDELY static uint32_t wide_copy(uint32_t sum, const unsigned char *at, size_t length,
                                 unsigned char *to)
{
    return wide_folding(sum, at, length, to);
}

static void look_at_processor(void)
{
    can_fold = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
    can_fold_wide = can_fold && __builtin_cpu_supports("avx512f")
                    && __builtin_cpu_supports("vpclmulqdq");
}
#else
enum { can_fold = 0, can_fold_wide = 0 };
#define by_folding by_tables
#define by_wide_folding by_tables
#define wide_copy(sum, at, length, to) 0
static void look_at_processor(void) {}
#endif

typedef uint32_t (*Way)(uint32_t, const unsigned char *, size_t);

/* The checksum: whole lanes by the given function, and the rest by the tables. */
static uint32_t sum_by(Way way, const unsigned char *at, size_t length)
{
    size_t lanes = length - length % LANE;
    return ~by_tables(way(~0u, at, lanes), at + lanes, length - lanes);
}

uint32_t crc32_and_copy(unsigned char *to, const unsigned char *at, size_t length)
{
    if (length < WIDE + LANE || !can_fold_wide) {
        memcpy(to, at, length);
        return crc32_of(to, length); /* of what was copied: the source may change */
    }
    const size_t lanes = length - length % LANE;
    const uint32_t sum = wide_copy(~0u, at, lanes, to);
    memcpy(to + lanes, at + lanes, length - lanes);
    return ~by_tables(sum, at + lanes, length - lanes);
}

uint32_t crc32_of(const unsigned char *at, size_t length)
{
    if (length < FOLDED || !can_fold)
        return sum_by(by_tables, at, length);
    const int is_wide = length >= WIDE + LANE && can_fold_wide;
    return sum_by(is_wide ? by_wide_folding : by_folding, at, length);
}

void prepare_crc(void)
{
    for (uint32_t octet = 0; octet < 256; octet++) {
        uint32_t sum = octet;
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (0xEDB88320u & (0u - (sum & 1)));
        table[0][octet] = sum;
    }
    for (int number = 1; number < TABLES; number++)
        for (int octet = 0; octet < 256; octet++) {
            uint32_t before = table[number - 1][octet];
            table[number][octet] = before >> 8 ^ table[0][before & 255];
        }
    look_at_processor();
}

PyDoc_STRVAR(crc32_doc, "crc32(data)\n\nThe same as zlib.crc32.");
static PyObject *crc32(PyObject *module, PyObject *data)
{
    Py_buffer view;
    (void)module;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    uint32_t sum = crc32_of(view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLong(sum);
}

PyDoc_STRVAR(ways_doc, "crc32_ways(data)\n\n"
                       "The checksum by each function that this processor supports.");
static PyObject *crc32_ways(PyObject *module, PyObject *data)
{
    Py_buffer view;
    (void)module;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *found = PyList_New(0);
    const Way ways[] = {by_tables, by_folding, by_wide_folding};
    const int least[] = {0, can_fold ? FOLDED : -1, can_fold_wide ? WIDE + LANE : -1};
    for (int i = 0; found != NULL && i < 3; i++) {
        if (least[i] < 0 || view.len < least[i])
            continue;
        PyObject *sum = PyLong_FromUnsignedLong(sum_by(ways[i], view.buf, (size_t)view.len));
        if (sum == NULL || PyList_Append(found, sum) < 0)
            Py_CLEAR(found);
        Py_XDECREF(sum);
    }
    PyBuffer_Release(&view);
    return found;
}

PyMethodDef crc_functions[] = {
    {"crc32", crc32, METH_O, crc32_doc},
    {"crc32_ways", crc32_ways, METH_O, ways_doc},
    {NULL, NULL, 0, NULL},
};
