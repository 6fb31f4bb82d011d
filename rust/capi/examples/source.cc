// A source of regions in C++, used by several threads: device memory by offsets that start at 0.

#include <cassert>
#include <cstdio>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "allotment.h"

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

void Must(allotment_status status) {
    if (status != ALLOTMENT_OK) throw std::runtime_error(allotment_last_error());
}

// A device with 32 MiB of memory, which its programs address by offsets.
class Device {
  public:
    ~Device() { assert(regions_.empty() && "every region comes back"); }

    allotment_source Source() {
        allotment_source source{};
        source.context = this;
        source.reserve = [](void *self, std::uint64_t bytes, std::uint64_t, std::uint64_t *address,
                            std::uint64_t *granted) { return static_cast<Device *>(self)->Reserve(bytes, address, granted); };
        source.release = [](void *self, std::uint64_t address, std::uint64_t) {
            static_cast<Device *>(self)->regions_.erase(address);
        };
        source.destroy = [](void *self) { static_cast<Device *>(self)->ended_ = true; };
        source.starts_at_zero = 1;
        return source;
    }

    bool ended() const { return ended_; }

  private:
    std::int32_t Reserve(std::uint64_t bytes, std::uint64_t *address, std::uint64_t *granted) {
        if (bytes > 32 * kMiB - next_) return ALLOTMENT_DECLINED;
        *address = next_;
        *granted = bytes;
        regions_.insert(next_);
        next_ += bytes;
        return ALLOTMENT_GRANTED;
    }

    std::uint64_t next_ = 0;
    std::set<std::uint64_t> regions_;
    bool ended_ = false;
};

// The pool and its end.
class Pool {
  public:
    Pool(const allotment_options &options, const allotment_source &source) {
        Must(allotment_pool_create(&options, &source, &pool_));
    }
    ~Pool() { allotment_pool_destroy(pool_); }
    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;
    allotment_pool *get() const { return pool_; }

  private:
    allotment_pool *pool_ = nullptr;
};

}  // namespace

int main() {
    Device device;
    allotment_options options;
    Must(allotment_options_init(&options, sizeof options, 64 * kMiB));
    options.policy = ALLOTMENT_POLICY_TIGHT;
    {
        Pool pool(options, device.Source());
        // The first region starts at offset 0, and zero bytes have no offset.
        allotment_allocation first, nothing;
        Must(allotment_allocate(pool.get(), 256, &first));
        Must(allotment_allocate(pool.get(), 0, &nothing));
        assert(first.address == 0 && first.size == 256 && nothing.address == UINT64_MAX);
        std::uint64_t region, offset;
        Must(allotment_region_of(pool.get(), first.address + 10, &region, &offset));
        assert(region == 0 && offset == 10);

        std::vector<std::thread> threads;
        for (int each = 0; each < 4; ++each) {
            threads.emplace_back([&pool] {
                for (int turn = 0; turn < 500; ++turn) {
                    allotment_allocation mine;
                    Must(allotment_allocate_aligned(pool.get(), 1000 + turn, 4096, &mine));
                    assert(mine.address % 4096 == 0);
                    Must(allotment_free_allocation(pool.get(), &mine));
                    // The last error is this thread's own.
                    assert(allotment_free(pool.get(), 12345) == ALLOTMENT_NOT_ALLOCATED);
                    assert(std::string(allotment_last_error()).find("0x3039") != std::string::npos);
                }
            });
        }
        for (std::thread &thread : threads) thread.join();

        // The device has less than the limit.
        allotment_allocation large;
        assert(allotment_allocate(pool.get(), 40 * kMiB, &large) == ALLOTMENT_OUT_OF_MEMORY);
        char *json = allotment_last_refusal_json();
        assert(std::string(json).find("\"verdict\":\"source\"") != std::string::npos);
        allotment_string_free(json);
        Must(allotment_free(pool.get(), first.address));
    }
    assert(device.ended());
    std::puts("the device has all its memory back");
    return 0;
}
