// TensorFlow's BFCAllocator behind a few C functions, so that a test can hold ours against it.
//
// The allocator gets made-up memory from a bump source, and every call of that source is written down.
// Nothing is printed: a request that cannot be served is an ordinary answer here.

#include <sys/mman.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "absl/base/log_severity.h"
#include "absl/log/globals.h"
#include "xla/tsl/framework/allocator.h"
#include "xla/tsl/framework/bfc_allocator.h"

namespace {

// Address space a source can hand out before it is used up. It only ever moves forward, but the allocator
// doubles what it asks for until the limit cuts it, and its growth step is spent after 42 doublings.
constexpr uint64_t kSpan = uint64_t{16} << 40;

// A request of one event is refused less often than that, unless the allocator asks for ever.
constexpr uint64_t kEndless = 2000;

constexpr int64_t kNowhere = -1;

}  // namespace

// These four are mirrored, field by field, in tests/support/oracle.rs.
extern "C" {

struct Setup {
  uint64_t limit;
  uint64_t cap;  // Bytes the source has out at most.
  uint64_t gap;  // Bytes between two grants.
  uint64_t largest;  // Bytes of one grant at most.
  uint64_t refused;  // Bit n: the source refuses the request of number n, from 0.
  double fraction;
  bool joins;
  bool growth;
  bool trim_on_oom;
};

struct Event {
  uint64_t bytes;
  uint32_t slot;
  uint32_t allocates;  // 0 frees what the slot holds.
};

// The state after an event. `offset` and `chunk` are of what was allocated or freed.
struct Step {
  int64_t offset;
  int64_t chunk;
  int64_t num_allocs;
  int64_t in_use;
  int64_t peak_in_use;
  int64_t largest;
  int64_t reserved;
  int64_t peak_reserved;
  uint64_t calls;
};

// One call of the source. A refusal has no offset.
struct Call {
  uint64_t bytes;
  int64_t offset;
  uint64_t releases;  // 0 reserves.
};

}  // extern "C"

namespace {

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "bfc_driver: %s\n", what);
  std::abort();
}

// Hands out each span where the last one ended, plus a gap. Nobody can touch the memory behind it.
class BumpSource : public tsl::SubAllocator {
 public:
  explicit BumpSource(const Setup& setup)
      : SubAllocator({}, {}),
        cap_(setup.cap),
        gap_(setup.gap),
        largest_(setup.largest),
        refused_(setup.refused),
        joins_(setup.joins) {
    constexpr int kReservedOnly = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* base = mmap(nullptr, kSpan, PROT_NONE, kReservedOnly, -1, 0);
    if (base == MAP_FAILED) Die("no address space to reserve");
    base_ = static_cast<char*>(base);
  }

  ~BumpSource() override { munmap(base_, kSpan); }

  void* Alloc(size_t, size_t bytes, size_t* received) override {
    const uint64_t number = asked_++;
    const bool on_order = number < 64 && (refused_ >> number & 1) != 0;
    const bool refuses = on_order || bytes > largest_ || bytes > cap_ - used_;
    if (refuses && ++refusals_ < kEndless) {
      *received = 0;
      calls_.push_back({bytes, kNowhere, 0});
      return nullptr;
    }
    if (bytes > kSpan - next_) Die("the source's address space is used up");
    const uint64_t offset = next_;
    calls_.push_back({bytes, static_cast<int64_t>(offset), 0});
    next_ = offset + bytes + gap_;
    used_ += bytes;
    *received = bytes;
    return base_ + offset;
  }

  void Free(void* address, size_t bytes) override {
    used_ -= bytes;
    calls_.push_back({bytes, OffsetOf(address), 1});
  }

  // The allocator may ask for the same bytes for ever. It gets them in the end, and the record shows it.
  void BeginEvent() { refusals_ = 0; }

  bool SupportsCoalescing() const override { return joins_; }

  int64_t OffsetOf(const void* address) const {
    return address == nullptr ? kNowhere : static_cast<const char*>(address) - base_;
  }

  const std::vector<Call>& calls() const { return calls_; }

 private:
  const uint64_t cap_;
  const uint64_t gap_;
  const uint64_t largest_;
  const uint64_t refused_;
  const bool joins_;
  char* base_;
  uint64_t next_ = 0;
  uint64_t used_ = 0;
  uint64_t asked_ = 0;
  uint64_t refusals_ = 0;
  std::vector<Call> calls_;
};

tsl::BFCAllocator::Options OptionsOf(const Setup& setup) {
  tsl::BFCAllocator::Options options;
  options.allow_growth = setup.growth;
  options.allow_retry_on_failure = false;
  options.garbage_collection = setup.trim_on_oom;
  options.fragmentation_fraction = setup.fraction;
  return options;
}

}  // namespace

extern "C" {

struct Driver {
  explicit Driver(const Setup& setup)
      : source(new BumpSource(setup)),
        allocator(std::unique_ptr<tsl::SubAllocator>(source), setup.limit, "oracle", OptionsOf(setup)) {}

  void* Allocate(uint64_t bytes) {
    source->BeginEvent();
    // No retry, and so no report either: it walks every chunk, and nobody reads it.
    const tsl::AllocationAttributes attributes(/*retry_on_failure=*/false,
                                               /*allocation_will_be_logged=*/false, nullptr);
    return allocator.AllocateRaw(tsl::Allocator::kAllocatorAlignment, bytes, attributes);
  }

  // What the slots hold, from one call to the next.
  std::vector<void*>& Slots(size_t slots) {
    if (held.size() < slots) held.resize(slots, nullptr);
    return held;
  }

  void Play(const Event& event, void*& slot) {
    if (event.allocates) {
      slot = Allocate(event.bytes);
    } else {
      allocator.DeallocateRaw(slot);
      slot = nullptr;
    }
  }

  BumpSource* source;  // The allocator owns it.
  tsl::BFCAllocator allocator;
  std::vector<void*> held;
};

Driver* bfc_create(const Setup* setup) {
  absl::SetMinLogLevel(absl::LogSeverityAtLeast::kFatal);
  return new Driver(*setup);
}

void bfc_destroy(Driver* driver) { delete driver; }

// Plays `count` events over `slots` slots and fills one step for each; if steps are expected, up to the first that
// is another: past that one the program may be none that the allocator returns from. Returns the number of steps.
size_t bfc_run(Driver* driver, const Event* events, size_t count, size_t slots, const Step* expected,
               Step* steps) {
  std::vector<void*>& held = driver->Slots(slots);
  for (size_t i = 0; i < count; ++i) {
    const Event& event = events[i];
    void*& slot = held[event.slot];
    if (event.allocates) slot = driver->Allocate(event.bytes);
    Step& step = steps[i];
    step.offset = driver->source->OffsetOf(slot);
    step.chunk = slot == nullptr ? 0 : static_cast<int64_t>(driver->allocator.AllocatedSize(slot));
    if (!event.allocates) {
      driver->allocator.DeallocateRaw(slot);
      slot = nullptr;
    }
    const tsl::AllocatorStats stats = *driver->allocator.GetStats();
    step.num_allocs = stats.num_allocs;
    step.in_use = stats.bytes_in_use;
    step.peak_in_use = stats.peak_bytes_in_use;
    step.largest = stats.largest_alloc_size;
    step.reserved = stats.pool_bytes.value_or(kNowhere);
    step.peak_reserved = stats.peak_pool_bytes.value_or(kNowhere);
    step.calls = driver->source->calls().size();
    static_assert(std::has_unique_object_representations_v<Step>, "no padding to compare");
    if (expected != nullptr && std::memcmp(&step, &expected[i], sizeof(Step)) != 0) return i + 1;
  }
  return count;
}

// Plays the events and nothing else; returns the nanoseconds that took.
uint64_t bfc_replay(Driver* driver, const Event* events, size_t count, size_t slots) {
  std::vector<void*>& held = driver->Slots(slots);
  const auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < count; ++i) driver->Play(events[i], held[events[i].slot]);
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
}

// The same, with the clock read after each event: fills in the nanoseconds of each, one reading included.
void bfc_clock(Driver* driver, const Event* events, size_t count, size_t slots, uint64_t* nanoseconds) {
  std::vector<void*>& held = driver->Slots(slots);
  auto before = std::chrono::steady_clock::now();
  for (size_t i = 0; i < count; ++i) {
    driver->Play(events[i], held[events[i].slot]);
    const auto now = std::chrono::steady_clock::now();
    nanoseconds[i] = std::chrono::nanoseconds(now - before).count();
    before = now;
  }
}

// Allocate and free one chunk, from any thread: the allocator has a lock, and nothing else of the driver changes.
void* bfc_allocate(Driver* driver, uint64_t bytes) {
  const tsl::AllocationAttributes attributes(/*retry_on_failure=*/false,
                                             /*allocation_will_be_logged=*/false, nullptr);
  return driver->allocator.AllocateRaw(tsl::Allocator::kAllocatorAlignment, bytes, attributes);
}

void bfc_free(Driver* driver, void* address) { driver->allocator.DeallocateRaw(address); }

// Asks for the counters again and again; returns the nanoseconds that took.
uint64_t bfc_ask(Driver* driver, size_t times) {
  const auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < times; ++i) {
    const auto stats = driver->allocator.GetStats();
    asm volatile("" : : "g"(&stats) : "memory");  // Somebody could look at them.
  }
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
}

size_t bfc_call_count(const Driver* driver) { return driver->source->calls().size(); }

// Copies the calls of the source so far, bfc_call_count of them.
void bfc_calls(const Driver* driver, Call* calls) {
  for (const Call& call : driver->source->calls()) *calls++ = call;
}

}  // extern "C"
