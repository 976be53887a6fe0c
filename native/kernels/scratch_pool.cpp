#include "kernels/scratch_pool.h"

namespace oga::kernels {

ScratchPool::Loan::Loan(ScratchPool* pool) : pool_(pool), memory_(pool->Take()) {}

void ScratchPool::Loan::Grow(size_t bytes) {
  if (bytes <= memory_.bytes) return;
  memory_ = {};  // first, so that the old and the new memory are never held together
  MemoryCharge charge(pool_->account_, bytes);
  memory_.data.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64})));
  memory_.bytes = bytes;
  memory_.charge = std::move(charge);
}

ScratchPool::Memory ScratchPool::Take() {
  const std::lock_guard lock(mutex_);
  if (kept_.empty()) {
    kept_.reserve(buffers_ + 1);
    ++buffers_;
    return {};
  }
  Memory memory = std::move(kept_.back());
  kept_.pop_back();
  return memory;
}

void ScratchPool::Return(Memory memory) noexcept {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(memory));
}

}  // namespace oga::kernels
