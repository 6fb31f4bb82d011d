/* Buffers of ggml (llama.cpp, whisper.cpp) in a pool: a buffer type of ggml's over functions that allocate and free.
 *
 * ggml asks a buffer type for each buffer: the weights of a model, a cache, the space for a graph's tensors. Pass this one
 * where ggml's functions take a `ggml_backend_buffer_type_t`, as to `ggml_backend_alloc_ctx_tensors_from_buft` or
 * `ggml_gallocr_new`. The memory is the host's, in which ggml's CPU backend computes.
 *
 * ggml answers a null buffer with a null result and a line in its log: the reason is the allocator's.
 *
 * It includes no header of ggml's, as programs that use one of its libraries may have none. What it declares is as in
 * `ggml-backend.h` and `ggml-backend-impl.h` of ggml 0.13.
 */

#ifndef ALLOTMENT_GGML_BUFFERS_H
#define ALLOTMENT_GGML_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct ggml_backend_buffer *ggml_backend_buffer_t;
typedef struct ggml_backend_buffer_type *ggml_backend_buffer_type_t;

/* `ggml_backend_buffer_type` of ggml-backend-impl.h. */
struct ggml_backend_buffer_type {
    const char *(*get_name)(ggml_backend_buffer_type_t type);
    ggml_backend_buffer_t (*alloc_buffer)(ggml_backend_buffer_type_t type, size_t bytes);
    size_t (*get_alignment)(ggml_backend_buffer_type_t type);
    size_t (*get_max_size)(ggml_backend_buffer_type_t type);                      /* null: any size */
    size_t (*get_alloc_size)(ggml_backend_buffer_type_t type, const void *tensor); /* null: the tensor's bytes */
    bool (*is_host)(ggml_backend_buffer_type_t type);
    void *device;
    void *context;
};

/* The first member of `ggml_backend_buffer`: what ends a buffer. */
struct ggml_backend_buffer_start {
    void (*free_buffer)(ggml_backend_buffer_t buffer);
};

ggml_backend_buffer_t ggml_backend_cpu_buffer_from_ptr(void *data, size_t bytes);
void *ggml_backend_buffer_get_base(ggml_backend_buffer_t buffer);

/* Where the memory comes from. It outlives all buffers. */
typedef struct allotment_ggml_memory {
    struct ggml_backend_buffer_type type;
    /* Returns memory at a multiple of `alignment`, or null. */
    void *(*allocate)(void *context, size_t bytes, size_t alignment);
    void (*free)(void *context, void *data);
    void *context;
} allotment_ggml_memory;

/* What ggml wants of its tensors, and what stands in front of a buffer's data: the memory that it goes back to. */
#define ALLOTMENT_GGML_ALIGNMENT 64

static const char *allotment_ggml_name(ggml_backend_buffer_type_t type) {
    (void)type;
    return "allotment";
}

static size_t allotment_ggml_alignment(ggml_backend_buffer_type_t type) {
    (void)type;
    return ALLOTMENT_GGML_ALIGNMENT;
}

static bool allotment_ggml_is_host(ggml_backend_buffer_type_t type) {
    (void)type;
    return true;
}

static void allotment_ggml_end(ggml_backend_buffer_t buffer) {
    char *start = (char *)ggml_backend_buffer_get_base(buffer) - ALLOTMENT_GGML_ALIGNMENT;
    allotment_ggml_memory *memory;
    memcpy(&memory, start, sizeof memory);
    memory->free(memory->context, start);
}

static ggml_backend_buffer_t allotment_ggml_alloc(ggml_backend_buffer_type_t type, size_t bytes) {
    allotment_ggml_memory *memory = (allotment_ggml_memory *)type->context;
    if (bytes > (size_t)-1 - ALLOTMENT_GGML_ALIGNMENT) {
        return NULL;
    }
    char *start = memory->allocate(memory->context, bytes + ALLOTMENT_GGML_ALIGNMENT, ALLOTMENT_GGML_ALIGNMENT);
    if (!start) {
        return NULL;
    }
    memcpy(start, &memory, sizeof memory);
    ggml_backend_buffer_t buffer = ggml_backend_cpu_buffer_from_ptr(start + ALLOTMENT_GGML_ALIGNMENT, bytes);
    if (!buffer) {
        memory->free(memory->context, start);
        return NULL;
    }
    /* A buffer over a program's memory has nothing at its end. */
    ((struct ggml_backend_buffer_start *)buffer)->free_buffer = allotment_ggml_end;
    return buffer;
}

/* Makes the buffer type of a memory after its functions and context are set. */
static ggml_backend_buffer_type_t allotment_ggml_buffer_type(allotment_ggml_memory *memory) {
    struct ggml_backend_buffer_type type = {0};
    type.get_name = allotment_ggml_name;
    type.alloc_buffer = allotment_ggml_alloc;
    type.get_alignment = allotment_ggml_alignment;
    type.is_host = allotment_ggml_is_host;
    type.context = memory;
    memory->type = type;
    return &memory->type;
}

#endif
