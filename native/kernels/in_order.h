// Steps that must be taken in order, one at a time, after items that finish in any order: whichever thread finishes an
// item takes the steps that have become possible, while the others go on with theirs. No thread waits.
//
// A step must not throw. Any number of threads call Finish, each index once. When all calls have returned, all steps
// have been taken. What was written before Finish(i) is visible to the step of i, and what a step wrote to the steps
// after it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace oga::kernels {

class InOrder {
 public:
  static constexpr size_t kMostItems = 256;

  explicit InOrder(size_t count) : count_(count) { OGA_CHECK(count <= kMostItems); }
  InOrder(const InOrder&) = delete;
  InOrder& operator=(const InOrder&) = delete;

  template <typename Step>
  void Finish(size_t index, const Step& step) {
    finished_[index] = true;
    // A thread that finds the steps taken by another one leaves its own to that one, which looks again after it has let
    // go: one of the two sees the other's write.
    while (IsNextFinished() && !taken_.exchange(true)) {
      for (; IsNextFinished(); ++next_) step(next_);
      taken_ = false;
    }
  }

 private:
  bool IsNextFinished() const {
    const size_t next = next_;
    return next < count_ && finished_[next];
  }

  const size_t count_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> taken_ = false;
  std::atomic<bool> finished_[kMostItems] = {};
};

}  // namespace oga::kernels
