// Pools on one memory: their sources say how much they could grant, and idle regions of one serve another.

#include <atomic>
#include <cassert>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "allotment.h"
#include "must.h"

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// Memory of a device that several pools share, of which each has its own offsets.
struct Device {
    std::atomic<std::uint64_t> used{0};
    std::uint64_t bytes = 24 * kMiB;
};

struct Heap {
    Device *device;
    std::uint64_t next;

    allotment_source Source() {
        allotment_source source{};
        source.context = this;
        source.reserve = [](void *self, std::uint64_t bytes, std::uint64_t, std::uint64_t *address,
                            std::uint64_t *granted) -> std::int32_t {
            auto *heap = static_cast<Heap *>(self);
            if (bytes > heap->device->bytes - heap->device->used) return ALLOTMENT_DECLINED;
            heap->device->used += bytes;
            *address = heap->next;
            *granted = bytes;
            heap->next += bytes;
            return ALLOTMENT_GRANTED;
        };
        source.release = [](void *self, std::uint64_t, std::uint64_t bytes) {
            static_cast<Heap *>(self)->device->used -= bytes;
        };
        return source;
    }
};

// Of two joins in opposite directions one succeeds, and the pools are siblings then.
void JoinsInOppositeDirections() {
    allotment_options options;
    MUST(allotment_options_init(&options, sizeof options, kMiB));
    for (int turn = 0; turn < 200; ++turn) {
        allotment_pool *pools[2];
        for (auto &pool : pools) MUST(allotment_pool_create_address_space(&options, 0, &pool));
        std::atomic<int> ready{0};
        allotment_status joined[2];
        auto join = [&](int from) {
            ++ready;
            while (ready < 2) std::this_thread::yield();
            joined[from] = allotment_pool_join(pools[from], pools[1 - from]);
        };
        std::thread other(join, 1);
        join(0);
        other.join();
        assert((joined[0] == ALLOTMENT_OK) != (joined[1] == ALLOTMENT_OK));
        assert(joined[0] == ALLOTMENT_INVALID_ARGUMENT || joined[1] == ALLOTMENT_INVALID_ARGUMENT);
        for (auto *pool : pools) MUST(allotment_pool_destroy(pool));
    }
}

}  // namespace

int main() {
    Device device;
    Heap heaps[3] = {{&device, kMiB}, {&device, kMiB}, {&device, kMiB}};
    allotment_options options;
    MUST(allotment_options_init(&options, sizeof options, 64 * kMiB));
    options.headroom = [](void *self, allotment_headroom *headroom) {
        assert(headroom->guaranteed == 0 && headroom->maximum == UINT64_MAX);
        const Device *device = static_cast<Heap *>(self)->device;
        headroom->guaranteed = headroom->maximum = device->bytes - device->used;
        headroom->grants_released = 1;
    };
    allotment_pool *pools[3];
    for (int at = 0; at < 3; ++at) {
        allotment_source source = heaps[at].Source();
        MUST(allotment_pool_create(&options, &source, &pools[at]));
    }
    // The limit allows 25 MiB, and the device has 24.
    std::int32_t served;
    MUST(allotment_can_allocate(pools[0], 25 * kMiB, &served));
    assert(served == 0);
    MUST(allotment_can_allocate(pools[0], 16 * kMiB, &served));
    assert(served == 1);
    MUST(allotment_pool_join(pools[1], pools[0]));
    MUST(allotment_pool_join(pools[2], pools[1]));
    assert(allotment_pool_join(pools[0], pools[2]) == ALLOTMENT_INVALID_ARGUMENT);
    assert(std::strstr(allotment_last_error(), "siblings already"));
    allotment_allocation one, two;
    MUST(allotment_allocate(pools[0], 10 * kMiB, &one));
    // The device has 8 MiB beside that region, and advice knows it: what it names is served, and not a byte more.
    assert(device.used == 16 * kMiB);
    assert(allotment_allocate(pools[2], 12 * kMiB, &two) == ALLOTMENT_OUT_OF_MEMORY);
    char *json = allotment_last_refusal_json();
    unsigned long long most = 0;
    const char *advice = std::strstr(json, "\"action\":\"ask_for\"");
    assert(std::strstr(json, "\"verdict\":\"source\"") && advice);
    assert(std::sscanf(advice, "\"action\":\"ask_for\",\"bytes\":%llu", &most) == 1 && most > 7 * kMiB);
    assert(allotment_allocate(pools[2], most + 1, &two) == ALLOTMENT_OUT_OF_MEMORY);
    MUST(allotment_allocate(pools[2], most, &two));
    MUST(allotment_free_allocation(pools[2], &two));
    MUST(allotment_trim(pools[2], nullptr));
    allotment_string_free(json);
    MUST(allotment_free_allocation(pools[0], &one));
    // The free region of the first pool goes back for it.
    MUST(allotment_allocate(pools[2], 12 * kMiB, &two));
    allotment_stats stats;
    MUST(allotment_stats_get(pools[0], &stats, sizeof stats));
    assert(stats.reserved == 0);
    // A sibling that ends is no sibling any more.
    MUST(allotment_pool_destroy(pools[0]));
    MUST(allotment_free_allocation(pools[2], &two));
    MUST(allotment_allocate(pools[1], 16 * kMiB, &one));
    MUST(allotment_free_allocation(pools[1], &one));
    MUST(allotment_pool_destroy(pools[1]));
    MUST(allotment_pool_destroy(pools[2]));
    assert(device.used == 0);
    JoinsInOppositeDirections();
    std::puts("the device has all its memory back");
    return 0;
}
