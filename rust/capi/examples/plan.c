/* A program that makes the same requests in each step: its events are recorded once, a plan of all addresses is made of
 * them, and a pool in the smallest arena follows it.
 *
 * With the name of a file it also writes the recorded events there, as a log that `allotment replay` and
 * `allotment plan` read.
 */

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "allotment.h"

#define KIB ((uint64_t)1 << 10)

static void must(allotment_status status) {
    if (status != ALLOTMENT_OK) {
        fprintf(stderr, "allotment: %s\n", allotment_last_error());
        exit(1);
    }
}

static allotment_allocation request(allotment_pool *pool, uint64_t bytes) {
    allotment_allocation allocation;
    must(allotment_allocate(pool, bytes, &allocation));
    return allocation;
}

/* One step of the program. */
static void step(allotment_pool *pool) {
    allotment_allocation input = request(pool, 300 * KIB);
    allotment_allocation hidden = request(pool, 500 * KIB);
    must(allotment_free_allocation(pool, &input));
    allotment_allocation output = request(pool, 200 * KIB);
    allotment_allocation loss = request(pool, 100 * KIB);
    must(allotment_free_allocation(pool, &hidden));
    must(allotment_free_allocation(pool, &loss));
    must(allotment_free_allocation(pool, &output));
}

/* Makes a buffer of each allocation in the events; their places are the times. Returns their number. */
static size_t buffers_of(const allotment_event *events, size_t count, allotment_plan_buffer *buffers) {
    size_t made = 0;
    for (size_t at = 0; at < count; ++at) {
        if (events[at].kind == ALLOTMENT_EVENT_ALLOCATED) {
            buffers[made++] = (allotment_plan_buffer){.bytes = events[at].bytes, .start = at, .end = count};
        } else if (events[at].kind == ALLOTMENT_EVENT_FREED) {
            /* Numbers count from 1 in a new pool. */
            buffers[events[at].id - 1].end = at;
        }
    }
    return made;
}

/* Writes events as RMM's log has them. */
static void write_log(const char *path, const allotment_event *events, size_t count) {
    static const char *const ACTIONS[] = {"", "allocate", "free", "allocate failure"};
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        exit(1);
    }
    fprintf(file, "Thread,Time,Action,Pointer,Size,Stream\n");
    for (size_t at = 0; at < count; ++at) {
        uint64_t us = events[at].nanoseconds / 1000, s = us / 1000000;
        fprintf(file, "%" PRIu32 ",%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 ".%06" PRIu64, events[at].thread,
                s / 3600 % 24, s / 60 % 60, s % 60, us % 1000000);
        fprintf(file, ",%s,0x%" PRIx64 ",%" PRIu64 ",0\n", ACTIONS[events[at].kind], events[at].id, events[at].bytes);
    }
    fclose(file);
}

int main(int argc, char **argv) {
    allotment_options options;
    must(allotment_options_init(&options, sizeof options, 64 * 1024 * KIB));
    allotment_pool *pool;
    must(allotment_pool_create_address_space(&options, 0, &pool));
    allotment_recording *recording;
    must(allotment_recording_begin(pool, 1000, ALLOTMENT_KEEP_FIRST_EVENTS, &recording));
    step(pool);
    allotment_event events[1000];
    size_t count;
    must(allotment_recording_take(recording, events, 1000, &count));
    must(allotment_recording_end(recording));
    must(allotment_pool_destroy(pool));
    assert(count == 8);
    if (argc > 1) write_log(argv[1], events, count);

    allotment_plan_buffer buffers[1000];
    size_t length = buffers_of(events, count, buffers);
    uint64_t arena, bound;
    must(allotment_plan_search(buffers, length, 0, 1.0, 0, &arena, &bound));
    assert(length == 4 && arena == 800 * KIB && bound == arena);

    must(allotment_options_init(&options, sizeof options, arena));
    options.plan = buffers;
    options.plan_length = length;
    must(allotment_pool_create_host(&options, &pool));
    for (int turn = 0; turn < 100; ++turn) step(pool);
    allotment_stats stats;
    must(allotment_stats_get(pool, &stats, sizeof stats));
    assert(stats.num_planned == stats.num_allocs && stats.num_refused == 0);
    must(allotment_pool_destroy(pool));
    printf("%" PRIu64 " requests at their places in %" PRIu64 " KiB\n", stats.num_planned, arena / KIB);
    return 0;
}
