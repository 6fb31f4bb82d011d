/* Tensors of ggml in a pool: made, computed with on the CPU, refused above the limit, and given back.
 *
 *     cc ggml.c -I ../include liballotment_capi.a -lggml-base -lggml-cpu -lpthread -ldl -lm
 */

#include <assert.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "allotment.h"
#include "ggml_buffers.h"

/* What this program uses of ggml.h, ggml-backend.h and ggml-cpu.h. */
struct ggml_init_params {
    size_t mem_size;
    void *mem_buffer;
    bool no_alloc;
};
struct ggml_context *ggml_init(struct ggml_init_params params);
void ggml_free(struct ggml_context *context);
struct ggml_tensor *ggml_new_tensor_1d(struct ggml_context *context, int type, int64_t elements);
struct ggml_tensor *ggml_add(struct ggml_context *context, struct ggml_tensor *a, struct ggml_tensor *b);
float *ggml_get_data_f32(const struct ggml_tensor *tensor);
struct ggml_cgraph *ggml_new_graph(struct ggml_context *context);
void ggml_build_forward_expand(struct ggml_cgraph *graph, struct ggml_tensor *tensor);
void ggml_log_set(void (*log)(int level, const char *text, void *data), void *data);
ggml_backend_buffer_t ggml_backend_alloc_ctx_tensors_from_buft(struct ggml_context *context,
                                                               ggml_backend_buffer_type_t type);
size_t ggml_backend_buffer_get_size(ggml_backend_buffer_t buffer);
void ggml_backend_buffer_free(ggml_backend_buffer_t buffer);
struct ggml_backend *ggml_backend_cpu_init(void);
void ggml_backend_free(struct ggml_backend *backend);
int ggml_backend_graph_compute(struct ggml_backend *backend, struct ggml_cgraph *graph);

#define GGML_TYPE_F32 0
#define MIB ((uint64_t)1 << 20)

static void *allocate(void *pool, size_t bytes, size_t alignment) {
    allotment_allocation allocation;
    if (allotment_allocate_aligned(pool, bytes, alignment, &allocation) != ALLOTMENT_OK) {
        return NULL; /* allotment_last_error() says why */
    }
    return (void *)(uintptr_t)allocation.address;
}

static void give_back(void *pool, void *data) {
    allotment_status status = allotment_free(pool, (uint64_t)(uintptr_t)data);
    assert(status == ALLOTMENT_OK);
    (void)status;
}

static void quiet(int level, const char *text, void *data) {
    (void)level, (void)text, (void)data;
}

int main(void) {
    allotment_options options;
    allotment_pool *pool;
    assert(allotment_options_init(&options, sizeof options, 64 * MIB) == ALLOTMENT_OK);
    options.name = "model";
    assert(allotment_pool_create_host(&options, &pool) == ALLOTMENT_OK);
    allotment_ggml_memory memory = {.allocate = allocate, .free = give_back, .context = pool};
    ggml_backend_buffer_type_t type = allotment_ggml_buffer_type(&memory);

    /* Three tensors in one buffer, and a graph that computes the third. */
    struct ggml_init_params params = {MIB, NULL, true};
    struct ggml_context *context = ggml_init(params);
    struct ggml_tensor *a = ggml_new_tensor_1d(context, GGML_TYPE_F32, 100000);
    struct ggml_tensor *b = ggml_new_tensor_1d(context, GGML_TYPE_F32, 100000);
    struct ggml_tensor *sum = ggml_add(context, a, b);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors_from_buft(context, type);
    assert(buffer && ggml_backend_buffer_get_size(buffer) >= 1200000);
    for (int i = 0; i < 100000; i++) {
        ggml_get_data_f32(a)[i] = (float)i;
        ggml_get_data_f32(b)[i] = 2.0F * (float)i;
    }
    struct ggml_cgraph *graph = ggml_new_graph(context);
    ggml_build_forward_expand(graph, sum);
    struct ggml_backend *backend = ggml_backend_cpu_init();
    assert(ggml_backend_graph_compute(backend, graph) == 0);
    assert(ggml_get_data_f32(sum)[99999] == 299997.0F);

    /* The pool's figures are those of ggml's buffers. */
    allotment_stats stats;
    assert(allotment_stats_get(pool, &stats, sizeof stats) == ALLOTMENT_OK);
    assert(stats.requested == ggml_backend_buffer_get_size(buffer) + ALLOTMENT_GGML_ALIGNMENT);

    /* Above the limit ggml gets no buffer, and the pool says why. */
    ggml_log_set(quiet, NULL);
    struct ggml_context *large = ggml_init(params);
    ggml_new_tensor_1d(large, GGML_TYPE_F32, 32 << 20);
    assert(!ggml_backend_alloc_ctx_tensors_from_buft(large, type));
    assert(strstr(allotment_last_error(), "out of memory: asked for 128.00 MiB"));

    ggml_backend_free(backend);
    ggml_backend_buffer_free(buffer);
    ggml_free(large);
    ggml_free(context);
    assert(allotment_stats_get(pool, &stats, sizeof stats) == ALLOTMENT_OK);
    assert(stats.in_use == 0);
    assert(allotment_pool_destroy(pool) == ALLOTMENT_OK);
    printf("computed in %" PRIu64 " bytes\n", stats.peak_requested);
    return 0;
}
