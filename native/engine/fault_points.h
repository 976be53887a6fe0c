// The named places of a step where tests make something fail. In production the hook is empty and costs a branch.
#pragma once

#include <functional>

namespace oga {

enum class FaultPoint {
  kPlan,          // before the plan is made
  kReserveCache,  // before blocks are reserved
  kCheckpoint,    // before room for tokens and events is made
  kPack,          // before the batch is packed
  kSample,        // before a row is sampled
  kPrepare,       // after sampling, before the commit
};

// Throws to inject a failure.
using FaultHook = std::function<void(FaultPoint)>;

}  // namespace oga
