/* A pool of host memory: allocate, align, resize, free; what it holds, and why it refuses. */

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "allotment.h"

#define MIB ((uint64_t)1 << 20)

/* Ends the program with the library's text if a call failed. */
static void must(allotment_status status) {
    if (status != ALLOTMENT_OK) {
        fprintf(stderr, "allotment: %s\n", allotment_last_error());
        assert(0);
    }
}

int main(void) {
    assert(allotment_version() >> 16 == ALLOTMENT_VERSION_MAJOR);

    allotment_options options;
    must(allotment_options_init(&options, sizeof options, 64 * MIB));
    options.name = "example";
    allotment_pool *pool;
    must(allotment_pool_create_host(&options, &pool));

    /* Memory that can be written, at an address of its own choice. */
    allotment_allocation weights, page;
    must(allotment_allocate(pool, 1000000, &weights));
    must(allotment_allocate_aligned(pool, 4096, 65536, &page));
    assert(page.address % 65536 == 0 && page.size >= 4096);
    memset((void *)(uintptr_t)weights.address, 1, 1000000);

    /* A resize says how large the allocation is now, or that it is as it was. */
    must(allotment_resize(pool, weights.address, 1000, &weights));
    assert(weights.size == 1024);
    assert(allotment_resize(pool, weights.address, 128 * MIB, NULL) == ALLOTMENT_NO_ROOM);

    /* A part of the program that may hold one MiB. */
    allotment_scope *scope;
    must(allotment_scope_open(pool, "step", MIB, 0, &scope));
    allotment_allocation temporary;
    must(allotment_allocate_tagged(pool, MIB / 2, 256, "temporary", &temporary));
    assert(allotment_allocate(pool, MIB, &page) == ALLOTMENT_OUT_OF_MEMORY);
    must(allotment_free_allocation(pool, &temporary));
    allotment_scope_stats figures;
    must(allotment_scope_close(scope, &figures));
    assert(figures.peak == MIB / 2 && figures.live == 0);

    /* A refusal has a text and, as JSON, figures and advice. */
    allotment_allocation large;
    assert(allotment_allocate(pool, 65 * MIB, &large) == ALLOTMENT_OUT_OF_MEMORY);
    assert(strstr(allotment_last_error(), "out of memory: asked for 65 MiB"));
    char *json = allotment_last_refusal_json();
    assert(json && strstr(json, "\"verdict\":\"limit\""));
    allotment_string_free(json);

    /* Misuse is an error and changes nothing. */
    must(allotment_free(pool, weights.address));
    assert(allotment_free(pool, weights.address) == ALLOTMENT_NOT_ALLOCATED);
    assert(allotment_allocate_aligned(pool, 1, 3, &large) == ALLOTMENT_INVALID_ARGUMENT);
    assert(allotment_allocate(NULL, 1, &large) == ALLOTMENT_INVALID_ARGUMENT);

    allotment_stats stats;
    must(allotment_stats_get(pool, &stats, sizeof stats));
    assert(stats.num_live == 1 && stats.limit == 64 * MIB);
    must(allotment_snapshot_json(pool, &json));
    assert(strstr(json, "\"name\":\"example\""));
    allotment_string_free(json);
    must(allotment_explain_json(pool, 1000, &json));
    assert(strcmp(json, "null") == 0);
    allotment_string_free(json);

    must(allotment_free(pool, page.address));
    uint64_t released;
    must(allotment_set_limit(pool, MIB, 1, &released));
    assert(released == stats.reserved);
    must(allotment_pool_destroy(pool));
    printf("served %" PRIu64 " allocations\n", stats.num_allocs);
    return 0;
}
