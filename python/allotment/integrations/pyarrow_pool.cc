// An arrow::MemoryPool over a pool of allotment. `pyarrow_build.py` compiles it against the installed pyarrow.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "arrow/memory_pool.h"
#include "arrow/status.h"

// Declared in arrow/python/common.h, which needs Python's headers.
namespace arrow::py {
void set_default_memory_pool(MemoryPool* pool);
MemoryPool* get_memory_pool();
}  // namespace arrow::py

namespace {

// The table and the guest of rust/bindings/src/guests/functions.rs.
struct Functions {
  void* (*allocate)(const void* guest, size_t bytes, size_t alignment);
  bool (*resize_in_place)(const void* guest, void* data, size_t bytes);
  void (*free)(const void* guest, void* data);
  const char* (*last_refusal)();
};

// The data of all empty buffers: Arrow needs an address, and pools have no chunk of zero bytes.
alignas(256) uint8_t no_data[1];

// Arrow's counters are of requested bytes; the pool's own are of chunks.
class Counters {
 public:
  void Add(int64_t bytes) {
    total_ += bytes;
    ++allocations_;
    int64_t live = live_ += bytes;
    int64_t peak = peak_;
    while (peak < live && !peak_.compare_exchange_weak(peak, live)) {
    }
  }
  void Remove(int64_t bytes) { live_ -= bytes; }
  void Change(int64_t from, int64_t to) {
    Remove(from);
    Add(to);
  }
  int64_t live() const { return live_; }
  int64_t peak() const { return peak_; }
  int64_t total() const { return total_; }
  int64_t allocations() const { return allocations_; }

 private:
  std::atomic<int64_t> live_{0}, peak_{0}, total_{0}, allocations_{0};
};

class Pool final : public arrow::MemoryPool {
 public:
  Pool(const Functions* functions, const void* guest) : functions_(functions), guest_(guest) {}

  using arrow::MemoryPool::Allocate;
  using arrow::MemoryPool::Free;
  using arrow::MemoryPool::Reallocate;

  arrow::Status Allocate(int64_t size, int64_t alignment, uint8_t** out) override {
    ARROW_RETURN_NOT_OK(Take(size, alignment, out));
    counters_.Add(size);
    return arrow::Status::OK();
  }

  arrow::Status Reallocate(int64_t old_size, int64_t new_size, int64_t alignment, uint8_t** data) override {
    // Data that shrinks to less than half moves, so that its chunk does not stay much too large.
    bool may_stay = *data != no_data && new_size > 0 && new_size >= old_size / 2;
    if (!may_stay || !functions_->resize_in_place(guest_, *data, static_cast<size_t>(new_size))) {
      uint8_t* moved;
      ARROW_RETURN_NOT_OK(Take(new_size, alignment, &moved));
      std::memcpy(moved, *data, static_cast<size_t>(std::min(old_size, new_size)));
      GiveBack(*data);
      *data = moved;
    }
    counters_.Change(old_size, new_size);
    return arrow::Status::OK();
  }

  void Free(uint8_t* data, int64_t size, int64_t) override {
    GiveBack(data);
    counters_.Remove(size);
  }

  int64_t bytes_allocated() const override { return counters_.live(); }
  int64_t max_memory() const override { return counters_.peak(); }
  int64_t total_bytes_allocated() const override { return counters_.total(); }
  int64_t num_allocations() const override { return counters_.allocations(); }
  std::string backend_name() const override { return "allotment"; }

 private:
  arrow::Status Take(int64_t size, int64_t alignment, uint8_t** out) {
    if (size < 0) return arrow::Status::Invalid("negative malloc size");
    if (size == 0) {
      *out = no_data;
      return arrow::Status::OK();
    }
    void* data = functions_->allocate(guest_, static_cast<size_t>(size), static_cast<size_t>(alignment));
    if (data == nullptr) return arrow::Status::OutOfMemory(functions_->last_refusal());
    *out = static_cast<uint8_t*>(data);
    return arrow::Status::OK();
  }

  void GiveBack(uint8_t* data) {
    if (data != no_data) functions_->free(guest_, data);
  }

  const Functions* functions_;
  const void* guest_;
  Counters counters_;
};

}  // namespace

// Creates a pool. It is never destroyed: buffers refer to it until the end of the process.
extern "C" __attribute__((visibility("default"))) void* allotment_create(const Functions* functions,
                                                                         const void* guest) {
  return static_cast<arrow::MemoryPool*>(new Pool(functions, guest));
}

// Makes a pool pyarrow's default, and returns the former one.
extern "C" __attribute__((visibility("default"))) void* allotment_exchange_default(void* pool) {
  arrow::MemoryPool* former = arrow::py::get_memory_pool();
  arrow::py::set_default_memory_pool(static_cast<arrow::MemoryPool*>(pool));
  return former;
}
