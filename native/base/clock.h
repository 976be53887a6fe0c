// Elapsed time for step phases; never part of a decision.
#pragma once

#include <chrono>
#include <cstdint>

namespace oga {

class Stopwatch {
 public:
  Stopwatch() : start_(std::chrono::steady_clock::now()) {}

  // Nanoseconds since construction or the previous lap.
  int64_t LapNanoseconds() {
    const auto now = std::chrono::steady_clock::now();
    const auto lap = std::chrono::duration_cast<std::chrono::nanoseconds>(now - start_).count();
    start_ = now;
    return lap;
  }

 private:
  std::chrono::steady_clock::time_point start_;
};

}  // namespace oga
