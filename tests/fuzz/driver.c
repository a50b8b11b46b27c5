/*
 * driver.c - a small fuzzer for machines without clang's: the corpus as it is, each file cut at
 * every byte, then random changes of them until the time is up. Takes libFuzzer's options that we
 * use and ignores the others.
 *
 *   FUZZER [-max_total_time=SECONDS] [-seed=N] CORPUS...
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define MAX_FILES 1024
#define MAX_BYTES 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct sample {
    uint8_t *data;
    size_t size;
} sample;

static sample corpus[MAX_FILES];
static int n_corpus;
static uint64_t state = 1;

static uint64_t draw(uint64_t n)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return n == 0 ? 0 : (z ^ z >> 31) % n;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void load(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return;
    if (S_ISDIR(st.st_mode)) {
        DIR *dir = opendir(path);
        for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
            char name[4096];
            if (e->d_name[0] == '.')
                continue;
            snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
            load(name);
        }
        closedir(dir);
        return;
    }
    FILE *f = n_corpus < MAX_FILES ? fopen(path, "rb") : NULL;
    if (f == NULL)
        return;
    sample *s = &corpus[n_corpus++];
    s->data = malloc(MAX_BYTES);
    s->size = fread(s->data, 1, MAX_BYTES, f);
    fclose(f);
}

// Runs on a copy of its own size, so that a sanitizer sees a read past the end.
static void try(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size == 0 ? 1 : size);
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static size_t change(uint8_t *data, size_t size)
{
    static const char tokens[][12] = {"-1",    "0", "9999999999", "%", "{",    "}",     "\"",
                                      "(",     ")", "\n",         "=", "[",    "inf",   "nan",
                                      "1e308", ",", "@",          ":", "data", "shape", "b"};
    size_t at = draw(size + 1), n = draw(16) + 1;
    switch (draw(6)) {
    case 0: // a bit
        if (at < size)
            data[at] ^= (uint8_t)(1u << draw(8));
        return size;
    case 1: // a byte
        if (at < size)
            data[at] = (uint8_t)draw(256);
        return size;
    case 2: // without some
        n = n > size - at ? size - at : n;
        memmove(data + at, data + at + n, size - at - n);
        return size - n;
    case 3: { // some again, elsewhere
        size_t from = draw(size + 1);
        n = draw(64) < 60 ? n : draw(2000);
        n = n > size - from ? size - from : n;
        if (size + n > MAX_BYTES)
            return size;
        uint8_t piece[2016];
        memcpy(piece, data + from, n);
        memmove(data + at + n, data + at, size - at);
        memcpy(data + at, piece, n);
        return size + n;
    }
    case 4: { // a word that means something
        const char *word = tokens[draw(sizeof(tokens) / sizeof(tokens[0]))];
        n = strlen(word);
        if (size + n > MAX_BYTES)
            return size;
        memmove(data + at + n, data + at, size - at);
        memcpy(data + at, word, n);
        return size + n;
    }
    default: { // the rest of another file
        const sample *s = &corpus[draw((uint64_t)n_corpus)];
        size_t from = draw(s->size + 1);
        n = s->size - from;
        if (at + n > MAX_BYTES)
            return size;
        memcpy(data + at, s->data + from, n);
        return at + n;
    }
    }
}

int main(int argc, char **argv)
{
    double seconds = 10;
    long long runs = 0;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-max_total_time=", 16) == 0)
            seconds = atof(argv[i] + 16);
        else if (strncmp(argv[i], "-seed=", 6) == 0)
            state = strtoull(argv[i] + 6, NULL, 10);
        else if (argv[i][0] != '-')
            load(argv[i]);
    }
    if (n_corpus == 0) {
        fprintf(stderr, "%s: no corpus\n", argv[0]);
        return 1;
    }
    double end = now() + seconds;
    for (int i = 0; i < n_corpus; i++, runs++)
        try(corpus[i].data, corpus[i].size);
    for (int i = 0; i < n_corpus && now() < end - seconds / 2; i++)
        for (size_t n = 0; n < corpus[i].size && now() < end - seconds / 2; n++, runs++)
            try(corpus[i].data, n);
    static uint8_t data[2 * MAX_BYTES];
    for (; now() < end; runs++) {
        const sample *s = &corpus[draw((uint64_t)n_corpus)];
        size_t size = s->size;
        memcpy(data, s->data, size);
        for (uint64_t k = draw(6) + 1; k > 0; k--)
            size = change(data, size);
        try(data, size);
    }
    for (int i = 0; i < n_corpus; i++)
        free(corpus[i].data);
    const char *name = strrchr(argv[0], '/');
    printf("fuzz %s: %lld runs in %.0f s, no crash\n", name == NULL ? argv[0] : name + 1, runs,
           seconds);
    return 0;
}
