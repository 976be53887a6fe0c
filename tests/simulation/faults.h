// The faults a simulated world injects, by name, and how often each was hit.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace oga::testing {

enum class Fault {
  kNone,
  kAllocation,    // the k-th allocation inside a run
  kPlan,          // out of memory while planning
  kReserveCache,  // out of memory before blocks are reserved
  kCheckpoint,    // ... before room for tokens and events is made
  kPack,
  kExecuteRetryable,
  kExecuteCapacity,
  kExecuteLate,    // retryable, after every key and value was written
  kExecuteThrows,  // fatal
  kExecuteFatal,   // fatal
  kWrongShape,     // fatal
  kSample,
  kPrepare,
  kUnnamed,  // fatal: what nobody can name, at any of the named points
  kCount,
};

inline const char* FaultName(Fault fault) {
  static constexpr const char* kNames[] = {"none",
                                           "allocation",
                                           "plan",
                                           "reserve cache",
                                           "checkpoint",
                                           "pack",
                                           "execute: retryable",
                                           "execute: capacity",
                                           "execute: late",
                                           "execute: throws",
                                           "execute: fatal",
                                           "execute: wrong shape",
                                           "sample",
                                           "prepare",
                                           "unnamed"};
  return kNames[static_cast<size_t>(fault)];
}

inline bool IsFatal(Fault fault) {
  return fault == Fault::kExecuteThrows || fault == Fault::kExecuteFatal || fault == Fault::kWrongShape ||
         fault == Fault::kUnnamed;
}

using FaultCounts = std::array<uint64_t, static_cast<size_t>(Fault::kCount)>;

}  // namespace oga::testing
