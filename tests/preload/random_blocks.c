/* Random calls of every function of the malloc family, from several threads, with forks in between.
 *
 * Every block is filled with a stamp that depends on its number, and checked before it is resized or freed: any overlap,
 * lost byte or byte of another block shows. Blocks also go from thread to thread. A null pointer is accepted as a refusal
 * if errno is ENOMEM; how often that happened is printed.
 *
 * usage: random_blocks SEED THREADS STEPS MOST_BYTES FORKS
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 24, SHARED = 16 };

struct block {
    unsigned char *data;
    size_t bytes;
    uint64_t stamp;
};

static size_t most_bytes;
static long steps;
static atomic_long refused, blocks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block shared[SHARED];

static void fail(const char *what) {
    fprintf(stderr, "random_blocks: %s\n", what);
    abort();
}

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Small, medium and large sizes, as often as each other. */
static size_t any_size(uint64_t *state) {
    uint64_t bits = next(state) % 22;
    size_t bytes = ((size_t)1 << bits) + next(state) % ((size_t)1 << bits);
    return bytes < most_bytes ? bytes : most_bytes;
}

static void fill(struct block *block) {
    size_t words = block->bytes / 8;
    uint64_t *word = (uint64_t *)block->data;
    for (size_t i = 0; i < words; i++) word[i] = block->stamp + i;
    for (size_t i = words * 8; i < block->bytes; i++) block->data[i] = (unsigned char)(block->stamp + i);
}

static void check(const struct block *block, size_t bytes) {
    size_t words = block->bytes / 8;
    const uint64_t *word = (const uint64_t *)block->data;
    for (size_t i = 0; i < words && (i + 1) * 8 <= bytes; i++)
        if (word[i] != block->stamp + i) fail("a block has other content");
    for (size_t i = words * 8; i < block->bytes && i < bytes; i++)
        if (block->data[i] != (unsigned char)(block->stamp + i)) fail("a block's tail has other content");
}

static void check_aligned(const void *data, size_t alignment) {
    if ((uintptr_t)data % alignment) fail("an address is not aligned");
}

static int was_refused(const void *data) {
    if (data) return 0;
    if (errno != ENOMEM) fail("a null pointer without ENOMEM");
    refused++;
    return 1;
}

static void make(struct block *block, uint64_t *state) {
    size_t bytes = any_size(state), alignment = (size_t)1 << (4 + next(state) % 13);
    void *data = NULL;
    errno = 0;
    switch (next(state) % 8) {
    case 0: data = malloc(bytes); break;
    case 1:
        data = calloc(bytes / 8 + 1, 8);
        bytes = (bytes / 8 + 1) * 8;
        if (data)
            for (size_t i = 0; i < bytes / 8; i++)
                if (((uint64_t *)data)[i]) fail("calloc returned something other than zeros");
        break;
    case 2: data = realloc(NULL, bytes); break;
    case 3: {
        int error = posix_memalign(&data, alignment, bytes);
        if (error) { errno = error; data = NULL; }
        check_aligned(data, alignment);
        break;
    }
    case 4: data = aligned_alloc(alignment, bytes); check_aligned(data, alignment); break;
    case 5: data = memalign(alignment, bytes); check_aligned(data, alignment); break;
    case 6: data = next(state) % 2 ? valloc(bytes) : pvalloc(bytes); check_aligned(data, 4096); break;
    case 7: data = reallocarray(NULL, bytes / 16 + 1, 16); bytes = (bytes / 16 + 1) * 16; break;
    }
    *block = (struct block){0};
    if (was_refused(data)) return;
    check_aligned(data, 16);
    if (malloc_usable_size(data) < bytes) fail("fewer usable bytes than were asked for");
    blocks++;
    *block = (struct block){data, bytes, next(state)};
    fill(block);
}

static void resize(struct block *block, uint64_t *state) {
    size_t bytes = any_size(state);
    errno = 0;
    unsigned char *data = realloc(block->data, bytes);
    if (was_refused(data)) { check(block, block->bytes); return; }
    block->data = data;
    check(block, bytes);
    block->bytes = bytes;
    block->stamp = next(state);
    if (malloc_usable_size(data) < bytes) fail("fewer usable bytes than were asked for");
    fill(block);
}

static void drop(struct block *block) {
    check(block, block->bytes);
    errno = 77;
    free(block->data);
    if (errno != 77) fail("free changed errno");
    *block = (struct block){0};
}

static void play(struct block *slots, uint64_t *state, long count) {
    for (long step = 0; step < count; step++) {
        struct block *block = &slots[next(state) % SLOTS];
        switch (next(state) % 8) {
        case 0: case 1: case 2: case 3:
            if (block->data) drop(block);
            make(block, state);
            break;
        case 4: case 5:
            if (block->data) resize(block, state);
            break;
        case 6:
            if (block->data) drop(block);
            break;
        case 7: {
            struct block *other = &shared[next(state) % SHARED], kept;
            pthread_mutex_lock(&lock);
            kept = *other;
            *other = *block;
            *block = kept;
            pthread_mutex_unlock(&lock);
            break;
        }
        }
        if (step % 97 == 0) malloc_trim(0);
    }
}

static void *thread(void *argument) {
    uint64_t state = *(uint64_t *)argument;
    struct block *slots = calloc(SLOTS, sizeof *slots);
    play(slots, &state, steps);
    for (int i = 0; i < SLOTS; i++) if (slots[i].data) drop(&slots[i]);
    free(slots);
    return NULL;
}

int main(int count, char **arguments) {
    if (count != 6) return 2;
    uint64_t seed = strtoull(arguments[1], NULL, 10);
    int threads = atoi(arguments[2]);
    steps = atol(arguments[3]);
    most_bytes = strtoull(arguments[4], NULL, 10);
    int forks = atoi(arguments[5]);
    pthread_t ids[64];
    uint64_t seeds[64];
    for (int i = 0; i < threads; i++) {
        seeds[i] = (seed + 1) * 0x9E3779B97F4A7C15u + i;
        pthread_create(&ids[i], NULL, thread, &seeds[i]);
    }
    /* Meanwhile this thread forks, and the children go on with what they inherited. */
    uint64_t state = seed * 0xD1342543DE82EF95u + 1;
    struct block slots[SLOTS] = {{0}};
    for (int i = 0; i < forks; i++) {
        play(slots, &state, steps / (forks + 1));
        /* The child has a copy of the lock, and no other thread that could unlock it. */
        pthread_mutex_lock(&lock);
        pid_t child = fork();
        pthread_mutex_unlock(&lock);
        if (child < 0) fail("no fork");
        if (child == 0) {
            play(slots, &state, 200);
            for (int i = 0; i < SLOTS; i++) if (slots[i].data) drop(&slots[i]);
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        if (status) fail("a child failed");
    }
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    for (int i = 0; i < SLOTS; i++) if (slots[i].data) drop(&slots[i]);
    for (int i = 0; i < SHARED; i++) if (shared[i].data) drop(&shared[i]);
    printf("%ld blocks, %ld refused\n", (long)blocks, (long)refused);
    return 0;
}
