// A tensor whose shape changes from step to step: memory that grows and is reused, bound again to the session only when
// it moved or took another shape. A step like the one before it allocates and binds nothing.
//
// Owned by one executor, used on its engine's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>

#include "memory/ledger.h"
#include "ort/io_binding.h"

namespace oga {

enum class BindingSide { kInput, kOutput };

class BoundTensor {
 public:
  // The references must outlive the tensor. Its memory is charged to the ledger: an input's as workspace.
  BoundTensor(ort::IoBinding& binding, const ort::Environment& environment, BindingSide side, std::string name,
              ort::ElementType type, Ledger& ledger);

  // Gives the tensor a shape and binds it; returns its memory, whose contents are undefined after it has grown. Throws
  // std::bad_alloc or Error; then the next call binds anew.
  void* Shape(std::initializer_list<int64_t> dims);

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{kAlignment}); }
  };
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kMaxRank = 2;

  void Reserve(size_t bytes);

  ort::IoBinding& binding_;
  const ort::Environment& environment_;
  BindingSide side_;
  std::string name_;
  ort::ElementType type_;
  Lease lease_;  // given back after the memory is
  std::unique_ptr<std::byte, Free> memory_;
  size_t capacity_bytes_ = 0;
  std::array<int64_t, kMaxRank> dims_{};
  size_t bound_rank_ = 0;  // 0: not bound
};

}  // namespace oga
