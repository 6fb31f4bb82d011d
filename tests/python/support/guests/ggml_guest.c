/* The buffer type of the example for a pool of Python's: over the functions of `rust/bindings/src/guests/functions.rs`. */

#include <stdlib.h>

#include "ggml_buffers.h"

struct functions {
    void *(*allocate)(const void *guest, size_t bytes, size_t alignment);
    bool (*resize_in_place)(const void *guest, void *data, size_t bytes);
    void (*free)(const void *guest, void *data);
    const char *(*last_refusal)(void);
};

struct guest {
    allotment_ggml_memory memory;
    const struct functions *functions;
    const void *guest;
};

static void *allocate(void *context, size_t bytes, size_t alignment) {
    const struct guest *guest = context;
    return guest->functions->allocate(guest->guest, bytes, alignment);
}

static void give_back(void *context, void *data) {
    const struct guest *guest = context;
    guest->functions->free(guest->guest, data);
}

ggml_backend_buffer_type_t make_buffer_type(const struct functions *functions, const void *address) {
    struct guest *guest = calloc(1, sizeof *guest); /* as long as the process */
    guest->memory.allocate = allocate;
    guest->memory.free = give_back;
    guest->memory.context = guest;
    guest->functions = functions;
    guest->guest = address;
    return allotment_ggml_buffer_type(&guest->memory);
}
