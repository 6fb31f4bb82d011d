/* Large blocks that the C library makes or frees on its own, blocks from before the pool, threads that end in any order, and
 * frees at the very end of the process. Prints "whole" if nothing was wrong. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGE = 1 << 20 };

static char *early, *late;

/* Runs before or after the library's own start, as the loader likes. */
__attribute__((constructor)) static void at_start(void) {
    early = malloc(LARGE);
    memset(early, 'e', LARGE);
}

__attribute__((destructor)) static void at_end(void) {
    if (late[LARGE - 1] != 'l') abort();
    free(late);
    free(malloc(LARGE));
}

static pthread_key_t key;

/* After the values of the thread that languages keep for themselves. */
static void at_thread_end(void *block) {
    free(block);
    free(malloc(LARGE));
}

static void *thread(void *argument) {
    char *block = malloc(LARGE);
    memset(block, 't', LARGE);
    pthread_setspecific(key, malloc(LARGE));
    return argument ? block : (free(block), NULL);
}

static void fail(const char *what) {
    fprintf(stderr, "other_callers: %s\n", what);
    exit(1);
}

int main(void) {
    for (int i = 0; i < LARGE; i++) if (early[i] != 'e') fail("an early block has other content");
    early = realloc(early, 2 * LARGE);
    if (early[LARGE - 1] != 'e') fail("an early block lost its content");
    free(early);

    char *text = malloc(LARGE);
    memset(text, 'x', LARGE - 1);
    text[LARGE - 1] = 0;
    char *copy = strdup(text);
    if (strcmp(text, copy)) fail("strdup");
    char *printed = NULL;
    if (asprintf(&printed, "%s%s", text, copy) != 2 * (LARGE - 1)) fail("asprintf");
    free(printed);
    free(copy);

    char *written = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&written, &length);
    for (int i = 0; i < 8; i++) fputs(text, stream);
    fclose(stream);
    if (length != 8 * (size_t)(LARGE - 1)) fail("open_memstream");

    FILE *read = fmemopen(written, length, "r");
    char *line = NULL;
    size_t room = 0;
    if (getline(&line, &room, read) != (ssize_t)length) fail("getline");
    fclose(read);
    free(line);
    free(written);
    free(text);

    pthread_t ids[16];
    pthread_key_create(&key, at_thread_end);
    for (long i = 0; i < 16; i++) pthread_create(&ids[i], NULL, thread, (void *)(i % 2));
    for (int i = 15; i >= 0; i--) {
        void *block;
        pthread_join(ids[i], &block);
        if (block && ((char *)block)[LARGE - 1] != 't') fail("a block of a thread that ended has other content");
        free(block);
    }

    /* Sizes that no allocator has. Volatile, so that the compiler cannot know. */
    volatile size_t most = SIZE_MAX, half = SIZE_MAX / 2;
    for (int i = 0; i < 5; i++) {
        errno = 0;
        void *none = i == 0 ? malloc(most) : i == 1 ? calloc(half, 3) : i == 2 ? reallocarray(NULL, half, 3)
                   : i == 3 ? malloc(half) : aligned_alloc(4096, half);
        if (none || errno != ENOMEM) fail("a size that is too large");
    }
    void *kept = malloc(LARGE);
    void *before = kept;
    if (posix_memalign(&kept, 3, LARGE) != EINVAL || kept != before) fail("an alignment that is no power of two");
    free(kept);
    if (realloc(malloc(LARGE), 0)) fail("realloc to nothing");
    late = calloc(1, LARGE);
    memset(late, 'l', LARGE);
    puts("whole");
    return 0;
}
