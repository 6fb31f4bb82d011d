/* Loaded into a program: moves of pages to a given address fail as in Linux before 6.17 if the source is several mappings.
 * What was at the address is gone then, and another thread's mapping may be there. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

void *mremap(void *from, size_t old_bytes, size_t new_bytes, int flags, ...) {
    (void)from, (void)old_bytes;
    if (flags & MREMAP_FIXED) {
        va_list rest;
        va_start(rest, flags);
        void *to = va_arg(rest, void *);
        va_end(rest);
        munmap(to, new_bytes);
    }
    errno = EFAULT;
    return MAP_FAILED;
}
