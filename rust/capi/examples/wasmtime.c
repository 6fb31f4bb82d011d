/* The memories of WebAssembly modules in a pool, by a memory creator of wasmtime's: they grow in place, or move, up to the
 * pool's limit.
 *
 *     cc wasmtime.c -I ../include liballotment_capi.a -lwasmtime -lpthread -ldl -lm
 *
 * wasmtime reserves addresses for each memory, 4 GiB by default, and unmapped pages behind it, which spare it checks of
 * bounds. Addresses of a pool count for its limit. So the configuration asks for neither, and lets memories move.
 */

#define _GNU_SOURCE /* memmem */

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allotment.h"

/* What this program uses of wasm.h and wasmtime.h, as in wasmtime 50: it includes neither, as its package for Python has
 * the library alone. */
typedef struct wasmtime_error wasmtime_error_t;
typedef struct {
    void *env;
    uint8_t *(*get_memory)(void *env, size_t *bytes, size_t *capacity);
    wasmtime_error_t *(*grow_memory)(void *env, size_t bytes);
    void (*finalizer)(void *env);
} wasmtime_linear_memory_t;
typedef struct {
    void *env;
    wasmtime_error_t *(*new_memory)(void *env, const void *type, size_t minimum, size_t maximum, size_t reserved,
                                    size_t guard, wasmtime_linear_memory_t *memory);
    void (*finalizer)(void *env);
} wasmtime_memory_creator_t;
typedef struct {
    size_t size;
    char *data;
} wasm_byte_vec_t;
typedef struct {
    uint64_t parts[4]; /* more than an instance has */
} wasmtime_instance_t;

void *wasm_config_new(void);
void *wasm_engine_new_with_config(void *config);
void wasm_engine_delete(void *engine);
void wasm_byte_vec_delete(wasm_byte_vec_t *bytes);
void wasmtime_config_host_memory_creator_set(void *config, wasmtime_memory_creator_t *creator);
void wasmtime_config_memory_may_move_set(void *config, bool may_move);
void wasmtime_config_memory_reservation_set(void *config, uint64_t bytes);
void wasmtime_config_memory_reservation_for_growth_set(void *config, uint64_t bytes);
void wasmtime_config_memory_guard_size_set(void *config, uint64_t bytes);
void *wasmtime_store_new(void *engine, void *data, void (*finalizer)(void *));
void *wasmtime_store_context(void *store);
void wasmtime_store_delete(void *store);
wasmtime_error_t *wasmtime_wat2wasm(const char *text, size_t length, wasm_byte_vec_t *bytes);
wasmtime_error_t *wasmtime_module_new(void *engine, const char *bytes, size_t length, void **module);
void wasmtime_module_delete(void *module);
wasmtime_error_t *wasmtime_instance_new(void *context, const void *module, const void *imports, size_t count,
                                        wasmtime_instance_t *instance, void **trap);
wasmtime_error_t *wasmtime_error_new(const char *text);
void wasmtime_error_message(const wasmtime_error_t *error, wasm_byte_vec_t *text);
void wasmtime_error_delete(wasmtime_error_t *error);

#define MIB ((uint64_t)1 << 20)
#define PAGE 4096 /* the machine's, which wasmtime wants memories to start at */

/* A module's memory. */
struct memory {
    allotment_pool *pool;
    uint64_t address;
    size_t bytes;
};

static uint8_t *data_of(const struct memory *memory) {
    return (uint8_t *)(uintptr_t)memory->address;
}

static uint8_t *get(void *env, size_t *bytes, size_t *capacity) {
    const struct memory *memory = env;
    *bytes = *capacity = memory->bytes;
    return data_of(memory);
}

/* Grows in place where the memory behind is free, or else moves. New bytes are zero. */
static wasmtime_error_t *grow(void *env, size_t bytes) {
    struct memory *memory = env;
    if (allotment_resize(memory->pool, memory->address, bytes, NULL) != ALLOTMENT_OK) {
        allotment_allocation larger;
        if (allotment_allocate_aligned(memory->pool, bytes, PAGE, &larger) != ALLOTMENT_OK) {
            return wasmtime_error_new(allotment_last_error()); /* memory.grow is -1 */
        }
        memcpy((void *)(uintptr_t)larger.address, data_of(memory), memory->bytes);
        allotment_free(memory->pool, memory->address);
        memory->address = larger.address;
    }
    memset(data_of(memory) + memory->bytes, 0, bytes - memory->bytes);
    memory->bytes = bytes;
    return NULL;
}

static void end(void *env) {
    struct memory *memory = env;
    allotment_free(memory->pool, memory->address);
    free(memory);
}

static wasmtime_error_t *create(void *env, const void *type, size_t minimum, size_t maximum, size_t reserved,
                                size_t guard, wasmtime_linear_memory_t *result) {
    (void)type, (void)maximum;
    if (reserved > minimum || guard > 0) {
        return wasmtime_error_new("memories in a pool have no reserved addresses and no guard pages");
    }
    allotment_allocation allocation;
    if (allotment_allocate_aligned(env, minimum ? minimum : 1, PAGE, &allocation) != ALLOTMENT_OK) {
        return wasmtime_error_new(allotment_last_error());
    }
    struct memory *memory = malloc(sizeof *memory);
    if (!memory) {
        allotment_free(env, allocation.address);
        return wasmtime_error_new("out of memory");
    }
    *memory = (struct memory){env, allocation.address, minimum};
    memset(data_of(memory), 0, minimum);
    *result = (wasmtime_linear_memory_t){memory, get, grow, end};
    return NULL;
}

/* Makes an instance of a module, which runs its start function. */
static wasmtime_error_t *run(void *engine, void *store, const char *text, void **trap) {
    wasm_byte_vec_t bytes;
    void *module;
    wasmtime_instance_t instance;
    assert(!wasmtime_wat2wasm(text, strlen(text), &bytes));
    assert(!wasmtime_module_new(engine, bytes.data, bytes.size, &module));
    wasmtime_error_t *error = wasmtime_instance_new(wasmtime_store_context(store), module, NULL, 0, &instance, trap);
    wasmtime_module_delete(module);
    wasm_byte_vec_delete(&bytes);
    return error;
}

/* Its first memory has 2 pages of 64 KiB, and the second one is behind it: to grow to 32 pages it moves, and keeps what was
 * written. It grows to 36 in place, and cannot grow to 96. */
static const char GROWS[] =
    "(module (memory 2 100) (memory 1) (start $run) (func $run"
    "  (i32.store (i32.const 100000) (i32.const 42))"
    "  (if (i32.ne (memory.grow (i32.const 30)) (i32.const 2)) (then unreachable))"
    "  (if (i32.ne (i32.load (i32.const 100000)) (i32.const 42)) (then unreachable))"
    "  (if (i32.ne (memory.grow (i32.const 4)) (i32.const 32)) (then unreachable))"
    "  (if (i32.load (i32.const 2300000)) (then unreachable))"
    "  (if (i32.ne (memory.grow (i32.const 60)) (i32.const -1)) (then unreachable))"
    "  (if (i32.ne (memory.size) (i32.const 36)) (then unreachable))))";

int main(void) {
    allotment_options options;
    allotment_pool *pool;
    assert(allotment_options_init(&options, sizeof options, 6 * MIB) == ALLOTMENT_OK);
    options.name = "modules";
    assert(allotment_pool_create_host(&options, &pool) == ALLOTMENT_OK);

    void *config = wasm_config_new();
    wasmtime_memory_creator_t creator = {pool, create, NULL};
    wasmtime_config_host_memory_creator_set(config, &creator);
    wasmtime_config_memory_may_move_set(config, true);
    wasmtime_config_memory_reservation_set(config, 0);
    wasmtime_config_memory_reservation_for_growth_set(config, 0);
    wasmtime_config_memory_guard_size_set(config, 0);
    void *engine = wasm_engine_new_with_config(config);
    void *store = wasmtime_store_new(engine, NULL, NULL);

    void *trap = NULL;
    assert(!run(engine, store, GROWS, &trap) && !trap);
    allotment_stats stats;
    assert(allotment_stats_get(pool, &stats, sizeof stats) == ALLOTMENT_OK);
    assert(stats.num_live == 2 && stats.requested == 37 * 65536 && stats.num_allocs == 3);

    /* A module with a memory above the limit gets no instance; the error has the pool's report. */
    wasmtime_error_t *error = run(engine, store, "(module (memory 100))", &trap);
    assert(error);
    wasm_byte_vec_t text;
    wasmtime_error_message(error, &text);
    assert(memmem(text.data, text.size, "out of memory: asked for 6.25 MiB", 33));
    wasm_byte_vec_delete(&text);
    wasmtime_error_delete(error);

    wasmtime_store_delete(store);
    wasm_engine_delete(engine);
    assert(allotment_stats_get(pool, &stats, sizeof stats) == ALLOTMENT_OK);
    assert(stats.num_live == 0);
    assert(allotment_pool_destroy(pool) == ALLOTMENT_OK);
    printf("served %" PRIu64 " memories, %" PRIu64 " bytes at the peak\n", stats.num_allocs, stats.peak_requested);
    return 0;
}
