/* JSON text, byte by byte: numbers, strings, lists of bytes. Part of scan.c, which says what may be read.
 *
 * Each function takes the place where something begins and returns the place behind it, NULL where it is not
 * exactly what JSON, or an engine, writes.
 */
#define _GNU_SOURCE
#include <float.h>
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif


enum { LONGEST_TOKEN = 512 };

/* What is remembered of a token; mirrored in ingest/scan.py. */
enum { ESCAPED = 1, NO_BYTES = 2, REPLACEMENT = 4, UNDECODABLE = 8, NOT_ASCII = 16, ANGLE = 32, UNLISTED = 64 };

/* How the value of each byte is written in a list with the comma behind it, which of the four characters count
 * with the comma and without, and how many there are with it. */
static uint32_t written[256], with_comma[256], without_comma[256];
static unsigned char width[256];
static unsigned char is_special[256]; /* characters that end the plain part of a string */

__attribute__((constructor)) static void prepare(void)
{
    for (int value = 0; value < 256; value++) {
        unsigned char text[4] = {0}, mask[4] = {0};
        int size = 0;
        if (value > 99)
            text[size++] = (unsigned char)('0' + value / 100);
        if (value > 9)
            text[size++] = (unsigned char)('0' + value / 10 % 10);
        text[size++] = (unsigned char)('0' + value % 10);
        text[size] = ',';
        memset(mask, 255, (size_t)size);
        memcpy(without_comma + value, mask, 4);
        mask[size] = 255;
        memcpy(with_comma + value, mask, 4);
        memcpy(written + value, text, 4);
        width[value] = (unsigned char)(size + 1);
        is_special[value] = value < 0x20 || value >= 0x80 || value == '"' || value == '\\' || value == '<';
    }
}

static const unsigned char *space(const unsigned char *p)
{
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')
        p++;
    return p;
}

static inline int is_digit(unsigned char c) { return (unsigned)(c - '0') < 10; }

static inline uint64_t mixed(uint64_t state, uint64_t word)
{
    state = (state ^ word) * 0x9E3779B97F4A7C15u;
    state = (state ^ state >> 32) * 0xD6E8FEB86659FD93u;
    return state ^ state >> 29;
}

/* 64 bits that stand for some bytes: each step is a bijection of what came before. */
static inline uint64_t hashed(const unsigned char *p, int64_t size, uint64_t seed)
{
    uint64_t state = seed ^ ((uint64_t)size * 0xA0761D6478BD642Fu), word;
    uint32_t low, high;
    for (; size >= 8; p += 8, size -= 8) {
        memcpy(&word, p, 8);
        state = mixed(state, word);
    }
    if (size >= 4) { /* the two halves overlap */
        memcpy(&low, p, 4);
        memcpy(&high, p + size - 4, 4);
        state = mixed(state, low | (uint64_t)high << 32);
    } else if (size)
        state = mixed(state, p[0] | (uint64_t)p[size >> 1] << 8 | (uint64_t)p[size - 1] << 16);
    return state ? state : 1;
}

/* Digits from p on: moves p behind them and returns `value` with them appended, modulo 2^64. */
static inline uint64_t digits_from(const unsigned char **place, const unsigned char *end, uint64_t value)
{
    const unsigned char *p = *place;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    while (end - p >= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        /* Eight characters at once: each between '0' and '9', then pairs, fours and eights are summed. */
        if (((word & 0xF0F0F0F0F0F0F0F0u) | (((word + 0x0606060606060606u) & 0xF0F0F0F0F0F0F0F0u) >> 4)) !=
            0x3333333333333333u)
            break;
        word = (word & 0x0F0F0F0F0F0F0F0Fu) * 2561 >> 8;
        word = (word & 0x00FF00FF00FF00FFu) * 6553601 >> 16;
        word = (word & 0x0000FFFF0000FFFFu) * 42949672960001u >> 32;
        value = value * 100000000 + word;
        p += 8;
    }
#else
    (void)end;
#endif
    for (; is_digit(*p); p++)
        value = value * 10 + (*p - '0');
    *place = p;
    return value;
}

/* The double that Python's float() gives, or NULL. JSON's grammar, exactly. */
static const unsigned char *number(const unsigned char *p, const unsigned char *end, double *result)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const unsigned char *begin = p, *from;
    uint64_t digits;
    int64_t count, exponent = 0;
    int is_negative = *p == '-', is_fraction;
    p += is_negative;
    from = p;
    digits = digits_from(&p, end, 0);
    count = p - from;
    is_fraction = *from == '0';
    if (!count || (is_fraction && count > 1))
        return NULL;
    if (*p == '.') {
        from = ++p;
        if (is_fraction)
            while (*p == '0')
                p++;
        count = (is_fraction ? 0 : count) - (p - from);
        digits = digits_from(&p, end, digits);
        count += p - from; /* leading zeros are none of them */
        exponent = from - p;
        if (p == from)
            return NULL;
    }
    if (*p == 'e' || *p == 'E') {
        int64_t written = 0;
        int is_minus;
        p++;
        is_minus = *p == '-';
        p += *p == '-' || *p == '+';
        from = p;
        for (; is_digit(*p); p++)
            written = written > 9999 ? written : written * 10 + (*p - '0');
        if (p == from)
            return NULL;
        exponent += is_minus ? -written : written;
    }
    if (count <= 19) { /* below 10^19: no digit was lost */
        if (digits < (1ull << 53) && exponent >= -22 && exponent <= 22) {
            double value = (double)digits; /* both exact, hence one rounding */
            value = exponent < 0 ? value / powers[-exponent] : value * powers[exponent];
            *result = is_negative ? -value : value;
            return p;
        }
#if LDBL_MANT_DIG == 64
        if (digits && exponent < 0 && exponent >= -27) {
            /* Powers of ten to 10^27 are exact in 64 bits, so this is the quotient rounded once. Rounded again
             * to 53 bits it is right unless it seems to lie midway between two doubles. */
            static const long double large[] = {1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
            long double wide = (long double)digits;
            uint64_t bits;
            wide /= exponent >= -22 ? (long double)powers[-exponent] : large[-exponent - 22];
            memcpy(&bits, &wide, 8);
            if ((bits & 0x7FF) != 0x400) {
                *result = is_negative ? -(double)wide : (double)wide;
                return p;
            }
        }
#endif
    }
    {
        static locale_t plain;
        char *after;
        if (!plain && !(plain = newlocale(LC_ALL_MASK, "C", (locale_t)0)))
            return NULL;
        *result = strtod_l((const char *)begin, &after, plain);
        return (const unsigned char *)after == p ? p : NULL;
    }
}

/* A token's id as digits, 0 to 2^31 - 1. */
static const unsigned char *identity(const unsigned char *p, int64_t *result)
{
    const unsigned char *from = p;
    int64_t value = 0;
    for (; is_digit(*p) && p - from < 11; p++)
        value = value * 10 + (*p - '0');
    if (p == from || p - from > 10 || (*from == '0' && p > from + 1) || value > 0x7FFFFFFF)
        return NULL;
    *result = value;
    return *p == '.' || *p == 'e' || *p == 'E' ? NULL : p;
}

/* Length of the UTF-8 sequence of a character beyond ASCII, 0 if it is none. */
static int sequence(const unsigned char *p)
{
    unsigned char a = p[0], b;
    if (a < 0xC2 || a > 0xF4)
        return 0;
    b = p[1];
    if ((b & 0xC0) != 0x80)
        return 0;
    if (a < 0xE0)
        return 2;
    if ((p[2] & 0xC0) != 0x80)
        return 0;
    if (a < 0xF0)
        return (a == 0xE0 && b < 0xA0) || (a == 0xED && b > 0x9F) ? 0 : 3;
    if ((p[3] & 0xC0) != 0x80)
        return 0;
    return (a == 0xF0 && b < 0x90) || (a == 0xF4 && b > 0x8F) ? 0 : 4;
}

static int hex4(const unsigned char *p)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        unsigned char c = p[i];
        if (is_digit(c))
            value = value * 16 + c - '0';
        else if ((unsigned)((c | 32) - 'a') < 6)
            value = value * 16 + (c | 32) - 'a' + 10;
        else
            return -1;
    }
    return value;
}

/* Decode one escape sequence (at the backslash) to UTF-8; halves of a pair must come together. */
static const unsigned char *escape(const unsigned char *p, unsigned char *out, int *size)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *name;
    int code, low;
    if (p[1] != 'u') {
        name = p[1] ? strchr(names, p[1]) : NULL;
        if (!name)
            return NULL;
        *out = (unsigned char)values[name - names];
        *size = 1;
        return p + 2;
    }
    code = hex4(p + 2);
    if (code < 0)
        return NULL;
    p += 6;
    if (code >= 0xD800 && code < 0xE000) {
        if (code >= 0xDC00 || p[0] != '\\' || p[1] != 'u')
            return NULL;
        low = hex4(p + 2);
        if (low < 0xDC00 || low >= 0xE000)
            return NULL;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        p += 6;
    }
    if (code < 0x80) {
        out[0] = (unsigned char)code;
        *size = 1;
    } else if (code < 0x800) {
        out[0] = (unsigned char)(0xC0 | code >> 6);
        out[1] = (unsigned char)(0x80 | (code & 63));
        *size = 2;
    } else if (code < 0x10000) {
        out[0] = (unsigned char)(0xE0 | code >> 12);
        out[1] = (unsigned char)(0x80 | (code >> 6 & 63));
        out[2] = (unsigned char)(0x80 | (code & 63));
        *size = 3;
    } else {
        out[0] = (unsigned char)(0xF0 | code >> 18);
        out[1] = (unsigned char)(0x80 | (code >> 12 & 63));
        out[2] = (unsigned char)(0x80 | (code >> 6 & 63));
        out[3] = (unsigned char)(0x80 | (code & 63));
        *size = 4;
    }
    return p;
}

/* The decoded text of an entry: in place where nothing is escaped, else in a buffer. */
struct name {
    const unsigned char *bytes;
    int64_t size;
    unsigned char buffer[LONGEST_TOKEN + 4];
};

/* Decode a string to its closing quote into `out`, which has 4 bytes more room than `capacity`. */
static const unsigned char *decoded(
    const unsigned char *p, unsigned char *out, int64_t capacity, int64_t *used, int *flags)
{
    int64_t n = *used;
    int size;
    for (; *p != '"'; n += size) {
        unsigned char *to = out + n;
        if (*p < 0x20 || n >= capacity)
            return NULL;
        if (*p == '\\') {
            *flags |= ESCAPED;
            p = escape(p, to, &size);
            if (!p)
                return NULL;
        } else if (*p < 0x80) {
            *to = *p++;
            size = 1;
        } else {
            size = sequence(p);
            if (!size)
                return NULL;
            memcpy(to, p, (size_t)size);
            p += size;
        }
        if (*to >= 0x80)
            *flags |= NOT_ASCII;
        if (*to == '<')
            *flags |= ANGLE;
        if (size == 3 && to[0] == 0xEF && to[1] == 0xBF && to[2] == 0xBD)
            *flags |= REPLACEMENT;
    }
    *used = n;
    return n <= capacity ? p : NULL;
}

/* A list of bytes from its bracket on. */
static const unsigned char *byte_list(const unsigned char *p, unsigned char *out, int64_t *size)
{
    int64_t used = 0;
    p = space(p + 1);
    if (*p == ']') {
        *size = 0;
        return p + 1;
    }
    for (;;) {
        unsigned value = (unsigned)(*p - '0');
        if (value > 9)
            return NULL;
        p++;
        if (is_digit(*p) && value) {
            value = value * 10 + (*p++ - '0');
            if (is_digit(*p))
                value = value * 10 + (*p++ - '0');
        }
        if (value > 255 || used == LONGEST_TOKEN)
            return NULL;
        out[used++] = (unsigned char)value;
        if (*p == ',' && is_digit(p[1])) {
            p++;
            continue;
        }
        p = space(p);
        if (*p == ']') {
            *size = used;
            return p + 1;
        }
        if (*p != ',')
            return NULL;
        p = space(p + 1);
    }
}

/* The end of a list of exactly these bytes, without white space; NULL where it may be another. */
static const unsigned char *same_bytes(const unsigned char *p, const unsigned char *end, const struct name *name)
{
    uint32_t found;
    unsigned char value;
    int64_t i;
    if (!name->size || end - p < 4 * name->size + 2)
        return NULL;
    for (i = 0, p++; i < name->size - 1; i++, p += width[value]) {
        value = name->bytes[i];
        memcpy(&found, p, 4);
        if ((found ^ written[value]) & with_comma[value])
            return NULL;
    }
    value = name->bytes[i];
    memcpy(&found, p, 4);
    p += width[value];
    return (found ^ written[value]) & without_comma[value] || p[-1] != ']' ? NULL : p;
}

static int is_null(const unsigned char *p)
{
    return p[0] == 'n' && p[1] == 'u' && p[2] == 'l' && p[3] == 'l';
}
