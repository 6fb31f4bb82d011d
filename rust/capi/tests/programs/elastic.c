/* Elastic pools: over memory of this process, paused in memory and in a file, and over functions for pages of this
 * program's own, which notes what has memory. */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allotment.h"
#include "must.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

static void pause_in(int32_t keep, const char *path) {
    allotment_options options;
    MUST(allotment_options_init(&options, sizeof options, 16 * MIB));
    options.elastic = 1;
    options.page_size = 64 * KIB;
    allotment_pool *pool;
    MUST(allotment_pool_create_host(&options, &pool));
    allotment_allocation kept, freed;
    MUST(allotment_allocate(pool, MIB, &kept));
    MUST(allotment_allocate(pool, MIB, &freed));
    memset((void *)(uintptr_t)kept.address, 7, MIB);
    uint64_t bytes;
    int32_t paused;
    MUST(allotment_pause(pool, keep, path, &bytes));
    assert(bytes == 2 * MIB);
    MUST(allotment_is_paused(pool, &paused));
    assert(paused == 1);
    MUST(allotment_pause(pool, keep, path, &bytes));
    assert(bytes == 0);
    allotment_allocation none;
    assert(allotment_allocate(pool, 1, &none) == ALLOTMENT_PAUSED);
    assert(strstr(allotment_last_error(), "the pool is paused"));
    MUST(allotment_free_allocation(pool, &freed));
    MUST(allotment_resume(pool, &bytes));
    assert(bytes == MIB);
    MUST(allotment_is_paused(pool, &paused));
    assert(paused == 0);
    if (keep != ALLOTMENT_KEEP_NOTHING) assert(((const char *)(uintptr_t)kept.address)[MIB - 1] == 7);
    MUST(allotment_free_allocation(pool, &kept));
    MUST(allotment_trim_to(pool, 512 * KIB, &bytes));
    assert(bytes == 512 * KIB);
    MUST(allotment_trim(pool, &bytes));
    assert(bytes == 512 * KIB);
    MUST(allotment_pool_destroy(pool));
}

/* Addresses with a flag for each page that has memory, and the bytes of those. */
#define PAGES 4096
struct device {
    /* The number of ranges of addresses, and what is added to the address of a new one. */
    uint64_t ranges, offset;
    uint64_t next, committed, capacity;
    char has_memory[PAGES];
    int ended, fails;
    /* The number of decommits, and the number of the one that fails, from 1 on; the number of writes that fail. */
    int decommits, failing_decommit, failing_writes;
    char content[PAGES];
};

static int32_t reserve_addresses(void *context, uint64_t bytes, uint64_t page_size, uint64_t *address) {
    struct device *device = context;
    device->next = (device->next + page_size - 1) / page_size * page_size;
    if (device->next + bytes > PAGES * 4 * KIB) return ALLOTMENT_DECLINED;
    *address = device->next + device->offset;
    device->next += bytes;
    ++device->ranges;
    return ALLOTMENT_GRANTED;
}

static void release_addresses(void *context, uint64_t address, uint64_t bytes) {
    struct device *device = context;
    --device->ranges;
    for (uint64_t at = address; at < address + bytes; at += 4 * KIB) assert(!device->has_memory[at / (4 * KIB)]);
}

static int32_t set(struct device *device, uint64_t address, uint64_t bytes, char has_memory) {
    if (device->fails) return device->fails;
    if (has_memory && device->committed + bytes > device->capacity) return ALLOTMENT_DECLINED;
    for (uint64_t at = address; at < address + bytes; at += 4 * KIB) {
        assert(device->has_memory[at / (4 * KIB)] == !has_memory);
        device->has_memory[at / (4 * KIB)] = has_memory;
    }
    device->committed += has_memory ? bytes : (uint64_t)0 - bytes;
    return ALLOTMENT_GRANTED;
}

static int32_t commit(void *context, uint64_t address, uint64_t bytes) { return set(context, address, bytes, 1); }
static int32_t decommit(void *context, uint64_t address, uint64_t bytes) {
    struct device *device = context;
    return ++device->decommits == device->failing_decommit ? 6 : set(device, address, bytes, 0);
}
static int32_t read_byte(void *context, uint64_t address, void *into, size_t bytes) {
    memset(into, ((struct device *)context)->content[address / (4 * KIB)], bytes);
    return ALLOTMENT_GRANTED;
}
static int32_t write_byte(void *context, uint64_t address, const void *from, size_t bytes) {
    (void)bytes;
    if (((struct device *)context)->failing_writes-- > 0) return 7;
    ((struct device *)context)->content[address / (4 * KIB)] = *(const char *)from;
    return ALLOTMENT_GRANTED;
}
static void destroy(void *context) { ((struct device *)context)->ended = 1; }

static void own_pages(void) {
    static struct device device;
    device.next = MIB;
    device.capacity = MIB;
    /* An elastic pool needs no functions for whole regions. */
    allotment_source source = {.context = &device, .destroy = destroy};
    allotment_page_source pages = {.struct_size = sizeof pages,
                                   .granule = 4 * KIB,
                                   .reserve_addresses = reserve_addresses,
                                   .release_addresses = release_addresses,
                                   .commit = commit};
    allotment_options options;
    MUST(allotment_options_init(&options, sizeof options, 2 * MIB));
    options.elastic = 1;
    allotment_pool *pool;
    /* A pool that is not made leaves the source to its caller. */
    assert(allotment_pool_create(&options, &source, &pool) == ALLOTMENT_INVALID_ARGUMENT);
    assert(strstr(allotment_last_error(), "source->reserve is null") && !device.ended && !pool);
    options.pages = &pages;
    assert(allotment_pool_create(&options, &source, &pool) == ALLOTMENT_INVALID_ARGUMENT);
    assert(strstr(allotment_last_error(), "pages->decommit is null") && !device.ended);
    pages.decommit = decommit, pages.granule = 5000;
    assert(allotment_pool_create(&options, &source, &pool) == ALLOTMENT_INVALID_ARGUMENT);
    assert(strstr(allotment_last_error(), "pages->granule 5000 is not a power of two"));
    pages.granule = 4 * KIB, pages.struct_size = 0;
    assert(allotment_pool_create(&options, &source, &pool) == ALLOTMENT_INVALID_ARGUMENT);
    assert(strstr(allotment_last_error(), "struct_size 0 is not sizeof(allotment_page_source)"));
    pages.struct_size = sizeof pages, options.elastic = 0;
    assert(allotment_pool_create(&options, &source, &pool) == ALLOTMENT_INVALID_ARGUMENT);
    assert(strstr(allotment_last_error(), "pages is for elastic pools") && !device.ended);
    options.elastic = 1;

    MUST(allotment_pool_create(&options, &source, &pool));
    allotment_allocation large, small;
    MUST(allotment_allocate(pool, 900 * KIB, &large));
    assert(device.committed == 900 * KIB);
    /* The device has less than the limit. */
    assert(allotment_allocate(pool, 200 * KIB, &small) == ALLOTMENT_OUT_OF_MEMORY);
    char *json = allotment_last_refusal_json();
    assert(strstr(json, "\"verdict\":\"source\""));
    allotment_string_free(json);
    MUST(allotment_allocate(pool, 10 * KIB, &small));
    assert(device.committed == 912 * KIB);
    /* Without a function that reads there is no pause that keeps the content; nothing has changed. */
    device.content[large.address / (4 * KIB)] = 9;
    assert(allotment_pause(pool, ALLOTMENT_KEEP_IN_MEMORY, NULL, NULL) == ALLOTMENT_SOURCE_FAILED);
    assert(strstr(allotment_last_error(), "its function read is null") && device.committed == 912 * KIB);
    MUST(allotment_pause(pool, ALLOTMENT_KEEP_NOTHING, NULL, NULL));
    assert(device.committed == 0);
    /* Nor is there a resume while the device has no memory. */
    device.capacity = 0;
    assert(allotment_resume(pool, NULL) == ALLOTMENT_OUT_OF_MEMORY && !allotment_last_refusal_json());
    device.capacity = MIB;
    MUST(allotment_resume(pool, NULL));
    device.fails = 5;
    uint64_t released;
    MUST(allotment_free_allocation(pool, &large));
    allotment_allocation other;
    assert(allotment_allocate(pool, 1500 * KIB, &other) == ALLOTMENT_SOURCE_FAILED);
    assert(strstr(allotment_last_error(), "the region source failed: its function commit returned 5"));
    assert(allotment_trim(pool, &released) == ALLOTMENT_SOURCE_FAILED);
    assert(strstr(allotment_last_error(), "its function decommit returned 5; it took 0 bytes"));
    assert(allotment_trim_to(pool, 0, &released) == ALLOTMENT_SOURCE_FAILED);
    assert(allotment_set_limit(pool, MIB / 2, 1, &released) == ALLOTMENT_SOURCE_FAILED);
    assert(strstr(allotment_last_error(), "bytes that stay reserved, as the region source failed: its function decommit"));
    device.fails = 0;
    MUST(allotment_limit(pool, &released));
    assert(released == 2 * MIB);
    MUST(allotment_free_allocation(pool, &small));
    MUST(allotment_trim(pool, &released));
    assert(device.committed == 0);
    MUST(allotment_pool_destroy(pool));
    assert(device.ended);
    device.ended = 0;

    /* Addresses that are no pages go back. */
    uint64_t ranges = device.ranges;
    MUST(allotment_pool_create(&options, &source, &pool));
    device.offset = KIB;
    assert(allotment_allocate(pool, 4 * KIB, &small) == ALLOTMENT_SOURCE_FAILED);
    assert(strstr(allotment_last_error(), "is not a multiple of the page size of 4096 bytes in address and length"));
    assert(device.ranges == ranges && device.committed == 0);
    device.offset = 0;
    MUST(allotment_pool_destroy(pool));
    assert(device.ended);
    device.ended = 0;

    /* The content of pages that have their functions is kept. */
    pages.read = read_byte, pages.write = write_byte;
    MUST(allotment_pool_create(&options, &source, &pool));
    MUST(allotment_allocate(pool, 4 * KIB, &small));
    char *content = &device.content[small.address / (4 * KIB)];
    *content = 9;
    MUST(allotment_pause(pool, ALLOTMENT_KEEP_IN_MEMORY, NULL, NULL));
    *content = 0;
    MUST(allotment_resume(pool, NULL));
    assert(*content == 9);
    MUST(allotment_free_allocation(pool, &small));
    MUST(allotment_pool_destroy(pool));
    assert(device.ended && device.ranges == 0);
}

static int32_t is_paused(const allotment_pool *pool) {
    int32_t paused;
    MUST(allotment_is_paused(pool, &paused));
    return paused;
}

/* Pauses that fail: the pool is as it was, or it is paused and has its content; a file at the path stays. */
static void failing_pauses(const char *path) {
    static struct device device;
    device.next = MIB;
    device.capacity = MIB;
    allotment_source source = {.context = &device, .destroy = destroy};
    allotment_page_source pages = {.struct_size = sizeof pages,
                                   .granule = 4 * KIB,
                                   .reserve_addresses = reserve_addresses,
                                   .release_addresses = release_addresses,
                                   .commit = commit,
                                   .decommit = decommit,
                                   .write = write_byte};
    allotment_options options;
    MUST(allotment_options_init(&options, sizeof options, 2 * MIB));
    options.elastic = 1;
    options.pages = &pages;
    FILE *file = fopen(path, "w");
    assert(file && fputs("a letter", file) >= 0 && fclose(file) == 0);
    for (int has_read = 0; has_read < 2; ++has_read) {
        pages.read = has_read ? read_byte : NULL;
        device.ended = 0;
        allotment_pool *pool;
        MUST(allotment_pool_create(&options, &source, &pool));
        allotment_allocation first, gone, last;
        MUST(allotment_allocate(pool, 4 * KIB, &first));
        MUST(allotment_allocate(pool, 4 * KIB, &gone));
        MUST(allotment_allocate(pool, 4 * KIB, &last));
        MUST(allotment_free_allocation(pool, &gone));
        char *contents[] = {&device.content[first.address / (4 * KIB)], &device.content[last.address / (4 * KIB)]};
        *contents[0] = 3, *contents[1] = 4;
        if (!has_read) {
            assert(allotment_pause(pool, ALLOTMENT_KEEP_IN_FILE, path, NULL) == ALLOTMENT_SOURCE_FAILED);
            assert(strstr(allotment_last_error(), "its function read is null") && !is_paused(pool));
        } else {
            /* Of three spans the last one stays, and the memory of the second one returns without its content. */
            device.failing_decommit = device.decommits + 3, device.failing_writes = 1;
            assert(allotment_pause(pool, ALLOTMENT_KEEP_IN_FILE, path, NULL) == ALLOTMENT_SOURCE_FAILED);
            assert(strstr(allotment_last_error(), "its function decommit returned 6; the pool is paused nevertheless"));
            assert(strstr(allotment_last_error(), "its function write returned 7") && is_paused(pool));
            *contents[0] = *contents[1] = 0;
            MUST(allotment_resume(pool, NULL));
            assert(*contents[0] == 3 && *contents[1] == 4 && !is_paused(pool));
        }
        char letter[9] = "";
        file = fopen(path, "r");
        assert(file && fread(letter, 1, 8, file) == 8 && !strcmp(letter, "a letter") && fclose(file) == 0);
        MUST(allotment_free_allocation(pool, &first));
        MUST(allotment_free_allocation(pool, &last));
        MUST(allotment_pool_destroy(pool));
        assert(device.ended && device.committed == 0);
    }
    assert(remove(path) == 0);
}

int main(int argc, char **argv) {
    assert(argc == 2);
    pause_in(ALLOTMENT_KEEP_NOTHING, NULL);
    pause_in(ALLOTMENT_KEEP_IN_MEMORY, NULL);
    pause_in(ALLOTMENT_KEEP_IN_FILE, argv[1]);
    own_pages();
    failing_pauses(argv[1]);
    puts("paused and resumed");
    return 0;
}
