// Working memory of operators, kept between executions so that a steady decode step allocates nothing.
//
// Owned by whoever owns a session's operators. Any number of threads may borrow at once; each gets a buffer of its own,
// and as many buffers are kept as were ever out together. All of them are charged to the account.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "kernels/memory_account.h"

namespace oga::kernels {

class ScratchPool {
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{64}); }
  };
  struct Memory {
    std::unique_ptr<std::byte, Free> data;
    size_t bytes = 0;
    MemoryCharge charge;
  };

 public:
  // The account outlives the pool; without one nothing is charged.
  explicit ScratchPool(MemoryAccount* account = nullptr) : account_(account) {}

  // One buffer for as long as this lives.
  class Loan {
   public:
    // At least `bytes` at a multiple of 64, with anything in them. Throws std::bad_alloc, and what the account throws.
    Loan(ScratchPool* pool, size_t bytes) : Loan(pool) { Grow(bytes); }
    ~Loan() { pool_->Return(std::move(memory_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

    void* data() const { return memory_.data.get(); }

   private:
    explicit Loan(ScratchPool* pool);
    void Grow(size_t bytes);

    ScratchPool* const pool_;
    Memory memory_;
  };

 private:
  Memory Take();
  void Return(Memory memory) noexcept;

  MemoryAccount* const account_;
  std::mutex mutex_;
  std::vector<Memory> kept_;  // has room for every buffer that is out
  size_t buffers_ = 0;
};

}  // namespace oga::kernels
