/* Each function refuses null and values that are out of range: a status, a text that names the argument,
 * and nothing changed. Structures of an older and of a newer program. */

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allotment.h"

#define MIB ((uint64_t)1 << 20)

/* Ends the program unless a call has this status, and its text these words. */
static void expect_at(int line, allotment_status status, allotment_status wanted, const char *words) {
    if (status != wanted || (words && !strstr(allotment_last_error(), words))) {
        fprintf(stderr, "line %d: status %d, not %d: %s\n", line, (int)status, (int)wanted, allotment_last_error());
        exit(1);
    }
}
#define INVALID(call, words) expect_at(__LINE__, call, ALLOTMENT_INVALID_ARGUMENT, words)
#define MUST(call) expect_at(__LINE__, call, ALLOTMENT_OK, NULL)
#define EXPECT(call, status, words) expect_at(__LINE__, call, status, words)

static allotment_options defaults(void) {
    allotment_options options;
    MUST(allotment_options_init(&options, sizeof options, 64 * MIB));
    return options;
}

static allotment_pool *made(const allotment_options *options) {
    allotment_pool *pool;
    MUST(allotment_pool_create_host(options, &pool));
    return pool;
}

/* A pool is refused with these words, and the pointer is null. */
static void refuse(allotment_options options, const char *words) {
    allotment_pool *pool = (allotment_pool *)&options;
    INVALID(allotment_pool_create_host(&options, &pool), words);
    assert(!pool);
}

static void check_null(allotment_pool *pool) {
    allotment_allocation one;
    allotment_options options = defaults();
    allotment_pool *none = NULL;
    allotment_source source = {0};
    allotment_stats stats;
    uint64_t number;
    int32_t flag;
    char *json;
    INVALID(allotment_options_init(NULL, sizeof options, 1), "options is null");
    INVALID(allotment_pool_create_host(NULL, &none), "options is null");
    INVALID(allotment_pool_create_host(&options, NULL), "pool is null");
    INVALID(allotment_pool_create_address_space(&options, 0, NULL), "pool is null");
    INVALID(allotment_pool_create_address_space(&options, 100, &none), "gap 100 is not a multiple of 256");
    INVALID(allotment_pool_create(&options, NULL, &none), "source is null");
    INVALID(allotment_pool_create(&options, &source, &none), "source->reserve is null");
    INVALID(allotment_pool_join(pool, NULL), "pool is null");
    INVALID(allotment_pool_join(pool, pool), "pool and other are the same pool");
    MUST(allotment_pool_destroy(NULL));
    /* An allocation that nothing could free is not made. */
    INVALID(allotment_allocate(pool, 1, NULL), "allocation is null");
    INVALID(allotment_allocate_aligned(pool, 1, 256, NULL), "allocation is null");
    INVALID(allotment_allocate_tagged(pool, 1, 256, NULL, NULL), "allocation is null");
    INVALID(allotment_try_allocate(pool, 1, 256, NULL), "allocation is null");
    MUST(allotment_stats_get(pool, &stats, sizeof stats));
    assert(stats.num_allocs == 0);
    INVALID(allotment_allocate(NULL, 1, &one), "pool is null");
    INVALID(allotment_free(NULL, 0), "pool is null");
    INVALID(allotment_free_allocation(pool, NULL), "allocation is null");
    INVALID(allotment_try_free(pool, NULL), "allocation is null");
    INVALID(allotment_free_deferred(pool, NULL), "allocation is null");
    INVALID(allotment_stats_get(pool, NULL, sizeof stats), "stats is null");
    INVALID(allotment_stats_get(pool, &stats, 8), "struct_size 8 is not sizeof(allotment_stats)");
    INVALID(allotment_limit(pool, NULL), "limit is null");
    INVALID(allotment_growth(pool, NULL), "growth is null");
    INVALID(allotment_is_paused(pool, NULL), "paused is null");
    INVALID(allotment_can_allocate(pool, 1, NULL), "served is null");
    INVALID(allotment_snapshot_json(pool, NULL), "json is null");
    INVALID(allotment_explain_json(pool, 1, NULL), "json is null");
    INVALID(allotment_inspect_json(NULL, &json), "pool is null");
    assert(!json);
    allotment_scope *scope;
    INVALID(allotment_scope_open(pool, NULL, ALLOTMENT_NO_LIMIT, 0, &scope), "name is null");
    assert(!scope);
    INVALID(allotment_scope_open(pool, "a", ALLOTMENT_NO_LIMIT, 0, NULL), "scope is null");
    INVALID(allotment_scope_open(pool, "\xff", ALLOTMENT_NO_LIMIT, 0, &scope), "name is not UTF-8");
    INVALID(allotment_scope_set_limit(NULL, 1), "scope is null");
    MUST(allotment_scope_open(pool, "a", ALLOTMENT_NO_LIMIT, 0, &scope));
    INVALID(allotment_scope_stats_get(scope, NULL), "figures is null");
    MUST(allotment_scope_close(scope, NULL));
    MUST(allotment_scope_close(NULL, NULL));
    allotment_recording *recording;
    allotment_event event;
    size_t count;
    INVALID(allotment_recording_begin(pool, 0, 0, &recording), "capacity 0");
    assert(!recording);
    INVALID(allotment_recording_begin(pool, 1, 7, &recording), "keep 7");
    INVALID(allotment_recording_take(NULL, &event, 1, &count), "recording is null");
    MUST(allotment_recording_end(NULL));
    allotment_string_free(NULL);
    /* Results that may be left out. */
    MUST(allotment_trim(pool, NULL));
    MUST(allotment_set_limit(pool, 64 * MIB, 0, NULL));
    MUST(allotment_limit(pool, &number));
    MUST(allotment_growth(pool, &flag));
    assert(number == 64 * MIB && flag == 1);
}

static void no_headroom(void *context, allotment_headroom *headroom) { (void)context, (void)headroom; }

static void check_options(void) {
    allotment_options options = defaults();
    options.limit = 0;
    refuse(options, "limit 0 is not between 1 and");
    options = defaults(), options.policy = 7;
    refuse(options, "policy 7 is neither");
    options = defaults(), options.joins_regions = 2;
    refuse(options, "joins_regions 2 is not -1, 0 or 1");
    options = defaults(), options.wait_seconds = NAN;
    refuse(options, "wait_seconds NaN is not between 0 and a year");
    options = defaults(), options.wait_seconds = 1e9;
    refuse(options, "wait_seconds 1000000000 is not between 0 and a year");
    options = defaults(), options.fragmentation_fraction = -1;
    refuse(options, "fragmentation_fraction -1 is not between 0 and 1");
    options = defaults(), options.name = "\xff";
    refuse(options, "name is not UTF-8");
    options = defaults(), options.page_size = 4096;
    refuse(options, "a page size is for elastic pools");
    options = defaults(), options.elastic = 1, options.page_size = 1000;
    refuse(options, "page size 1000 is not a power of two");
    options = defaults(), options.idle_trim_seconds = -1;
    refuse(options, "idle_trim_seconds -1 is not between 0 and a year");
    options = defaults(), options.source_is_host_memory = 1;
    refuse(options, "source_is_host_memory is for pools over a source of yours");
    allotment_page_source pages = {0};
    options = defaults(), options.pages = &pages;
    refuse(options, "pages is for pools over a source of yours");
    options = defaults(), options.headroom = no_headroom;
    refuse(options, "headroom is for pools over a source of yours");
}

static void check_plans(void) {
    allotment_plan_buffer buffers[] = {{300, 0, 2, 0}, {300, 1, 3, 512}};
    allotment_options options = defaults();
    options.plan = buffers;
    refuse(options, "plan_length 0 is not the number of buffers in plan");
    options.plan_length = 2;
    options.guard = 1;
    refuse(options, "a pool with a plan cannot have the option guard");
    options.guard = 0, options.plan_alignment = 100;
    refuse(options, "plan: alignment 100 is not a power of two");
    options.plan_alignment = 64;
    refuse(options, "the plan has an alignment of 64 bytes: a pool follows plans with 256 or more");
    options.plan_alignment = 0, options.limit = 1023;
    refuse(options, "the plan has an arena of 1024 bytes, which is above the limit of 1023 bytes");
    options.limit = MIB, buffers[1].offset = 256;
    refuse(options, "plan: buffers 0 and 1 live at the same time and overlap at offset 256");
    buffers[1].offset = 100;
    refuse(options, "plan: buffer 1: offset 100 is not a multiple of the alignment, 256");
    buffers[1].end = 1;
    refuse(options, "plan: buffer 1: it ends at 1, which is not after its start 1");
    options = defaults(), options.plan_length = 2;
    refuse(options, "plan is null");
    options = defaults(), options.plan_alignment = 256;
    refuse(options, "plan_alignment is 256, but plan is null");

    uint64_t arena;
    INVALID(allotment_plan_search(NULL, 2, 0, 1, 0, &arena, NULL), "buffers is null");
    INVALID(allotment_plan_search(buffers, 0, 0, 1, 0, &arena, NULL), "length 0");
    INVALID(allotment_plan_search(buffers, 2, 0, NAN, 0, &arena, NULL), "seconds NaN is not 0 or more");
    INVALID(allotment_plan_search(buffers, 2, 0, 1, 0, &arena, NULL), "buffer 1: it ends at 1");
    assert(buffers[1].offset == 100);
    buffers[1].end = 3;
    MUST(allotment_plan_search(buffers, 2, 64, 0, 100, &arena, NULL));
    assert(arena == 640 && buffers[0].offset + buffers[1].offset == 320);
}

/* A structure of a later version, and one of the first. */
static void check_versions(void) {
    struct {
        allotment_options known;
        uint64_t added[3];
    } newer;
    memset(&newer, 0xee, sizeof newer);
    MUST(allotment_options_init(&newer.known, sizeof newer, 64 * MIB));
    assert(newer.added[0] == 0 && newer.added[2] == 0);
    MUST(allotment_pool_destroy(made(&newer.known)));
    newer.added[2] = 1;
    allotment_pool *none;
    INVALID(allotment_pool_create_host(&newer.known, &none), "does not know, and they are not 0");

    struct {
        allotment_stats known;
        uint64_t added;
    } figures;
    memset(&figures, 0xee, sizeof figures);
    allotment_options options = defaults();
    allotment_pool *pool = made(&options);
    MUST(allotment_stats_get(pool, &figures.known, sizeof figures));
    assert(figures.known.limit == 64 * MIB && figures.added == 0);

    allotment_options older;
    memset(&older, 0xee, sizeof older);
    size_t first = offsetof(allotment_options, elastic);
    MUST(allotment_options_init(&older, first, 64 * MIB));
    assert(older.elastic != 0 && older.limit == 64 * MIB);
    MUST(allotment_pool_destroy(made(&older)));
    INVALID(allotment_options_init(&older, first - 1, MIB), "is not sizeof(allotment_options)");
    INVALID(allotment_options_init(&older, SIZE_MAX, MIB), "is not sizeof(allotment_options)");
    older.struct_size = SIZE_MAX / 2;
    refuse(older, "is not sizeof(allotment_options)");
    INVALID(allotment_stats_get(pool, &figures.known, SIZE_MAX), "is not sizeof(allotment_stats)");
    MUST(allotment_pool_destroy(pool));
}

static void check_calls(allotment_pool *pool) {
    allotment_allocation one, two;
    int32_t served;
    INVALID(allotment_allocate_aligned(pool, 1, 0, &one), "alignment 0 is not a power of two");
    INVALID(allotment_allocate(pool, UINT64_MAX, &one), "the largest request is");
    EXPECT(allotment_free(pool, 12345), ALLOTMENT_NOT_ALLOCATED, "0x3039");
    EXPECT(allotment_try_allocate(pool, MIB, 256, &one), ALLOTMENT_NOT_NOW, "without growth or a wait");
    MUST(allotment_can_allocate(pool, 64 * MIB, &served));
    assert(served == 1);
    MUST(allotment_can_allocate(pool, 65 * MIB, &served));
    assert(served == 0);
    MUST(allotment_allocate(pool, 0, &one));
    assert(one.address == 0 && one.size == 0 && one.id == 0);
    MUST(allotment_free_allocation(pool, &one));
    MUST(allotment_allocate(pool, MIB, &one));
    MUST(allotment_allocate(pool, MIB, &two));
    INVALID(allotment_resize(pool, one.address, 0, NULL), "cannot shrink to 0 bytes");
    EXPECT(allotment_resize(pool, one.address, 60 * MIB, &two), ALLOTMENT_NO_ROOM, "cannot grow to");
    MUST(allotment_try_free(pool, &one));
    MUST(allotment_free_deferred(pool, &two));
    MUST(allotment_free_deferred(pool, &two));
    EXPECT(allotment_try_free(pool, &one), ALLOTMENT_NOT_ALLOCATED, NULL);
    uint64_t released;
    INVALID(allotment_set_limit(pool, 0, 0, &released), "limit 0 is not between");
    INVALID(allotment_set_limit(pool, MIB, 0, &released), "are reserved: trim first");
    MUST(allotment_trim_to(pool, MIB, &released));
    assert(released >= 2 * MIB);
    INVALID(allotment_pause(pool, ALLOTMENT_KEEP_NOTHING, NULL, NULL), "only an elastic pool can be paused");
    INVALID(allotment_pause(pool, 9, NULL, NULL), "keep 9 is not 0, 1 or 2");
    INVALID(allotment_pause(pool, ALLOTMENT_KEEP_IN_MEMORY, "/tmp/file", NULL), "path is \"/tmp/file\", but keep is 1");
    MUST(allotment_resume(pool, NULL));
    MUST(allotment_pool_close(pool));
    EXPECT(allotment_allocate(pool, 1, &one), ALLOTMENT_CLOSED, "closed");
}

int main(void) {
    allotment_options options = defaults();
    allotment_pool *pool = made(&options);
    check_null(pool);
    check_calls(pool);
    MUST(allotment_pool_destroy(pool));
    check_options();
    check_plans();
    check_versions();
    puts("every argument was checked");
    return 0;
}
