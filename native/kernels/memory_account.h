// What memory of the kernels is charged to: told before it is taken and after it is given back.
//
// Whoever owns the operators of a session implements it. Any thread.
#pragma once

#include <cstddef>
#include <utility>

namespace oga::kernels {

class MemoryAccount {
 public:
  virtual ~MemoryAccount() = default;

  // Throws Error{kResourceExhausted} when there is no memory for them; then nothing may be taken.
  virtual void Charge(size_t bytes) = 0;
  virtual void Refund(size_t bytes) noexcept = 0;
};

// Bytes that are charged for as long as this lives; to nobody without an account.
class MemoryCharge {
 public:
  MemoryCharge() = default;
  MemoryCharge(MemoryAccount* account, size_t bytes) : account_(account), bytes_(bytes) {
    if (account_ != nullptr) account_->Charge(bytes_);
  }
  MemoryCharge(MemoryCharge&& other) noexcept
      : account_(std::exchange(other.account_, nullptr)), bytes_(other.bytes_) {}
  MemoryCharge& operator=(MemoryCharge&& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryCharge() {
    if (account_ != nullptr) account_->Refund(bytes_);
  }

 private:
  MemoryAccount* account_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace oga::kernels
