// Each option of a pool has its effect, which the default has not.

#include <cassert>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "allotment.h"
#include "must.h"

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

using Change = std::function<void(allotment_options &)>;

class Pool {
  public:
    // Regions of made-up addresses touch, if they are not of host memory.
    explicit Pool(const Change &change, bool is_host = false) {
        allotment_options options;
        MUST(allotment_options_init(&options, sizeof options, 64 * kMiB));
        change(options);
        MUST(is_host ? allotment_pool_create_host(&options, &pool_)
                     : allotment_pool_create_address_space(&options, 0, &pool_));
    }
    ~Pool() { allotment_pool_destroy(pool_); }
    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;

    allotment_pool *get() const { return pool_; }

    allotment_allocation Allocate(std::uint64_t bytes) const {
        allotment_allocation made;
        MUST(allotment_allocate(pool_, bytes, &made));
        return made;
    }

    void Free(const allotment_allocation &made) const { MUST(allotment_free_allocation(pool_, &made)); }

    // Whether a request is refused for lack of memory.
    bool Refuses(std::uint64_t bytes) const {
        allotment_allocation made;
        const allotment_status status = allotment_allocate(pool_, bytes, &made);
        assert(status == ALLOTMENT_OK || status == ALLOTMENT_OUT_OF_MEMORY);
        return status == ALLOTMENT_OUT_OF_MEMORY;
    }

    allotment_stats Stats() const {
        allotment_stats stats;
        MUST(allotment_stats_get(pool_, &stats, sizeof stats));
        return stats;
    }

    std::string Snapshot() const {
        char *json;
        MUST(allotment_snapshot_json(pool_, &json));
        std::string text = json;
        allotment_string_free(json);
        return text;
    }

  private:
    allotment_pool *pool_ = nullptr;
};

// Calls a check with the pool of the default, and with that of the change.
void Compare(const Change &change, bool is_host, const std::function<void(const Pool &, bool)> &check) {
    check(Pool([](allotment_options &) {}, is_host), false);
    check(Pool(change, is_host), true);
}

void RegionsAndRefusals() {
    Compare([](allotment_options &options) { options.growth = 0; }, false, [](const Pool &pool, bool is_changed) {
        pool.Allocate(1);
        assert(pool.Stats().reserved == (is_changed ? 64 * kMiB : 2 * kMiB));
    });
    Compare([](allotment_options &options) { options.joins_regions = 0; }, false,
            [](const Pool &pool, bool is_changed) {
                pool.Allocate(2 * kMiB);
                pool.Allocate(4 * kMiB);
                assert(pool.Stats().num_regions == (is_changed ? 2 : 1));
            });
    Compare(
        [](allotment_options &options) {
            options.trim_on_oom = 0;
            options.joins_regions = 0;
        },
        false, [](const Pool &pool, bool is_changed) {
            pool.Free(pool.Allocate(2 * kMiB));
            // The default has one region that grows.
            assert(pool.Refuses(63 * kMiB) == is_changed);
        });
    // Without the wait the request is refused at once.
    Compare([](allotment_options &options) { options.wait_seconds = 60; }, false,
            [](const Pool &pool, bool is_changed) {
                const allotment_allocation all = pool.Allocate(64 * kMiB);
                std::thread other([&pool, &all, is_changed] {
                    if (!is_changed) return;
                    std::this_thread::sleep_for(std::chrono::milliseconds(20));
                    pool.Free(all);
                });
                assert(pool.Refuses(64 * kMiB) != is_changed);
                other.join();
            });
    Compare(
        [](allotment_options &options) {
            options.name = "weights";
            options.limit_set_by = "--memory";
        },
        false, [](const Pool &pool, bool is_changed) {
            assert(pool.Refuses(65 * kMiB));
            char *json = allotment_last_refusal_json();
            const char *setting = is_changed ? "\"limit_set_by\":\"--memory\"" : "\"limit_set_by\":\"limit\"";
            assert(std::string(json).find(setting) != std::string::npos);
            allotment_string_free(json);
            const char *name = is_changed ? "\"name\":\"weights\"" : "\"name\":\"pool\"";
            assert(pool.Snapshot().find(name) != std::string::npos);
        });
}

void Chunks() {
    // A remainder smaller than the request stays with it.
    const auto splits = [](const Pool &pool, bool is_changed) {
        assert(pool.Allocate(2 * kMiB - 1000).size == (is_changed ? 2 * kMiB - 768 : 2 * kMiB));
    };
    Compare([](allotment_options &options) { options.policy = ALLOTMENT_POLICY_TIGHT; }, false, splits);
    Compare([](allotment_options &options) { options.fragmentation_fraction = 1e-9; }, false, splits);
    Compare([](allotment_options &options) { options.owner_tags = 1; }, false, [](const Pool &pool, bool is_changed) {
        MUST(allotment_set_tag("layer"));
        pool.Allocate(1000);
        MUST(allotment_set_tag(nullptr));
        assert((pool.Snapshot().find("\"owner\":\"layer\"") != std::string::npos) == is_changed);
    });
    Compare([](allotment_options &options) { options.thread_caches = 1; }, false,
            [](const Pool &pool, bool is_changed) {
                for (int turn = 0; turn < 100; ++turn) pool.Free(pool.Allocate(1000));
                assert((pool.Stats().num_from_thread_caches > 0) == is_changed);
            });
    Compare(
        [](allotment_options &options) {
            options.elastic = 1;
            options.page_size = 65536;
        },
        true, [](const Pool &pool, bool is_changed) {
            pool.Allocate(1000);
            assert(pool.Stats().reserved == (is_changed ? 65536 : 2 * kMiB));
        });
}

void Guards() {
    Compare([](allotment_options &options) { options.guard = 1; }, true, [](const Pool &pool, bool is_changed) {
        const allotment_allocation one = pool.Allocate(1000);
        assert(one.size == (is_changed ? 1000 : 1024));
        pool.Free(one);
        // What was freed is in quarantine.
        assert((pool.Allocate(1000).address != one.address) == is_changed);
    });
    Pool pool(
        [](allotment_options &options) {
            options.guard = 1;
            options.quarantine = 0;
        },
        true);
    const allotment_allocation one = pool.Allocate(1000);
    pool.Free(one);
    assert(pool.Allocate(1000).address == one.address);
}

}  // namespace

int main() {
    RegionsAndRefusals();
    Chunks();
    Guards();
    std::puts("every option has an effect");
    return 0;
}
