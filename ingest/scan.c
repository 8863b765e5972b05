/* Lift the regular form of a server's logprob entries out of JSON text, straight into columns.
 *
 * Regular is what engines write day by day: known keys, each once, every number a number, lists that fall and
 * name each token once. At anything else the scan gives up, and the generic reader (ingest/logprobs.py), the
 * one source of truth, reads the text: what is lifted here is what it would have made, without a note.
 *
 * No memory is allocated, nothing is written beyond the capacities in `struct columns`, and nothing is read
 * beyond `data[size]`, which must be 0, as it is behind every Python bytes object: no loop passes a 0.
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

enum { MOST_LISTED = 128, LONGEST_TOKEN = 512 };
enum { NOT_REGULAR = 0, NO_ROOM = -1 };

/* What is remembered of a generated token; mirrored in ingest/scan.py. */
enum { ESCAPED = 1, NO_BYTES = 2, REPLACEMENT = 4, UNDECODABLE = 8, NOT_ASCII = 16, ANGLE = 32, UNLISTED = 64 };

/* Mirrored in ingest/scan.py. Tokens beyond `limit` are looked at but not kept. */
struct columns {
    int64_t count, top_count, capacity, top_capacity, limit;
    int64_t given;  /* how many entries the last array held */
    int64_t last;   /* where the last kept entry of the last array ends */
    int64_t asked;  /* how many alternatives were asked for, -1 if not known */
    int64_t flags;  /* of all tokens, perhaps more */
    int64_t least, most; /* how many are listed for a token where any are, perhaps less and more */
    uint64_t seed;
    double *logprob;
    int64_t *id;
    uint64_t *key;
    int64_t *ranked, *start, *from, *to, *text, *text_end, *flag;
    double *top_logprob;
    int64_t *top_id;
    uint64_t *top_key;
};

/* One entry as it stands in the text. */
struct entry {
    const unsigned char *text;
    int64_t length, id;
    uint64_t key, text_key;
    double logprob;
    int flags;
};

#define NO_ID (-1)
#define NO_KEY 0
#define SURE (-99.5) /* below may be a sentinel: ingest/alternatives.py */

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
    return state == NO_KEY ? 1 : state;
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
    int is_negative = *p == '-';
    p += is_negative;
    from = p;
    digits = digits_from(&p, end, 0);
    count = p - from;
    if (!count || (*from == '0' && count > 1))
        return NULL;
    if (*p == '.') {
        from = ++p;
        if (!digits)
            while (*p == '0')
                p++;
        count = (digits ? count : 0) - (p - from);
        digits = digits_from(&p, end, digits);
        count += p - from;
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

/* A token's name from its opening quote on. */
static const unsigned char *string(const unsigned char *p, struct entry *entry, struct name *name)
{
    int64_t used;
    if (*p != '"')
        return NULL;
    entry->text = name->bytes = ++p;
    while (!is_special[*p])
        p++;
    used = p - entry->text;
    if (used > LONGEST_TOKEN)
        return NULL;
    if (*p != '"') { /* few are not plain */
        memcpy(name->buffer, entry->text, (size_t)used);
        p = decoded(p, name->buffer, LONGEST_TOKEN, &used, &entry->flags);
        if (!p)
            return NULL;
        name->bytes = name->buffer;
    }
    entry->length = p - entry->text;
    name->size = used;
    return p + 1;
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

/* Whether no two of the values are equal. */
static int distinct(const uint64_t *values, int64_t count)
{
    uint64_t seen[32] = {0};
    int64_t i, j;
    for (i = 0; i < count; i++) {
        uint64_t mixed = values[i] * 0x9E3779B97F4A7C15u;
        uint64_t bit = 1ull << (mixed >> 58), *word = seen + (mixed >> 53 & 31);
        if (*word & bit)
            for (j = 0; j < i; j++)
                if (values[j] == values[i])
                    return 0;
        *word |= bit;
    }
    return 1;
}

/* What `read_entry` (ingest/logprobs.py) makes of a position: how many entries are ranked, or -1 where it
 * would repair or note something. */
static int64_t judged(struct entry *head, const struct entry *top, int64_t count, int64_t asked)
{
    uint64_t keys[MOST_LISTED];
    int has_ids = head->id != NO_ID;
    int64_t i, place = -1;
    if (!(head->logprob <= 0.0 && head->logprob > SURE))
        return -1;
    if (!count) {
        head->logprob += 0.0; /* -0.0 is 0.0 */
        return 0;
    }
    for (i = 0; i < count; i++) {
        if ((top[i].id != NO_ID) != has_ids || (i && !(top[i].logprob <= top[i - 1].logprob)))
            return -1;
        keys[i] = has_ids ? (uint64_t)top[i].id : top[i].text_key;
    }
    if (!(top[0].logprob <= 0.0 && top[count - 1].logprob > SURE) || (asked > 0 && count > asked + 1))
        return -1;
    if (!distinct(keys, count)) {
        int64_t known = 0;
        if (has_ids)
            return -1;
        /* Different tokens may share the text U+FFFD: then their bytes must differ or be unknown. */
        for (i = 0; i < count; i++) {
            if (top[i].key != NO_KEY)
                keys[known++] = top[i].key;
            else if (!(top[i].flags & REPLACEMENT))
                return -1;
        }
        if (!distinct(keys, known))
            return -1;
    } else if (head->logprob == top[0].logprob && head->text_key == top[0].text_key && head->id == top[0].id &&
               (asked <= 0 || count <= asked))
        return count;
    for (i = 0; i < count && place < 0; i++) {
        if (has_ids ? top[i].id == head->id
                    : head->key != NO_KEY && top[i].key != NO_KEY ? top[i].key == head->key
                                                                  : top[i].text_key == head->text_key)
            place = i;
    }
    if (place < 0) {
        head->logprob += 0.0;
        head->flags |= UNLISTED;
        return count;
    }
    if (top[place].text_key != head->text_key || top[place].logprob != head->logprob)
        return -1;
    head->logprob += 0.0;
    /* Listed because it was sampled, not because it is the next most likely. */
    return place == count - 1 && place && (asked < 0 || count > asked) ? count - 1 : count;
}

struct scan {
    const unsigned char *end;
    struct columns *to;
};

/* The keys of an entry. */
enum { TOKEN = 1, LOGPROB = 2, BYTES = 4, ID = 8, TOP = 16 };

static int key(const unsigned char *p, const unsigned char *end, int64_t *size)
{
    static const struct { const char *name; int size, bit; } keys[] = {
        {"\"token\"", 7, TOKEN}, {"\"logprob\"", 9, LOGPROB}, {"\"bytes\"", 7, BYTES},
        {"\"id\"", 4, ID}, {"\"top_logprobs\"", 14, TOP},
    };
    for (int i = 0; i < 5; i++)
        if (end - p > keys[i].size && !memcmp(p, keys[i].name, (size_t)keys[i].size)) {
            *size = keys[i].size;
            return keys[i].bit;
        }
    return 0;
}

static const unsigned char *list(const struct scan *scan, const unsigned char *p, struct entry *top, int64_t *count);

/* An entry from its brace on. `top` NULL: it is one of a list. */
static const unsigned char *object(
    const struct scan *scan, const unsigned char *p, struct entry *entry, struct entry *top, int64_t *count)
{
    struct name name;
    unsigned char buffer[LONGEST_TOKEN];
    int64_t size, known = -1;
    int seen = 0, bit;
    entry->flags = 0;
    entry->id = NO_ID;
    if (*p != '{')
        return NULL;
    do {
        p = space(p + 1);
        bit = key(p, scan->end, &size);
        if (!bit || seen & bit)
            return NULL;
        seen |= bit;
        p = space(p + size);
        if (*p != ':')
            return NULL;
        p = space(p + 1);
        switch (bit) {
        case TOKEN:
            p = string(p, entry, &name);
            break;
        case LOGPROB:
            p = number(p, scan->end, &entry->logprob);
            break;
        case ID:
            p = is_null(p) ? p + 4 : identity(p, &entry->id);
            break;
        case BYTES:
            if (*p == '[') {
                const unsigned char *after = seen & TOKEN ? same_bytes(p, scan->end, &name) : NULL;
                known = after ? name.size : 0;
                if (after)
                    seen |= 64;
                p = after ? after : byte_list(p, buffer, &known);
            } else
                p = is_null(p) ? p + 4 : NULL;
            break;
        default:
            if (!top)
                return NULL;
            p = is_null(p) ? p + 4 : list(scan, p, top, count);
        }
        if (!p)
            return NULL;
        p = space(p);
    } while (*p == ',');
    if (*p != '}' || (seen & (TOKEN | LOGPROB)) != (TOKEN | LOGPROB))
        return NULL;
    if (top && name.size >= 9 && !memcmp(name.bytes, "token_id:", 9))
        return NULL; /* vLLM's return_tokens_as_token_ids */
    entry->text_key = hashed(name.bytes, name.size, scan->to->seed);
    if (seen & 64 || (known == name.size && !memcmp(buffer, name.bytes, (size_t)known)))
        entry->key = entry->text_key;
    else
        entry->key = known < 0 ? NO_KEY : hashed(buffer, known, scan->to->seed);
    if (known < 0)
        entry->flags |= NO_BYTES;
    if (entry->flags & REPLACEMENT && entry->key == entry->text_key) {
        /* The bytes of U+FFFD stand for any byte that is no character by itself. */
        entry->flags |= UNDECODABLE;
        if (!top && entry->id == NO_ID)
            entry->key = NO_KEY;
    }
    return p + 1;
}

static const unsigned char *list(const struct scan *scan, const unsigned char *p, struct entry *top, int64_t *count)
{
    if (*p != '[')
        return NULL;
    p = space(p + 1);
    if (*p == ']')
        return p + 1;
    for (;;) {
        if (*count == MOST_LISTED)
            return NULL;
        p = object(scan, p, top + *count, NULL, NULL);
        if (!p)
            return NULL;
        (*count)++;
        p = space(p);
        if (*p == ']')
            return p + 1;
        if (*p != ',')
            return NULL;
        p = space(p + 1);
    }
}

/* Append one position to the columns, if it is wanted. */
static int keep(struct columns *to, const struct entry *head, const struct entry *top, int64_t count, int64_t ranked)
{
    int64_t n = to->count, m = to->top_count, i;
    if (n >= to->capacity || m + count > to->top_capacity)
        return 0;
    to->logprob[n] = head->logprob;
    to->id[n] = head->id;
    to->key[n] = head->key;
    to->ranked[n] = ranked;
    to->flag[n] = head->flags;
    to->flags |= head->flags;
    if (count && count < to->least)
        to->least = count;
    if (count > to->most)
        to->most = count;
    for (i = 0; i < count; i++) {
        to->top_logprob[m + i] = top[i].logprob;
        to->top_id[m + i] = top[i].id;
        to->top_key[m + i] = top[i].key;
    }
    to->start[n + 1] = to->top_count = m + count;
    to->count = n + 1;
    return 1;
}

/* Lift the array that begins at data[at]. Returns the place behind it, NOT_REGULAR or NO_ROOM; then nothing in
 * `to` counts but what counted before. `shift` is added to every place that is remembered. */
int64_t gnomon_lift(const unsigned char *data, int64_t size, int64_t at, int64_t shift, struct columns *to)
{
    struct scan scan = {data + size, to};
    struct entry head, top[MOST_LISTED];
    const unsigned char *p = data + at, *from;
    int64_t count_before = to->count, top_before = to->top_count, count, ranked, n;
    to->given = 0;
    to->last = at + 1;
    if (at < 0 || at >= size || data[size] || *p != '[')
        return NOT_REGULAR;
    p = space(p + 1);
    if (*p == ']')
        return p + 1 - data;
    for (;;) {
        from = p;
        count = 0;
        p = object(&scan, p, &head, top, &count);
        ranked = p ? judged(&head, top, count, to->asked) : -1;
        if (ranked < 0)
            break;
        to->given++;
        n = to->count;
        if (n < to->limit) {
            if (!keep(to, &head, top, count, ranked)) {
                to->count = count_before;
                to->top_count = top_before;
                return NO_ROOM;
            }
            to->from[n] = from - data + shift;
            to->to[n] = p - data + shift;
            to->text[n] = head.text - data + shift;
            to->text_end[n] = head.text + head.length - data + shift;
            to->last = p - data;
        }
        p = space(p);
        if (*p == ']')
            return p + 1 - data;
        if (*p != ',')
            break;
        p = space(p + 1);
    }
    to->count = count_before;
    to->top_count = top_before;
    return NOT_REGULAR;
}

/* What is the same in each event of a stream: all but the piece of text and the array behind it, and what came of
 * the events that were taken; mirrored in ingest/scan.py. */
struct frame {
    const char *before, *between, *after;
    int64_t before_size, between_size, after_size;
    unsigned char *text; /* 4 bytes longer than `capacity` */
    int64_t capacity, size;
    int64_t events, given, last;
    int64_t is_full; /* whether the columns have no room for the next event */
};

static int64_t passed(const unsigned char *data, int64_t size, int64_t at, const char *text, int64_t length)
{
    return size - at >= length && !memcmp(data + at, text, (size_t)length) ? at + length : 0;
}

/* Take events from data[at] on as long as they have this frame. Returns the place behind the last of them. */
int64_t gnomon_events(
    const unsigned char *data, int64_t size, int64_t at, int64_t shift, struct columns *to, struct frame *frame)
{
    frame->size = frame->events = frame->given = frame->last = frame->is_full = 0;
    if (at < 0 || at > size || data[size])
        return at;
    for (;;) {
        const unsigned char *p;
        int64_t place, used = frame->size, count = to->count, top_count = to->top_count, added;
        int flags = 0;
        place = passed(data, size, at, frame->before, frame->before_size);
        if (!place || !(p = decoded(data + place, frame->text, frame->capacity, &used, &flags)))
            return at;
        place = passed(data, size, p - data, frame->between, frame->between_size);
        if (!place)
            return at;
        place = gnomon_lift(data, size, place, shift, to);
        frame->is_full = place == NO_ROOM;
        if (place <= 0)
            return at;
        place = passed(data, size, place, frame->after, frame->after_size);
        added = to->count - count;
        /* An array longer than all before may be all that came before, sent again. */
        if (!place || (count && added >= count && added > 1)) {
            to->count = count;
            to->top_count = top_count;
            return at;
        }
        at = place;
        frame->size = used;
        frame->events++;
        frame->given += to->given;
        if (added)
            frame->last = to->last;
    }
}

/* The keys of `count` byte strings, one behind the other in `data`, `ends` being where each ends. */
void gnomon_keys(const unsigned char *data, const int64_t *ends, int64_t count, uint64_t seed, uint64_t *keys)
{
    int64_t from = 0;
    for (int64_t i = 0; i < count; from = ends[i++])
        keys[i] = hashed(data + from, ends[i] - from, seed);
}

/* So that no library meets code that it was not made for. */
int64_t gnomon_layout(void) { return sizeof(struct columns) + sizeof(struct frame); }

#ifndef GNOMON_SOURCE
#define GNOMON_SOURCE ""
#endif

/* The digest of this file when it was compiled. */
const char *gnomon_source(void) { return GNOMON_SOURCE; }

/* The double at the start of a text and how long it is, 0 if it is none; for the tests. */
int64_t gnomon_number(const unsigned char *text, int64_t size, double *result)
{
    const unsigned char *end = number(text, text + size, result);
    return end ? end - text : 0;
}
