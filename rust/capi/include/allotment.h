/* allotment: a device-memory allocator. Made of the sources of the crate allotment-capi; do not edit. */

#ifndef ALLOTMENT_H
#define ALLOTMENT_H

#include <stddef.h>
#include <stdint.h>

// The version of the interface: functions and structures are only added while the first number stays.
#define ALLOTMENT_VERSION_MAJOR 0

// The second number of the version.
#define ALLOTMENT_VERSION_MINOR 1

// The third number of the version.
#define ALLOTMENT_VERSION_PATCH 0

// The split rule of TensorFlow's allocator: a chunk of up to twice the request stays whole.
#define ALLOTMENT_POLICY_TENSORFLOW 0

// Every remainder of 256 bytes or more is split off.
#define ALLOTMENT_POLICY_TIGHT 1

// The source decides whether adjacent regions are joined.
#define ALLOTMENT_JOIN_AS_SOURCE -1

// A quarantine of an eighth of the limit, at most 64 MiB.
#define ALLOTMENT_QUARANTINE_DEFAULT UINT64_MAX

// A scope without a limit.
#define ALLOTMENT_NO_LIMIT UINT64_MAX

// `reserve` granted a region.
#define ALLOTMENT_GRANTED 0

// `reserve` does not have that many bytes; a smaller request may succeed.
#define ALLOTMENT_DECLINED 1

// The result of a call. Whatever is not `ALLOTMENT_OK` changed nothing, unless it says otherwise, and
// `allotment_last_error` describes it.
typedef enum allotment_status {
  // Done.
  ALLOTMENT_OK = 0,
  // No memory is available: `allotment_last_refusal_json` has the figures and what would help.
  ALLOTMENT_OUT_OF_MEMORY = 1,
  // An argument is out of range, null, or not UTF-8.
  ALLOTMENT_INVALID_ARGUMENT = 2,
  // No allocation starts at the address: freed twice, or never of this pool.
  ALLOTMENT_NOT_ALLOCATED = 3,
  // An allocation cannot grow that far in place.
  ALLOTMENT_NO_ROOM = 4,
  // A request without growth or waiting could not be served now.
  ALLOTMENT_NOT_NOW = 5,
  // The pool is closed.
  ALLOTMENT_CLOSED = 6,
  // This process is a forked child of the one that made the pool.
  ALLOTMENT_FORKED = 7,
  // The source of the regions failed, or granted a span that cannot be a region.
  ALLOTMENT_SOURCE_FAILED = 8,
  // Guard mode found a write outside of an allocation or after its free. A free was made nevertheless.
  ALLOTMENT_DAMAGED = 9,
  // The allocation is held by a buffer or a runtime.
  ALLOTMENT_PINNED = 10,
  // The source called its own pool for something that waits for the source.
  ALLOTMENT_INSIDE_SOURCE = 11,
  // The scope is not open any more.
  ALLOTMENT_SCOPE_CLOSED = 12,
  // The library failed: a bug of it, or of a source. The pool may be unusable.
  ALLOTMENT_INTERNAL = 13,
} allotment_status;

// A pool. All threads may use it at once; `allotment_pool_destroy` is the last call of all.
typedef struct allotment_pool allotment_pool;

// An open scope of a pool. It keeps the pool's tables alive, and must be closed.
typedef struct allotment_scope allotment_scope;

// An allocation. For zero bytes all fields are 0, and a free of it does nothing.
typedef struct allotment_allocation {
  // The first byte, a multiple of 256 and of the alignment.
  uint64_t address;
  // The usable bytes, at least those requested.
  uint64_t size;
  // The requested bytes.
  uint64_t requested;
  // The number of the allocation in its pool, from 1 on, never used again.
  uint64_t id;
} allotment_allocation;

// Options of a pool. Call `allotment_options_init` first, then change fields. Later versions add fields at the end.
typedef struct allotment_options {
  // The size of this structure in bytes, as the caller was compiled.
  size_t struct_size;
  // The most bytes that the pool reserves, at least 1.
  uint64_t limit;
  // Not 0: regions start at 2 MiB and double. 0: the first region takes the whole limit. 1 by default.
  int32_t growth;
  // Not 0: a refusal first releases wholly free regions and grows again. 1 by default.
  int32_t trim_on_oom;
  // 1: a region that starts where another ends is joined to it; 0: never; `ALLOTMENT_JOIN_AS_SOURCE` by default.
  int32_t joins_regions;
  // `ALLOTMENT_POLICY_TENSORFLOW` (the default) or `ALLOTMENT_POLICY_TIGHT`.
  int32_t policy;
  // How long a refused request waits for another thread's free, in seconds, up to a year. 0 by default.
  double wait_seconds;
  // Remainders from this fraction of the limit on are split off; 0, the default, means 128 MiB.
  double fragmentation_fraction;
  // Not 0: allocations are recorded under the tag of their thread, `allotment_set_tag`. 0 by default.
  int32_t owner_tags;
  // Not 0: each thread keeps small chunks for its next requests, without the lock. Without effect with guard mode or
  // owner tags. 0 by default.
  int32_t thread_caches;
  // Not 0: guard mode, over memory of this process. 0 by default.
  int32_t guard;
  // The most bytes of freed memory in quarantine in guard mode; `ALLOTMENT_QUARANTINE_DEFAULT` by default.
  uint64_t quarantine;
  // The pool's name in reports; null for "pool". Copied.
  const char *name;
  // The setting that defined the limit, for reports; null for "limit". Copied.
  const char *limit_set_by;
  // Not 0: an elastic pool, over a source with pages, such as memory of this process. 0 by default.
  int32_t elastic;
  // The page size of an elastic pool in bytes; 0, the default, leaves it to the source.
  uint64_t page_size;
} allotment_options;

// A source of regions: functions that a pool calls from one thread at a time, and never while it holds its lock.
// They may free memory of the pool, and must not throw or jump out.
typedef struct allotment_source {
  // Passed to the functions. They may be called from any thread.
  void *context;
  // Reserves at least `bytes` bytes, a multiple of 256, at a multiple of `alignment`. Stores the first byte and the
  // length, both multiples of 256, and returns `ALLOTMENT_GRANTED`; or returns `ALLOTMENT_DECLINED`; or any other
  // number if it failed, which the error of the request names.
  int32_t (*reserve)(void *context,
                     uint64_t bytes,
                     uint64_t alignment,
                     uint64_t *address,
                     uint64_t *granted_bytes);
  // Takes a region back: a former grant, or the span of several that were joined.
  void (*release)(void *context, uint64_t address, uint64_t bytes);
  // Called once, after all other calls, when the pool has ended. May be null.
  void (*destroy)(void *context);
  // Not 0: a grant that starts where another ends may be joined to it.
  int32_t joins_regions;
  // Not 0: grants may start at address 0, as offsets on a device do. Zero bytes then have the address
  // `UINT64_MAX`.
  int32_t starts_at_zero;
} allotment_source;

// The counters of a pool at one moment, in bytes where nothing else is said. Later versions add fields at the end.
typedef struct allotment_stats {
  // Requested bytes of all live allocations.
  uint64_t requested;
  // Bytes of the chunks in use.
  uint64_t in_use;
  // Bytes of all regions.
  uint64_t reserved;
  // The most bytes that may be reserved.
  uint64_t limit;
  // `reserved` - `in_use`.
  uint64_t free;
  // The size of the largest free chunk.
  uint64_t largest_free;
  // High-water mark of `requested` since the last reset of the peaks.
  uint64_t peak_requested;
  // High-water mark of `in_use`.
  uint64_t peak_in_use;
  // High-water mark of `reserved`.
  uint64_t peak_reserved;
  // The largest request ever served.
  uint64_t largest_requested;
  // The number of allocations ever made.
  uint64_t num_allocs;
  // The number of live allocations.
  uint64_t num_live;
  // The number of regions.
  uint64_t num_regions;
  // The number of regions ever granted.
  uint64_t num_grants;
  // The number of requests refused for lack of memory.
  uint64_t num_refused;
  // The part of `free` that thread caches keep.
  uint64_t thread_cached;
  // The part of `num_allocs` that thread caches served.
  uint64_t num_from_thread_caches;
  // How often a page of an elastic pool received memory.
  uint64_t num_commits;
  // Requests that got their place in the pool's plan; 0 in pools without one.
  uint64_t num_planned;
} allotment_stats;

// The figures of a scope in bytes: requests rounded up to 256 bytes.
typedef struct allotment_scope_stats {
  // The most bytes it may hold; `ALLOTMENT_NO_LIMIT` without a limit.
  uint64_t limit;
  // Bytes held now, or at the close of the scope.
  uint64_t live;
  // Allocations held at the same moment.
  uint64_t num_live;
  // The high-water mark of the bytes held.
  uint64_t peak;
  // Total bytes allocated in it.
  uint64_t allocated;
  // Total bytes freed of those.
  uint64_t freed;
} allotment_scope_stats;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the library that runs: major * 65536 + minor * 256 + patch.
uint32_t allotment_version(void);

// Marks this process as a forked child: pools of its parent return `ALLOTMENT_FORKED` from then on. Call it in the
// child before any other call.
void allotment_entered_child(void);

// Allocates at least `bytes` bytes at a multiple of 256.
//
// # Safety
// `pool` is a pool; `allocation` can be written.
enum allotment_status allotment_allocate(const struct allotment_pool *pool,
                                         uint64_t bytes,
                                         struct allotment_allocation *allocation);

// Allocates at least `bytes` bytes at a multiple of `alignment`: any power of two that a region can hold.
//
// # Safety
// `pool` is a pool; `allocation` can be written.
enum allotment_status allotment_allocate_aligned(const struct allotment_pool *pool,
                                                 uint64_t bytes,
                                                 uint64_t alignment,
                                                 struct allotment_allocation *allocation);

// Allocates like `allotment_allocate_aligned`, under a tag that reports name; null for the thread's own.
//
// # Safety
// `pool` is a pool; `tag` is null or ends with a null byte; `allocation` can be written.
enum allotment_status allotment_allocate_tagged(const struct allotment_pool *pool,
                                                uint64_t bytes,
                                                uint64_t alignment,
                                                const char *tag,
                                                struct allotment_allocation *allocation);

// Allocates without growth and without waiting, even for the pool's lock; `ALLOTMENT_NOT_NOW` if that is not enough.
//
// # Safety
// `pool` is a pool; `allocation` can be written.
enum allotment_status allotment_try_allocate(const struct allotment_pool *pool,
                                             uint64_t bytes,
                                             uint64_t alignment,
                                             struct allotment_allocation *allocation);

// Frees the allocation at `address`. The address of zero bytes does nothing.
//
// # Safety
// `pool` is a pool.
enum allotment_status allotment_free(const struct allotment_pool *pool, uint64_t address);

// Frees exactly this allocation: an error if its address is another allocation's by now.
//
// # Safety
// `pool` is a pool; `allocation` points to an allocation.
enum allotment_status allotment_free_allocation(const struct allotment_pool *pool,
                                                const struct allotment_allocation *allocation);

// Changes the allocation at `address` to `bytes` bytes without moving it: grows into the free memory after it, or
// gives its tail back. Stores it as it is then; `ALLOTMENT_NO_ROOM` if it cannot grow that far.
//
// # Safety
// `pool` is a pool; `allocation` is null or can be written.
enum allotment_status allotment_resize(const struct allotment_pool *pool,
                                       uint64_t address,
                                       uint64_t bytes,
                                       struct allotment_allocation *allocation);

// Stores the start of the region that contains `address`, and the distance of `address` from it.
//
// # Safety
// `pool` is a pool; `region` and `offset` are null or can be written.
enum allotment_status allotment_region_of(const struct allotment_pool *pool,
                                          uint64_t address,
                                          uint64_t *region,
                                          uint64_t *offset);

// Sets the tag of this thread, under which pools with `owner_tags` record its allocations; null for none. Copied.
//
// # Safety
// `tag` is null or ends with a null byte.
enum allotment_status allotment_set_tag(const char *tag);

// Sets all options to their defaults, with a limit in bytes. `struct_size` is `sizeof(allotment_options)`.
//
// # Safety
// `options` points to that many writable bytes.
enum allotment_status allotment_options_init(struct allotment_options *options,
                                             size_t struct_size,
                                             uint64_t limit);

// Creates a pool over a source of the caller. The structure is copied. The pool calls `destroy` of the source at its
// end; if this call fails, it does not, and the source stays the caller's.
//
// # Safety
// `options` and `source` point to such structures, whose functions keep their contract; `pool` can be written.
enum allotment_status allotment_pool_create(const struct allotment_options *options,
                                            const struct allotment_source *source,
                                            struct allotment_pool **pool);

// Creates a pool over memory of this process: readable, writable, zero at first. Reserving takes address space only.
//
// # Safety
// `options` points to options; `pool` can be written.
enum allotment_status allotment_pool_create_host(const struct allotment_options *options,
                                                 struct allotment_pool **pool);

// Creates a pool over made-up addresses with nothing behind them. Regions lie `gap` bytes apart, a multiple of 256.
//
// # Safety
// `options` points to options; `pool` can be written.
enum allotment_status allotment_pool_create_address_space(const struct allotment_options *options,
                                                          uint64_t gap,
                                                          struct allotment_pool **pool);

// Destroys a pool: its wholly free regions go back to the source. A region with a live allocation stays reserved for
// ever, as its user may still access it. Open scopes end. Null is accepted.
//
// # Safety
// `pool` is a pool that no thread uses now or later, or null.
enum allotment_status allotment_pool_destroy(struct allotment_pool *pool);

// Closes a pool: it refuses new requests, and releases its regions once the last allocation is freed.
//
// # Safety
// `pool` is a pool.
enum allotment_status allotment_pool_close(const struct allotment_pool *pool);

// Releases all wholly free regions and stores their bytes. Over memory of this process, physical pages of other free
// memory go back to the system.
//
// # Safety
// `pool` is a pool; `released` is null or can be written.
enum allotment_status allotment_trim(const struct allotment_pool *pool,
                                     uint64_t *released);

// Stores the current limit in bytes.
//
// # Safety
// `pool` is a pool; `limit` is null or can be written.
enum allotment_status allotment_limit(const struct allotment_pool *pool, uint64_t *limit);

// Changes the limit in bytes; with `trim` not 0, wholly free regions are released first if that is enough. Stores the
// released bytes.
//
// # Safety
// `pool` is a pool; `released` is null or can be written.
enum allotment_status allotment_set_limit(const struct allotment_pool *pool,
                                          uint64_t limit,
                                          int32_t trim,
                                          uint64_t *released);

// Turns growth on or off for later regions.
//
// # Safety
// `pool` is a pool.
enum allotment_status allotment_set_growth(const struct allotment_pool *pool, int32_t growth);

// Stores the counters. `struct_size` is `sizeof(allotment_stats)`: a program that was compiled against an earlier
// version gets the fields of that version.
//
// # Safety
// `pool` is a pool; `stats` points to that many writable bytes.
enum allotment_status allotment_stats_get(const struct allotment_pool *pool,
                                          struct allotment_stats *stats,
                                          size_t struct_size);

// Sets every peak to its current value.
//
// # Safety
// `pool` is a pool.
enum allotment_status allotment_reset_peaks(const struct allotment_pool *pool);

// Stores all regions and chunks as JSON: `name`, `stats`, and `regions` with their `chunks`. The caller frees the
// text with `allotment_string_free`.
//
// # Safety
// `pool` is a pool; `json` can be written.
enum allotment_status allotment_snapshot_json(const struct allotment_pool *pool,
                                              char **json);

// Stores why a request of `bytes` bytes would be refused now, as JSON; `null` if it would be served. The caller frees
// the text with `allotment_string_free`.
//
// # Safety
// `pool` is a pool; `json` can be written.
enum allotment_status allotment_explain_json(const struct allotment_pool *pool,
                                             uint64_t bytes,
                                             char **json);

// Opens a scope inside this thread's current one: allocations of this thread count for it. With `shared` not 0, it
// counts those of all threads that are in no scope of their own. `limit` bounds the bytes that it holds.
//
// # Safety
// `pool` is a pool; `name` ends with a null byte; `scope` can be written.
enum allotment_status allotment_scope_open(const struct allotment_pool *pool,
                                           const char *name,
                                           uint64_t limit,
                                           int32_t shared,
                                           struct allotment_scope **scope);

// Stores the figures of an open scope.
//
// # Safety
// `scope` is a scope; `figures` can be written.
enum allotment_status allotment_scope_stats_get(const struct allotment_scope *scope,
                                                struct allotment_scope_stats *figures);

// Changes the limit of an open scope; `ALLOTMENT_NO_LIMIT` removes it.
//
// # Safety
// `scope` is a scope.
enum allotment_status allotment_scope_set_limit(const struct allotment_scope *scope,
                                                uint64_t limit);

// Closes a scope from any thread, and stores its final figures. Its live allocations keep counting for the enclosing
// scopes. Null is accepted.
//
// # Safety
// `scope` is a scope, which is not used afterwards, or null; `figures` is null or can be written.
enum allotment_status allotment_scope_close(struct allotment_scope *scope,
                                            struct allotment_scope_stats *figures);

// Returns the text of this thread's last error; empty before the first. Valid until the thread's next failing call.
const char *allotment_last_error(void);

// Returns the refusal of this thread's last error as JSON, which the caller frees with `allotment_string_free`: the
// figures of the pool, the verdict and the advice. Null if that error was none for lack of memory.
char *allotment_last_refusal_json(void);

// Frees a text that a function of this library returned for the caller to free. Null is accepted.
//
// # Safety
// `text` is such a text and is not used afterwards, or is null.
void allotment_string_free(char *text);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ALLOTMENT_H */
