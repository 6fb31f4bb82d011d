/* A destructor of `pthread_key_create` that runs at the very end of a thread: the library's thread-local data is gone. */

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "allotment.h"
#include "must.h"

#define MIB (1ull << 20)

static pthread_key_t at_the_end;
static int ends;

static void use_last(void *pool_argument) {
    allotment_pool *pool = pool_argument;
    ends++;
    allotment_allocation allocation;
    MUST(allotment_allocate(pool, 1000, &allocation));
    MUST(allotment_free(pool, allocation.address));
    MUST(allotment_set_tag("late"));
    allotment_scope *scope;
    assert(allotment_scope_open(pool, "late", ALLOTMENT_NO_LIMIT, 0, &scope) == ALLOTMENT_THREAD_ENDS);
    assert(!scope);
    MUST(allotment_scope_open(pool, "all", ALLOTMENT_NO_LIMIT, 1, &scope));
    MUST(allotment_scope_close(scope, NULL));
    assert(allotment_allocate(pool, 1ull << 40, &allocation) == ALLOTMENT_OUT_OF_MEMORY);
    assert(strstr(allotment_last_error(), "very end of a thread"));
    assert(!allotment_last_refusal_json());
}

static void *work(void *pool_argument) {
    allotment_pool *pool = pool_argument;
    allotment_allocation allocation;
    assert(pthread_setspecific(at_the_end, pool) == 0);
    allotment_scope *scope;
    MUST(allotment_scope_open(pool, "early", ALLOTMENT_NO_LIMIT, 0, &scope));
    MUST(allotment_scope_close(scope, NULL));
    MUST(allotment_set_tag("early"));
    MUST(allotment_allocate(pool, 1000, &allocation));
    MUST(allotment_free(pool, allocation.address));
    assert(allotment_allocate(pool, 1ull << 40, &allocation) == ALLOTMENT_OUT_OF_MEMORY);
    assert(strstr(allotment_last_error(), "limit"));
    return NULL;
}

int main(void) {
    allotment_options options;
    MUST(allotment_options_init(&options, sizeof options, 16 * MIB));
    options.thread_caches = 1;
    allotment_pool *pool;
    MUST(allotment_pool_create_host(&options, &pool));
    assert(pthread_key_create(&at_the_end, use_last) == 0);
    pthread_t thread;
    assert(pthread_create(&thread, NULL, work, pool) == 0);
    assert(pthread_join(thread, NULL) == 0);
    assert(ends == 1);
    /* No scope is counted as open: this thread has a cache. */
    allotment_allocation allocation;
    for (int i = 0; i < 100; i++) {
        MUST(allotment_allocate(pool, 1000, &allocation));
        MUST(allotment_free(pool, allocation.address));
    }
    allotment_stats stats;
    MUST(allotment_stats_get(pool, &stats, sizeof stats));
    assert(stats.num_from_thread_caches > 90 && stats.num_live == 0);
    allotment_pool_destroy(pool);
    puts("a thread has used the library to its very end");
    return 0;
}
