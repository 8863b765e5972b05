/* Mutates arrays and events as fast as C goes, under the sanitizers; `python -m bench.fuzz_scanner` compares results too.
 *
 *   python -m bench.fuzz_scanner seeds > seeds
 *   gcc -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -o fuzz bench/fuzz_scanner.c
 *   ./fuzz SECONDS SEED seeds        (a seed a line)
 */
#include "../ingest/scan.c"

#include <stdio.h>
#include <time.h>

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static const char *spoilers[] = {
    "null", "NaN", "-1e999", "-0", "1.", "01", "\\ud83d", "\\ud83d\\ude00", "\\u00", "\xff", "\xed\xa0\x80", "\"", "\\",
    "\n", " ", ",", "]", "}", "[", "{", ":", "\xef\xbf\xbd", "256", "\"token\":\"z\",", "\"id\":null,", "\xf0\x9f",
    "\xf4\x8f\xbf", "9999999999999999999999", "-0.12345678901234565", "1e-400", "2147483648", "\"top_logprobs\":[",
    "data: {\"t\":\"", "\",\"l\":", "}\n\n", "token_id:", "[1,2,3,255]",
};

static size_t mutate(char *text, size_t size, size_t room)
{
    for (int rounds = (int)draw(5); rounds > 0; rounds--) {
        const char *put = spoilers[draw(sizeof spoilers / sizeof *spoilers)];
        size_t at = draw(size + 1), kind = draw(4), length = strlen(put), gone = draw(12);
        gone = at + gone > size ? size - at : gone;
        if (kind == 0 && at < size)
            text[at] = (char)draw(256);
        else if (kind == 1 && size > gone) {
            memmove(text + at, text + at + gone, size - at - gone);
            size -= gone;
        } else if (kind == 2)
            size = draw(8) ? size : at;
        else if (size - gone + length < room) {
            memmove(text + at + length, text + at + gone, size - at - gone);
            memcpy(text + at, put, length);
            size += length - gone;
        }
    }
    return size;
}

static void once(const char *text, size_t size, uint64_t *lifted)
{
    unsigned char *data = malloc(size + 1);
    int64_t capacity = 1 + (int64_t)draw(4), listed = 1 + (int64_t)draw(9);
    int64_t *rows[13];
    struct columns to = {0};
    struct frame frame = {"data: {\"t\":\"", "\",\"l\":", "}\n\n", 12, 6, 3, NULL, 1 + (int64_t)draw(40), 0, 0, 0, 0, 0};
    memcpy(data, text, size);
    data[size] = 0;
    for (int i = 0; i < 13; i++) /* each of its own, and not a word longer than said */
        rows[i] = malloc(8 * (size_t)(i > 9 ? listed : i == 4 ? capacity + 1 : capacity));
    rows[4][0] = 0;
    to.capacity = capacity;
    to.top_capacity = listed;
    to.limit = draw(2) ? capacity : 2048;
    to.asked = (int64_t)draw(5) - 1;
    to.seed = draw(1u << 30);
    to.logprob = (double *)rows[0], to.id = rows[1], to.key = (uint64_t *)rows[2], to.ranked = rows[3];
    to.start = rows[4], to.from = rows[5], to.to = rows[6], to.text = rows[7], to.text_end = rows[8], to.flag = rows[9];
    to.top_logprob = (double *)rows[10], to.top_id = rows[11], to.top_key = (uint64_t *)rows[12];
    frame.text = malloc((size_t)frame.capacity + 4);
    *lifted += gnomon_lift(data, (int64_t)size, 0, 0, &to) > 0;
    *lifted += gnomon_events(data, (int64_t)size, 0, 0, &to, &frame) > 0;
    if (to.count > capacity || to.top_count > listed || frame.size > frame.capacity)
        abort();
    for (int i = 0; i < 13; i++)
        free(rows[i]);
    free(frame.text);
    free(data);
}

int main(int count, char **arguments)
{
    enum { LINES = 4096, ROOM = 65536 };
    static char *lines[LINES], line[ROOM], text[ROOM];
    uint64_t seeds = 0, runs = 0, lifted = 0;
    FILE *file = count == 4 ? fopen(arguments[3], "r") : NULL;
    if (!file)
        return 2;
    while (seeds < LINES && fgets(line, ROOM / 2, file)) {
        /* A stream's line feeds are written as \1 there. */
        line[strcspn(line, "\n")] = 0;
        for (char *p = line; *p; p++)
            *p = *p == 1 ? '\n' : *p;
        lines[seeds] = malloc(strlen(line) + 1);
        strcpy(lines[seeds++], line);
    }
    state = strtoull(arguments[2], NULL, 10) * 0x9E3779B97F4A7C15u | 1;
    while (clock() < atol(arguments[1]) * (clock_t)CLOCKS_PER_SEC) {
        const char *seed = lines[draw(seeds)];
        size_t size = strlen(seed);
        memcpy(text, seed, size);
        once(text, mutate(text, size, ROOM), &lifted);
        runs += 2;
    }
    printf("%llu executions, %llu lifted, %llu seeds\n", (unsigned long long)runs, (unsigned long long)lifted,
           (unsigned long long)seeds);
    return 0;
}
