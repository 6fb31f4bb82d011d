// Owners and lifetimes: sources of pools that are not made, scopes and recordings of pools that end, idle
// trims, guard mode over memory of a source, forked children.

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>

#include "allotment.h"
#include "must.h"

static bool starts_threads = true;

// Takes the place of the C library's function, which it calls unless the program wants no thread.
extern "C" int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                              void *argument) noexcept {
    if (!starts_threads) return EAGAIN;
    static const auto next = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
    return next(thread, attributes, start, argument);
}

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

bool LastErrorHas(const char *words) { return std::strstr(allotment_last_error(), words) != nullptr; }

// Memory of the C library as a source, which counts its calls.
struct Heap {
    std::map<std::uint64_t, void *> regions;
    std::atomic<int> released{0}, ended{0};
    allotment_pool *pool = nullptr;

    allotment_source Source() {
        allotment_source source{};
        source.context = this;
        source.reserve = [](void *self, std::uint64_t bytes, std::uint64_t alignment, std::uint64_t *address,
                            std::uint64_t *granted) -> std::int32_t {
            auto *heap = static_cast<Heap *>(self);
            if (heap->pool) {
                // A call that waits for the source would wait for itself.
                std::uint64_t trimmed;
                assert(allotment_trim(heap->pool, &trimmed) == ALLOTMENT_INSIDE_SOURCE);
            }
            void *made = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
            if (!made) return ALLOTMENT_DECLINED;
            *address = reinterpret_cast<std::uintptr_t>(made);
            *granted = bytes;
            heap->regions[*address] = made;
            return ALLOTMENT_GRANTED;
        };
        source.release = [](void *self, std::uint64_t address, std::uint64_t) {
            auto *heap = static_cast<Heap *>(self);
            std::free(heap->regions.at(address));
            heap->regions.erase(address);
            ++heap->released;
        };
        source.destroy = [](void *self) { ++static_cast<Heap *>(self)->ended; };
        return source;
    }

    ~Heap() {
        for (auto &region : regions) std::free(region.second);
    }
};

allotment_options Defaults() {
    allotment_options options;
    MUST(allotment_options_init(&options, sizeof options, 64 * kMiB));
    return options;
}

void ScopesAndRecordingsEndWithTheirPool() {
    Heap heap;
    allotment_source source = heap.Source();
    allotment_options options = Defaults();
    allotment_pool *pool;
    MUST(allotment_pool_create(&options, &source, &pool));
    heap.pool = pool;
    allotment_scope *scope;
    MUST(allotment_scope_open(pool, "step", kMiB, 0, &scope));
    allotment_recording *recording;
    MUST(allotment_recording_begin(pool, 2, ALLOTMENT_KEEP_LAST_EVENTS, &recording));
    MUST(allotment_set_tag("layer"));
    allotment_allocation one;
    for (int turn = 0; turn < 3; ++turn) {
        MUST(allotment_allocate(pool, 1000, &one));
        MUST(allotment_free_allocation(pool, &one));
    }
    assert(allotment_allocate(pool, 2 * kMiB, &one) == ALLOTMENT_OUT_OF_MEMORY);
    char *json = allotment_last_refusal_json();
    assert(std::strstr(json, "\"scope\":{\"limit\":1048576,\"live\":0,\"name\":\"step\"}"));
    allotment_string_free(json);
    MUST(allotment_set_tag(nullptr));
    MUST(allotment_pool_destroy(pool));
    // Nothing keeps the pool: its regions are back and its source has ended.
    assert(heap.regions.empty() && heap.ended == 1);
    allotment_scope_stats figures;
    assert(allotment_scope_stats_get(scope, &figures) == ALLOTMENT_SCOPE_CLOSED && LastErrorHas("its pool has ended"));
    assert(allotment_scope_set_limit(scope, 1) == ALLOTMENT_SCOPE_CLOSED);
    assert(allotment_scope_close(scope, &figures) == ALLOTMENT_SCOPE_CLOSED);
    std::uint64_t lost, refused;
    MUST(allotment_recording_counts(recording, &lost, &refused));
    assert(lost == 5 && refused == 1);
    allotment_event events[3];
    std::size_t count;
    MUST(allotment_recording_take(recording, events, 1, &count));
    assert(count == 1 && events[0].kind == ALLOTMENT_EVENT_FREED && events[0].bytes == 1000 && events[0].id == 3);
    MUST(allotment_recording_take(recording, events, 3, &count));
    assert(count == 1 && events[0].kind == ALLOTMENT_EVENT_REFUSED && events[0].bytes == 2 * kMiB);
    assert(std::string(events[0].tag) == "layer" && events[0].thread == 0);
    MUST(allotment_recording_end(recording));
}

void SourcesOfPoolsThatAreNotMadeStayTheCallers() {
    Heap heap;
    allotment_source source = heap.Source();
    allotment_pool *pool;
    for (int fault = 0; fault < 4; ++fault) {
        allotment_options options = Defaults();
        options.limit = fault == 0 ? 0 : options.limit;
        options.elastic = fault == 1;
        options.guard = fault == 2;
        options.idle_trim_seconds = fault == 3 ? -1 : 0;
        assert(allotment_pool_create(&options, &source, &pool) == ALLOTMENT_INVALID_ARGUMENT);
        assert(!pool && heap.ended == 0);
    }
}

void APoolWithoutItsThreadIsNotMade() {
    Heap heap;
    allotment_source source = heap.Source();
    allotment_options options = Defaults();
    options.idle_trim_seconds = 1;
    allotment_pool *pool;
    starts_threads = false;
    assert(allotment_pool_create(&options, &source, &pool) == ALLOTMENT_NO_THREAD);
    starts_threads = true;
    assert(LastErrorHas("the system started no thread for idle_trim_seconds") && !pool && heap.ended == 0);
}

void GuardModeOverTheSourcesMemory() {
    Heap heap;
    allotment_source source = heap.Source();
    allotment_options options = Defaults();
    options.guard = 1;
    allotment_pool *pool;
    assert(allotment_pool_create(&options, &source, &pool) == ALLOTMENT_INVALID_ARGUMENT);
    assert(LastErrorHas("set source_is_host_memory"));
    options.source_is_host_memory = 1;
    MUST(allotment_pool_create(&options, &source, &pool));
    allotment_allocation one;
    MUST(allotment_allocate(pool, 100, &one));
    assert(one.size == 100);
    char *json;
    MUST(allotment_inspect_json(pool, &json));
    assert(std::string(json) == "[]");
    allotment_string_free(json);
    reinterpret_cast<char *>(static_cast<std::uintptr_t>(one.address))[100] = 1;
    MUST(allotment_inspect_json(pool, &json));
    assert(std::strstr(json, "\"place\":\"behind\"") && std::strstr(json, "\"offset\":100"));
    allotment_string_free(json);
    // The free is made, and says so.
    assert(allotment_free_allocation(pool, &one) == ALLOTMENT_DAMAGED && LastErrorHas("past its end"));
    assert(allotment_free_allocation(pool, &one) == ALLOTMENT_NOT_ALLOCATED);
    MUST(allotment_pool_destroy(pool));
    assert(heap.regions.empty() && heap.ended == 1);
}

void IdlePoolsAreTrimmed() {
    Heap heap;
    allotment_source source = heap.Source();
    allotment_options options = Defaults();
    options.idle_trim_seconds = 0.002;
    for (int turn = 0; turn < 20; ++turn) {
        allotment_pool *pool;
        MUST(allotment_pool_create(&options, &source, &pool));
        allotment_allocation one;
        MUST(allotment_allocate(pool, 1000, &one));
        MUST(allotment_free_allocation(pool, &one));
        for (int wait = 0; turn == 0 && heap.released == 0 && wait < 10000; ++wait) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        // The trim released the region, and no destroy has.
        assert(turn > 0 || heap.released == 1);
        std::this_thread::sleep_for(std::chrono::microseconds(200 * turn));
        // When it returns no thread is in the source.
        MUST(allotment_pool_destroy(pool));
        assert(heap.regions.empty() && heap.ended == turn + 1);
    }
    assert(heap.released >= 20);
}

void ForkedChildrenCallNothingOfTheSource() {
    Heap heap;
    allotment_source source = heap.Source();
    allotment_options options = Defaults();
    allotment_pool *pool;
    MUST(allotment_pool_create(&options, &source, &pool));
    allotment_allocation one;
    MUST(allotment_allocate(pool, 1000, &one));
    allotment_recording *recording;
    MUST(allotment_recording_begin(pool, 10, ALLOTMENT_KEEP_LAST_EVENTS, &recording));
    allotment_pool *ended;
    MUST(allotment_pool_create_address_space(&options, 0, &ended));
    allotment_recording *of_ended_pool;
    MUST(allotment_recording_begin(ended, 10, ALLOTMENT_KEEP_LAST_EVENTS, &of_ended_pool));
    MUST(allotment_pool_destroy(ended));
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        allotment_entered_child();
        allotment_event event;
        std::size_t count;
        std::uint64_t lost;
        bool right = allotment_free(pool, one.address) == ALLOTMENT_FORKED &&
                     allotment_free_deferred(pool, &one) == ALLOTMENT_FORKED &&
                     allotment_allocate(pool, 1, &one) == ALLOTMENT_FORKED &&
                     allotment_recording_take(recording, &event, 1, &count) == ALLOTMENT_FORKED &&
                     allotment_pool_destroy(pool) == ALLOTMENT_OK && heap.released == 0 && heap.ended == 0 &&
                     allotment_recording_take(recording, &event, 1, &count) == ALLOTMENT_FORKED &&
                     allotment_recording_counts(recording, &lost, nullptr) == ALLOTMENT_FORKED &&
                     allotment_recording_counts(of_ended_pool, &lost, nullptr) == ALLOTMENT_FORKED &&
                     // Both are freed, which the checkers of memory see.
                     allotment_recording_end(recording) == ALLOTMENT_FORKED &&
                     allotment_recording_end(of_ended_pool) == ALLOTMENT_FORKED;
        _exit(right ? 0 : 1);
    }
    int status;
    assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    MUST(allotment_recording_end(recording));
    MUST(allotment_recording_end(of_ended_pool));
    MUST(allotment_free_allocation(pool, &one));
    MUST(allotment_pool_destroy(pool));
    assert(heap.ended == 1);
}

}  // namespace

int main() {
    ScopesAndRecordingsEndWithTheirPool();
    SourcesOfPoolsThatAreNotMadeStayTheCallers();
    APoolWithoutItsThreadIsNotMade();
    GuardModeOverTheSourcesMemory();
    // A child would leak what the thread that trims idle pools owns.
    ForkedChildrenCallNothingOfTheSource();
    IdlePoolsAreTrimmed();
    std::puts("everything has ended once");
    return 0;
}
