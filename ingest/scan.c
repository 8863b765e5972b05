/* Lift the regular form of a server's logprob entries out of JSON text, straight into columns.
 *
 * Regular is what engines write day by day: known keys, each once, every number a number, lists that fall and
 * name each token once. At anything else the scan gives up, and the generic reader (ingest/logprobs.py), the
 * one source of truth, reads the text: what is lifted here is what it would have made, without a note.
 *
 * No memory is allocated, nothing is written beyond the capacities in `struct columns`, and nothing is read
 * beyond `data[size]`, which must be 0, as it is behind every Python bytes object: no loop passes a 0.
 */
#include "scan_entry.h"

enum { NOT_REGULAR = 0, NO_ROOM = -1 };

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
    int64_t *top_text; /* as `place_of` writes it */
};

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

/* Append one position to the columns, if it is wanted. Places are counted from `data` on, and `shift`. */
static int keep(struct columns *to, const struct entry *head, const struct entry *top, int64_t count, int64_t ranked,
                const unsigned char *data, int64_t shift)
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
        to->top_text[m + i] = place_of(top + i, top[i].text - data + shift);
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
            if (!keep(to, &head, top, count, ranked, data, shift)) {
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
