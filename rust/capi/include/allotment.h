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

// A pause loses the content of the allocations.
#define ALLOTMENT_KEEP_NOTHING 0

// A pause copies the content of the allocations to memory of the process outside of the pool.
#define ALLOTMENT_KEEP_IN_MEMORY 1

// A pause writes the content of the allocations to a file.
#define ALLOTMENT_KEEP_IN_FILE 2

// The split rule of TensorFlow's allocator: a chunk of up to twice the request stays whole.
#define ALLOTMENT_POLICY_TENSORFLOW 0

// Every remainder of 256 bytes or more is split off.
#define ALLOTMENT_POLICY_TIGHT 1

// The source decides whether adjacent regions are joined.
#define ALLOTMENT_JOIN_AS_SOURCE -1

// A quarantine of an eighth of the limit, at most 64 MiB.
#define ALLOTMENT_QUARANTINE_DEFAULT UINT64_MAX

// A full recording keeps the last events: the oldest one makes room.
#define ALLOTMENT_KEEP_LAST_EVENTS 0

// A full recording keeps what it has, and counts new events as lost.
#define ALLOTMENT_KEEP_FIRST_EVENTS 1

// An allocation was made, or was live when the recording began. One that is resized is freed and made anew, under the
// same number.
#define ALLOTMENT_EVENT_ALLOCATED 1

// An allocation was freed.
#define ALLOTMENT_EVENT_FREED 2

// A request was refused.
#define ALLOTMENT_EVENT_REFUSED 3

// A scope without a limit.
#define ALLOTMENT_NO_LIMIT UINT64_MAX

// `reserve` granted a region.
#define ALLOTMENT_GRANTED 0

// `reserve` does not have that many bytes; a smaller request may succeed.
#define ALLOTMENT_DECLINED 1

// The result of a call. A call with another result than `ALLOTMENT_OK` changed nothing, unless the result or the
// function says otherwise, and `allotment_last_error` describes it. Later versions add results.
typedef enum allotment_status {
  // Done.
  ALLOTMENT_OK = 0,
  // No memory is available: `allotment_last_refusal_json` has the figures of a refused request and what would help.
  ALLOTMENT_OUT_OF_MEMORY = 1,
  // An argument or an option is out of range, null, or not UTF-8.
  ALLOTMENT_INVALID_ARGUMENT = 2,
  // No allocation starts at the address: freed twice, or never of this pool.
  ALLOTMENT_NOT_ALLOCATED = 3,
  // An allocation cannot grow that far in place.
  ALLOTMENT_NO_ROOM = 4,
  // A call that does not wait could not be served now.
  ALLOTMENT_NOT_NOW = 5,
  // The pool is closed, and takes no more requests.
  ALLOTMENT_CLOSED = 6,
  // This process is a forked child of the one that made the pool.
  ALLOTMENT_FORKED = 7,
  // The source of the regions failed, or granted a span that cannot be a region.
  ALLOTMENT_SOURCE_FAILED = 8,
  // Guard mode found a write outside of an allocation or after its free. A free was made nevertheless; a request was
  // not served, and may be made again. Each damage is reported once.
  ALLOTMENT_DAMAGED = 9,
  // The allocation is held by a buffer or a runtime.
  ALLOTMENT_PINNED = 10,
  // The source called its own pool for something that waits for the source.
  ALLOTMENT_INSIDE_SOURCE = 11,
  // The scope is not open any more.
  ALLOTMENT_SCOPE_CLOSED = 12,
  // The library failed: a bug of it, or of a source. The pool may be unusable.
  ALLOTMENT_INTERNAL = 13,
  // The pool is paused, and none of its pages has memory.
  ALLOTMENT_PAUSED = 14,
  // The system call `membarrier`, on which the pool's lock relies, was forbidden after the pool was made.
  ALLOTMENT_BARRIER_FORBIDDEN = 15,
  // A file could not be opened, written or read.
  ALLOTMENT_FILE_FAILED = 16,
  // The system started no thread for the option `idle_trim_seconds`. No pool was made.
  ALLOTMENT_NO_THREAD = 17,
  // The thread is about to end, and can open no scope of its own.
  ALLOTMENT_THREAD_ENDS = 18,
} allotment_status;

// A pool. All threads may use it at once; `allotment_pool_destroy` is the last call on it.
typedef struct allotment_pool allotment_pool;

// A recording of a pool, which `allotment_recording_end` ends and frees. All threads may use it at once.
typedef struct allotment_recording allotment_recording;

// An open scope of a pool, which `allotment_scope_close` frees. It ends with its pool: calls on it then return
// `ALLOTMENT_SCOPE_CLOSED`.
typedef struct allotment_scope allotment_scope;

// An allocation. A request of zero bytes is served with size, requested bytes and number 0 and an address of no
// memory: 0, or `UINT64_MAX` over a source that starts at 0. A free of it does nothing.
typedef struct allotment_allocation {
  // The first byte, a multiple of 256 and of the alignment; the argument of a free.
  uint64_t address;
  // The usable bytes, at least those requested: multiples of 256, or in guard mode the requested bytes alone.
  uint64_t size;
  // The requested bytes.
  uint64_t requested;
  // The number of the allocation in its pool, from 1 on, never used again.
  uint64_t id;
} allotment_allocation;

// A buffer of a plan: its size, when it lives, and where it lies. The buffers of a plan are in the order of their
// requests.
typedef struct allotment_plan_buffer {
  // Size in bytes, at least 1.
  uint64_t bytes;
  // When it starts to live, in any unit of time; never smaller than that of the buffer before.
  uint64_t start;
  // The first time at which it no longer lives, after `start`.
  uint64_t end;
  // Its offset in the arena in bytes, a multiple of the plan's alignment.
  uint64_t offset;
} allotment_plan_buffer;

// The functions of a source for elastic pools, beside `reserve` and `release`: they reserve addresses without memory,
// and commit memory to pages of them. `context` is that of the source. Spans are multiples of the pool's page
// size and lie in one range. A function that does not return `ALLOTMENT_GRANTED` has changed nothing:
// `ALLOTMENT_DECLINED` where memory or addresses are missing, any other number for a failure, which the error of the
// call names.
//
// Set all of it to 0 first. Later versions add fields at the end.
typedef struct allotment_page_source {
  // The size of this structure in bytes, as the caller was compiled: `sizeof(allotment_page_source)`.
  size_t struct_size;
  // The smallest page size in bytes, a power of two. Page sizes of pools are multiples of it.
  uint64_t granule;
  // The page size in bytes of pools that set none; 0: `granule`.
  uint64_t page_size;
  // Reserves exactly `bytes` addresses without memory at a multiple of `page_size`, the pool's, and stores the first
  // one.
  int32_t (*reserve_addresses)(void *context, uint64_t bytes, uint64_t page_size, uint64_t *address);
  // Takes a range of addresses back. No page of it is committed.
  void (*release_addresses)(void *context, uint64_t address, uint64_t bytes);
  // Commits memory to all pages of a span, of which none is committed. Its content is undefined.
  int32_t (*commit)(void *context, uint64_t address, uint64_t bytes);
  // Takes the memory of all pages of a span, all of which are committed.
  int32_t (*decommit)(void *context, uint64_t address, uint64_t bytes);
  // Moves the memory of the committed pages of a span to those at `to`, of which none is committed; the content is
  // undefined then. May be null: the pool decommits and commits.
  int32_t (*move_pages)(void *context, uint64_t address, uint64_t bytes, uint64_t to);
  // Reads committed memory, for a pause that keeps its content. May be null.
  int32_t (*read)(void *context, uint64_t address, void *into, size_t bytes);
  // Writes committed memory, for a resume. May be null.
  int32_t (*write)(void *context, uint64_t address, const void *from, size_t bytes);
} allotment_page_source;

// How much a source could grant in one region at one moment. A function of the source changes the fields that it
// knows.
typedef struct allotment_headroom {
  // Regions of up to this many bytes are granted for sure, at exactly the requested length. 0 at first.
  uint64_t guaranteed;
  // Longer regions than this are declined for sure until something is released. `UINT64_MAX` at first.
  uint64_t maximum;
  // Not 0: released bytes add to `guaranteed`. 0 at first.
  int32_t grants_released;
  // Not 0: each grant starts where the last one ended. 0 at first.
  int32_t is_sequential;
} allotment_headroom;

// The type of the option `headroom`.
typedef void (*allotment_headroom_function)(void *context, struct allotment_headroom *headroom);

// Options of a pool. Call `allotment_options_init` first, then change fields. A pool copies all that the options point
// to. Later versions add fields at the end, of which 0 is the default.
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
  // How long a refused request waits for another thread's free, in seconds, up to a year. 0 by default. What is
  // freed goes to the request that has waited longest and fits.
  double wait_seconds;
  // Remainders from this fraction of the limit on are split off; 0, the default, means 128 MiB.
  double fragmentation_fraction;
  // Not 0: allocations are recorded under the tag of their thread, `allotment_set_tag`. 0 by default.
  int32_t owner_tags;
  // Not 0: each thread keeps small chunks for its next requests, without the lock. Without effect with guard mode or
  // owner tags. 0 by default.
  int32_t thread_caches;
  // Not 0: guard mode, over memory of this process: it finds writes past an end and after a free. 0 by default.
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
  // A static plan that the pool follows; null, the default, for none. Each request of the planned size, in the order
  // of the plan, which begins again at its end, gets its planned place in one arena; other requests are served as in
  // any pool. Not with guard mode, an elastic pool, or thread caches.
  const struct allotment_plan_buffer *plan;
  // The number of buffers in `plan`.
  size_t plan_length;
  // The alignment of the plan in bytes, a power of two from 256 on: offsets are multiples of it, and sizes are
  // rounded up to it. 0, the default, means 256.
  uint64_t plan_alignment;
  // Functions of the caller's source for an elastic pool; null, the default: it has whole regions only. For
  // `allotment_pool_create`, with `elastic`.
  const struct allotment_page_source *pages;
  // Not 0: the memory of the caller's source is memory of this process, which the pool may read and write, as guard
  // mode does. 0 by default. For `allotment_pool_create`.
  int32_t source_is_host_memory;
  // After about this many seconds without an allocation and a free, a thread of the library trims the pool, once
  // until its next use. 0, the default: never. The thread ends some time after the last such pool;
  // the shared library stays loaded after `dlclose`.
  double idle_trim_seconds;
  // A function of the caller's source that says how much it could grant, for advice after refusals and for
  // `allotment_can_allocate`; null, the default: it is not known. `context` is that of the source. Several threads
  // may call it at once, also while one is in another function of the source. A source that grants more than
  // requested must leave it null. For `allotment_pool_create`.
  allotment_headroom_function headroom;
} allotment_options;

// A source of regions: functions that a pool calls from one thread at a time, which may be another one each time, and
// never while it holds its lock. They may free memory of the pool, and allocate what fits without growth; calls that
// wait for the source return `ALLOTMENT_INSIDE_SOURCE`. They must not throw, jump out, or destroy a pool. A forked child
// calls none of them for a pool of its parent.
typedef struct allotment_source {
  // Passed to the functions. They may be called from any thread.
  void *context;
  // Reserves at least `bytes` bytes, a multiple of 256, at a multiple of `alignment`. Stores the first byte and the
  // length, both multiples of 256, and returns `ALLOTMENT_GRANTED`; or returns `ALLOTMENT_DECLINED`, and the pool
  // may try with fewer bytes; or any other number if it failed, which the error of the request names. A grant that
  // is too short, or above the limit, is released at once.
  int32_t (*reserve)(void *context,
                     uint64_t bytes,
                     uint64_t alignment,
                     uint64_t *address,
                     uint64_t *granted_bytes);
  // Takes a region back: a former grant, or the span of several that were joined. An elastic pool calls neither
  // `reserve` nor `release`: both may be null for it.
  void (*release)(void *context, uint64_t address, uint64_t bytes);
  // Called once, after all other calls, when the pool has ended; regions that were not released have live
  // allocations. May be null.
  void (*destroy)(void *context);
  // Not 0: a grant that starts where another ends may be joined to it.
  int32_t joins_regions;
  // Not 0: grants may start at address 0, as offsets on a device do. Zero bytes then have the address
  // `UINT64_MAX`.
  int32_t starts_at_zero;
} allotment_source;

// An event of a pool.
typedef struct allotment_event {
  // Nanoseconds since the recording began.
  uint64_t nanoseconds;
  // The number of the allocation in its pool; 0 for a refusal.
  uint64_t id;
  // The requested bytes.
  uint64_t bytes;
  // `ALLOTMENT_EVENT_ALLOCATED`, `ALLOTMENT_EVENT_FREED` or `ALLOTMENT_EVENT_REFUSED`.
  uint32_t kind;
  // The thread of the call, numbered from 0 on.
  uint32_t thread;
  // The tag of that thread, `allotment_set_tag`; null for none. Valid until the recording ends.
  const char *tag;
} allotment_event;

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
  // `reserved` - `in_use`; 0 in a paused pool.
  uint64_t free;
  // The size of the largest free chunk; in an elastic pool, of the largest request that its memory serves.
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
  // The number of regions ever granted, or of ranges of addresses.
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

// Marks this process as a forked child: pools of its parent return `ALLOTMENT_FORKED` from then on, and release
// nothing. Call it in the child before any other call, for instance by `pthread_atfork`.
void allotment_entered_child(void);

// Allocates at least `bytes` bytes at a multiple of 256, and stores the allocation. On failure, as in all functions
// that allocate, nothing is stored.
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

// Allocates like `allotment_allocate_aligned`, under a tag that reports name, in every pool; null for the thread's
// own. Copied.
//
// # Safety
// `pool` is a pool; `tag` is null or ends with a null byte; `allocation` can be written.
enum allotment_status allotment_allocate_tagged(const struct allotment_pool *pool,
                                                uint64_t bytes,
                                                uint64_t alignment,
                                                const char *tag,
                                                struct allotment_allocation *allocation);

// Allocates without growth and without waiting, even for the pool's lock; `ALLOTMENT_NOT_NOW` if that is not enough,
// or if an older request waits for memory and could have what is free.
//
// # Safety
// `pool` is a pool; `allocation` can be written.
enum allotment_status allotment_try_allocate(const struct allotment_pool *pool,
                                             uint64_t bytes,
                                             uint64_t alignment,
                                             struct allotment_allocation *allocation);

// Frees the allocation at `address`, from any thread. The address of zero bytes does nothing.
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

// Frees exactly this allocation without waiting, even for the pool's lock; `ALLOTMENT_NOT_NOW` if another thread holds
// it.
//
// # Safety
// `pool` is a pool; `allocation` points to an allocation.
enum allotment_status allotment_try_free(const struct allotment_pool *pool,
                                         const struct allotment_allocation *allocation);

// Frees exactly this allocation without waiting: if another thread holds the pool's lock, the next call on the pool
// frees it. For finalisers, and code that must not wait. An allocation that was freed before is no error.
//
// # Safety
// `pool` is a pool; `allocation` points to an allocation.
enum allotment_status allotment_free_deferred(const struct allotment_pool *pool,
                                              const struct allotment_allocation *allocation);

// Changes the allocation at `address` to `bytes` bytes, at least 1, without moving it: grows into the free memory
// after it, or gives its tail back. Stores it as it is then, under the same number. `ALLOTMENT_NO_ROOM` if it cannot
// grow that far, or a limit of a scope forbids it: it is as it was, and nothing is stored.
//
// # Safety
// `pool` is a pool; `allocation` is null or can be written.
enum allotment_status allotment_resize(const struct allotment_pool *pool,
                                       uint64_t address,
                                       uint64_t bytes,
                                       struct allotment_allocation *allocation);

// Stores the start of the region that contains `address`, and the distance of `address` from it.
// `ALLOTMENT_NOT_ALLOCATED` if no region of the pool does.
//
// # Safety
// `pool` is a pool; `region` and `offset` are null or can be written.
enum allotment_status allotment_region_of(const struct allotment_pool *pool,
                                          uint64_t address,
                                          uint64_t *region,
                                          uint64_t *offset);

// Sets the tag of this thread, under which pools with `owner_tags` record its allocations; null for none. Copied.
// Without effect in a destructor at the very end of a thread.
//
// # Safety
// `tag` is null or ends with a null byte.
enum allotment_status allotment_set_tag(const char *tag);

// Stores the current limit in bytes.
//
// # Safety
// `pool` is a pool; `limit` can be written.
enum allotment_status allotment_limit(const struct allotment_pool *pool, uint64_t *limit);

// Changes the limit in bytes. It cannot be lower than the reserved bytes: that is `ALLOTMENT_INVALID_ARGUMENT`. With
// `trim` not 0, wholly free regions are released first if that is enough, or as many free pages of an elastic pool as
// that takes; if its source does not take them, that is `ALLOTMENT_SOURCE_FAILED`. On failure the limit stays; free
// pages may have gone back. Stores the released bytes.
//
// # Safety
// `pool` is a pool; `released` is null or can be written.
enum allotment_status allotment_set_limit(const struct allotment_pool *pool,
                                          uint64_t limit,
                                          int32_t trim,
                                          uint64_t *released);

// Stores whether growth is on: 1 or 0.
//
// # Safety
// `pool` is a pool; `growth` can be written.
enum allotment_status allotment_growth(const struct allotment_pool *pool, int32_t *growth);

// Turns growth on or off for later regions. Without growth the next region takes all that the limit leaves.
//
// # Safety
// `pool` is a pool.
enum allotment_status allotment_set_growth(const struct allotment_pool *pool,
                                           int32_t growth);

// Releases all wholly free regions, or all free pages of an elastic pool, and stores their bytes. Over memory of this
// process, physical pages of other free memory go back to the system. If the source does not take some pages of an
// elastic pool, that is `ALLOTMENT_SOURCE_FAILED`: what it took is gone, and the last error has its bytes.
//
// # Safety
// `pool` is a pool; `released` is null or can be written.
enum allotment_status allotment_trim(const struct allotment_pool *pool,
                                     uint64_t *released);

// Gives memory back until at most `target` bytes are reserved, as far as free memory allows, and stores the released
// bytes. An elastic pool gives back as many pages as that takes, and fails as `allotment_trim` does; another one all
// wholly free regions.
//
// # Safety
// `pool` is a pool; `released` is null or can be written.
enum allotment_status allotment_trim_to(const struct allotment_pool *pool,
                                        uint64_t target,
                                        uint64_t *released);

// Gives all memory of an elastic pool back, that of its allocations, too, keeps the addresses, and stores the released
// bytes. Nothing may use the allocations until `allotment_resume`. Meanwhile requests return `ALLOTMENT_PAUSED`; frees
// and `allotment_pool_close` work. A pool that is paused already stays as it is, and 0 is stored.
//
// `keep` says where the content of the allocations is meanwhile: `ALLOTMENT_KEEP_NOTHING`, `ALLOTMENT_KEEP_IN_MEMORY`,
// or `ALLOTMENT_KEEP_IN_FILE` with the path of a file, which belongs to the pool until the resume; `path` is null
// otherwise. The file is a new one that only its owner may open; it replaces a file at `path` as the last step.
//
// On failure the pool is not paused and a file at `path` stays as it is, with one exception: if the source does not take
// all memory and then does not return it either, or not the content, the pool is paused and keeps the content. Ask
// `allotment_is_paused` after `ALLOTMENT_SOURCE_FAILED` and `ALLOTMENT_FILE_FAILED`. After a failure with
// `ALLOTMENT_KEEP_NOTHING` the content of the allocations is undefined.
//
// # Safety
// `pool` is a pool; `path` is null or ends with a null byte; `released` is null or can be written.
enum allotment_status allotment_pause(const struct allotment_pool *pool,
                                      int32_t keep,
                                      const char *path,
                                      uint64_t *released);

// Fetches the memory of a paused pool back, at the same addresses and with the kept content, and stores its bytes.
// Does nothing if the pool is not paused. On failure, as `ALLOTMENT_OUT_OF_MEMORY` of a source with too little memory,
// the pool stays paused and the content is kept.
//
// # Safety
// `pool` is a pool; `committed` is null or can be written.
enum allotment_status allotment_resume(const struct allotment_pool *pool,
                                       uint64_t *committed);

// Stores whether a pool is paused: 1 or 0.
//
// # Safety
// `pool` is a pool; `paused` can be written.
enum allotment_status allotment_is_paused(const struct allotment_pool *pool, int32_t *paused);

// Sets all options to their defaults, with a limit in bytes. `struct_size` is `sizeof(allotment_options)`.
//
// # Safety
// `options` points to that many writable bytes.
enum allotment_status allotment_options_init(struct allotment_options *options,
                                             size_t struct_size,
                                             uint64_t limit);

// Searches for the smallest arena that holds `length` buffers, those that live at the same time apart, and stores the
// `offset` of each; on failure all offsets are as they were. `alignment` 0 means 256, the smallest one of plans that
// pools follow.
//
// The search ends when no arena is smaller, after `seconds`, or after `steps` steps, each about the placing of one
// buffer; 0 steps are no bound. It makes a first plan in any case. With enough time the same steps find the same plan
// on every machine. Stores the bytes of the arena, and the most bytes that live at once: no arena is smaller.
//
// # Safety
// `buffers` points to `length` buffers that can be written; `arena` and `lower_bound` are null or can be written.
enum allotment_status allotment_plan_search(struct allotment_plan_buffer *buffers,
                                            size_t length,
                                            uint64_t alignment,
                                            double seconds,
                                            uint64_t steps,
                                            uint64_t *arena,
                                            uint64_t *lower_bound);

// Creates a pool over a source of the caller, and stores it; null on failure. The structure is copied. The pool calls
// `destroy` of the source at its end; if this call fails, it does not, and the source stays the caller's.
//
// # Safety
// `options` and `source` point to such structures, and the functions in them keep their contract; `pool` can be
// written.
enum allotment_status allotment_pool_create(const struct allotment_options *options,
                                            const struct allotment_source *source,
                                            struct allotment_pool **pool);

// Creates a pool over memory of this process, and stores it; null on failure. The memory is readable, writable, and
// zero at first. Reserving takes address space only.
//
// # Safety
// `options` points to options; `pool` can be written.
enum allotment_status allotment_pool_create_host(const struct allotment_options *options,
                                                 struct allotment_pool **pool);

// Creates a pool over made-up addresses with nothing behind them, and stores it; null on failure. Regions lie `gap`
// bytes apart, a multiple of 256.
//
// # Safety
// `options` points to options; `pool` can be written.
enum allotment_status allotment_pool_create_address_space(const struct allotment_options *options,
                                                          uint64_t gap,
                                                          struct allotment_pool **pool);

// Destroys a pool: its wholly free regions go back to the source. A region with a live allocation stays reserved for
// ever, as its user may still access it. Its scopes end, and are still to be closed. Null is accepted. The pool is gone
// also on failure, which is `ALLOTMENT_INTERNAL`.
//
// The call waits for calls that sources of other threads are in: those of the pool's own source and, after
// `allotment_pool_join`, those of its siblings' sources. The caller holds no lock for which such a function may wait,
// and no function of a source calls it. In a forked child the pool of a parent releases nothing, and no function of its
// source is called.
//
// # Safety
// `pool` is a pool that no thread uses now or later, or null.
enum allotment_status allotment_pool_destroy(struct allotment_pool *pool);

// Closes a pool: it refuses new requests, and releases its regions once the last allocation is freed.
//
// # Safety
// `pool` is a pool.
enum allotment_status allotment_pool_close(const struct allotment_pool *pool);

// Begins a recording of at most `capacity` events, at least 1, and stores it; null on failure. Its first events are
// the live allocations. `keep` is `ALLOTMENT_KEEP_LAST_EVENTS` or `ALLOTMENT_KEEP_FIRST_EVENTS`. A pool may have
// several recordings. Allocations of zero bytes are no events.
//
// # Safety
// `pool` is a pool; `recording` can be written.
enum allotment_status allotment_recording_begin(const struct allotment_pool *pool,
                                                size_t capacity,
                                                int32_t keep,
                                                struct allotment_recording **recording);

// Removes up to `capacity` events, the oldest first, and stores them and their number: fewer than `capacity` if there
// are no more now. It works after the end of the pool, too.
//
// # Safety
// `recording` is a recording; `events` points to `capacity` writable events; `count` can be written.
enum allotment_status allotment_recording_take(const struct allotment_recording *recording,
                                               struct allotment_event *events,
                                               size_t capacity,
                                               size_t *count);

// Stores how many events a full recording dropped, and how many requests were refused since it began, dropped ones
// included.
//
// # Safety
// `recording` is a recording; `lost` and `refused` are null or can be written.
enum allotment_status allotment_recording_counts(const struct allotment_recording *recording,
                                                 uint64_t *lost,
                                                 uint64_t *refused);

// Ends a recording and frees it, with the events that were not taken and all tags, also on failure: a forked child
// gets `ALLOTMENT_FORKED` for a recording of its parent. Null is accepted.
//
// # Safety
// `recording` is a recording that no thread uses now or later, or null.
enum allotment_status allotment_recording_end(struct allotment_recording *recording);

// Stores the counters. `struct_size` is `sizeof(allotment_stats)`: a program that was compiled against an earlier
// version gets the fields of that version, and fields that this library does not know are 0.
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
// text with `allotment_string_free`; null on failure.
//
// # Safety
// `pool` is a pool; `json` can be written.
enum allotment_status allotment_snapshot_json(const struct allotment_pool *pool,
                                              char **json);

// Stores why a request of `bytes` bytes would be refused now, as JSON: the figures of the pool, the verdict and the
// advice; `null` if it would be served. The caller frees the text with `allotment_string_free`; null on failure.
//
// # Safety
// `pool` is a pool; `json` can be written.
enum allotment_status allotment_explain_json(const struct allotment_pool *pool,
                                             uint64_t bytes,
                                             char **json);

// Stores whether a request of `bytes` bytes would be served now, as far as the source says what it has: 1 or 0. A
// closed pool serves nothing.
//
// # Safety
// `pool` is a pool; `served` can be written.
enum allotment_status allotment_can_allocate(const struct allotment_pool *pool,
                                             uint64_t bytes,
                                             int32_t *served);

// Checks all memory of a pool in guard mode, and stores the damage that no call has reported, as a JSON list: of each
// the `place`, the `address`, the `requested` bytes and the `id` of the allocation, the `offset` of the first damaged
// byte, and a `text`. Damage to live allocations is in it each time. The caller frees the text with
// `allotment_string_free`; null on failure.
//
// # Safety
// `pool` is a pool; `json` can be written.
enum allotment_status allotment_inspect_json(const struct allotment_pool *pool,
                                             char **json);

// Opens a scope inside this thread's current one, and stores it; null on failure. Later allocations of this thread
// count for it. With `shared` not 0, it counts those of all threads, in scopes that they open meanwhile, too; not
// those of a thread in a scope that it opened before. `limit` bounds the bytes that it holds; `ALLOTMENT_NO_LIMIT` for
// no limit. The name is copied. In a destructor at the very end of a thread only a shared scope can be opened.
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

// Changes the limit of an open scope; `ALLOTMENT_NO_LIMIT` removes it. A scope that holds more gets nothing more until
// it holds less.
//
// # Safety
// `scope` is a scope.
enum allotment_status allotment_scope_set_limit(const struct allotment_scope *scope,
                                                uint64_t limit);

// Closes a scope from any thread, stores its final figures, and frees it, also on failure. Its live allocations keep
// counting for the enclosing scopes, and scopes inside it stay open. Null is accepted.
//
// # Safety
// `scope` is a scope, which is not used afterwards, or null; `figures` is null or can be written.
enum allotment_status allotment_scope_close(struct allotment_scope *scope,
                                            struct allotment_scope_stats *figures);

// Makes `pool` a sibling of `other`, and of the siblings that `other` has: pools over sources that share one memory.
// Before one of them refuses a request that its source declined, the others release wholly free regions, the largest
// first. Pools without `trim_on_oom` keep theirs. It lasts until the end of the pools. A pool that has siblings
// already cannot join others.
//
// # Safety
// `pool` and `other` are pools.
enum allotment_status allotment_pool_join(const struct allotment_pool *pool,
                                          const struct allotment_pool *other);

// Returns the text of this thread's last error, empty before the first; calls that succeed leave it. The library owns
// it: it is valid until the thread's next failing call, or its end. Where a destructor of `pthread_key_create` runs
// at the very end of a thread, only the result of a call tells what happened, and the text says so.
const char *allotment_last_error(void);

// Returns the refusal of this thread's last error as JSON, which the caller frees with `allotment_string_free`: the
// figures of the pool, the verdict and the advice. Null if that error was no refused request, and at the very end of a
// thread.
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
