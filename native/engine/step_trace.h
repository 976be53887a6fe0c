// StepTrace: one JSON line per attempted step, so that a user can see what ran, what waited and why, and where time went.
//
// Owned by one Engine; owner thread. A line that cannot be written ends the trace with a warning, never the step.
//
//   {"attempt": 9, "step": 8, "outcome": "committed", "tokens": 21, "free_blocks": 40, "running": 3, "waiting": 1,
//    "dormant": 0, "rows": [{"request": 2, "turn": 1, "past": 16, "tokens": 1, "kind": "decode", "event": "token"}],
//    "dropped": [], "waited": [{"request": 7, "turn": 1, "tokens": 300, "steps": 4, "for": "blocks"}],
//    "us": {"plan": 1.2, "reserve": 0.4, "pack": 0.3, "execute": 812.0, "sample": 20.1, "commit": 0.9}}
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "base/clock.h"

namespace oga {

enum class StepPhase { kPlan, kReserve, kPack, kExecute, kSample, kCommit, kCount };

// Where the time of the step at hand went.
class PhaseClock {
 public:
  void Start() noexcept {
    for (int64_t& phase : nanoseconds_) phase = 0;
    stopwatch_ = Stopwatch();
  }
  // Adds the time since the last mark to `phase`.
  void Mark(StepPhase phase) noexcept { nanoseconds_[static_cast<size_t>(phase)] += stopwatch_.LapNanoseconds(); }
  int64_t nanoseconds(StepPhase phase) const noexcept { return nanoseconds_[static_cast<size_t>(phase)]; }

 private:
  Stopwatch stopwatch_;
  int64_t nanoseconds_[static_cast<size_t>(StepPhase::kCount)] = {};
};

class StepTrace {
 public:
  // Creates or empties the file. Throws Error{kIoError} naming the path and the reason.
  explicit StepTrace(const std::string& path);

  // Appends one line. False when it could not be written.
  bool Write(const std::string& line) noexcept;

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, CloseFile> file_;
};

}  // namespace oga
