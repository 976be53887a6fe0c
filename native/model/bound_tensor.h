// A tensor whose shape changes from step to step: memory of the session's device that grows and is reused, bound again
// only when it moved or took another shape. A step like the one before it allocates and binds nothing.
//
// Owned by one executor, used on its engine's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include "device/device.h"
#include "memory/ledger.h"
#include "ort/io_binding.h"

namespace oga {

enum class BindingSide { kInput, kOutput };

class BoundTensor {
 public:
  // The references must outlive the tensor. Its memory is charged to the ledger: an input's as workspace.
  BoundTensor(ort::IoBinding& binding, BindingSide side, std::string name, ort::ElementType type, Ledger& ledger);

  // Gives the tensor a shape and binds it; its contents are undefined after it has grown. Throws std::bad_alloc or
  // Error; then the next call binds anew.
  void Shape(std::initializer_list<int64_t> dims);

  // After the first Shape: where it lives, in memory that may be larger than the tensor.
  const DeviceMemory& memory() const { return *memory_; }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kMaxRank = 2;

  size_t Claim(size_t bytes);
  void Reserve(size_t bytes);

  ort::IoBinding& binding_;
  BindingSide side_;
  std::string name_;
  ort::ElementType type_;
  Lease lease_;  // given back after the memory is
  std::unique_ptr<DeviceMemory> memory_;
  size_t bytes_ = 0;
  std::array<int64_t, kMaxRank> dims_{};
  size_t bound_rank_ = 0;  // 0: not bound
};

// Memory for at least `bytes`, of a size that makes the next growth rare.
size_t GrownBytes(size_t bytes, const DeviceMemory* outgrown);

}  // namespace oga
