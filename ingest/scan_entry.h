/* One entry of a list: what makes it regular, and where its text stands. Part of scan.c. */
#include "scan_text.h"

enum { MOST_LISTED = 128 };

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

/* Where a token's text stands, how many bytes long as it is written, whether it is escaped, and whether the token's
 * bytes are those of the text; mirrored in ingest/scan.py. */
enum { PLACE_SHIFT = 16, PLACE_ESCAPED = 1 << 15, PLACE_SAME = 1 << 14, PLACE_LENGTH = PLACE_SAME - 1 };

static int64_t place_of(const struct entry *entry, int64_t from)
{
    return from << PLACE_SHIFT | (entry->flags & ESCAPED ? PLACE_ESCAPED : 0) |
           (entry->key == entry->text_key ? PLACE_SAME : 0) | entry->length;
}

/* The texts at these places into `out`: at most 2 bytes for a text beside what it takes as it is written. Each stands
 * behind its length (LEB128), or with `is_split` before a 0. Returns how many bytes, -1 where a place is not one of a
 * text, or a 0 is in it. */
int64_t gnomon_texts(const unsigned char *data, int64_t size, const int64_t *places, int64_t count, unsigned char *out,
                     int64_t is_split)
{
    unsigned char buffer[LONGEST_TOKEN + 4], *to = out;
    for (int64_t i = 0; i < count; i++) {
        int64_t from = places[i] >> PLACE_SHIFT, length = places[i] & PLACE_LENGTH, used = 0;
        const unsigned char *text = data + from;
        int flags = 0;
        if (from < 0 || from > size - length || text[length] != '"')
            return -1;
        if (places[i] & PLACE_ESCAPED) {
            if (decoded(text, buffer, LONGEST_TOKEN, &used, &flags) != text + length)
                return -1;
            text = buffer;
            length = used;
        }
        if (is_split && text == buffer && memchr(text, 0, (size_t)length))
            return -1;
        if (!is_split && length >= 0x80)
            *to++ = (unsigned char)(length & 0x7F) | 0x80;
        if (!is_split)
            *to++ = (unsigned char)(length >= 0x80 ? length >> 7 : length);
        memcpy(to, text, (size_t)length);
        to += length;
        if (is_split)
            *to++ = 0;
    }
    return to - out;
}
