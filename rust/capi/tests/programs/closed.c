/* The shared library is closed while its thread for idle pools waits for the next one: its code stays until the end of
 * the process. */

#define _DEFAULT_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "allotment.h"

/* Stores the address of a function of the library. */
static void find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    assert(found);
    memcpy(function, &found, sizeof found);
}

/* Uses the library in a thread of its own: at the end of that, none of its values keeps the library in memory. */
static void *use(void *library) {
    allotment_status (*init)(allotment_options *, size_t, uint64_t);
    allotment_status (*create)(const allotment_options *, allotment_pool **);
    allotment_status (*destroy)(allotment_pool *);
    find(library, "allotment_options_init", &init);
    find(library, "allotment_pool_create_host", &create);
    find(library, "allotment_pool_destroy", &destroy);
    allotment_options options;
    assert(init(&options, sizeof options, 1 << 20) == ALLOTMENT_OK);
    options.idle_trim_seconds = 0.01;
    allotment_pool *pool;
    assert(create(&options, &pool) == ALLOTMENT_OK);
    usleep(30000);
    assert(destroy(pool) == ALLOTMENT_OK);
    return NULL;
}

int main(int argc, char **argv) {
    assert(argc == 2);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    assert(library && dlclose(library) == 0);
    library = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD);
    assert(library);
    pthread_t thread;
    assert(pthread_create(&thread, NULL, use, library) == 0);
    assert(pthread_join(thread, NULL) == 0);
    assert(dlclose(library) == 0);
    usleep(300000);
    /* That thread has ended, too. */
    puts("the library stays");
    return 0;
}
