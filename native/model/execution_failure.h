// What an exception means for a step: the one list of what may be tried again. Pure; any thread.
#pragma once

#include "step/execution_batch.h"

namespace oga {

// The result for the exception being handled; call it inside a catch block only. `when_memory_ran_out` is the status of the
// failures on the list, each of which says that memory ran out: nothing is lost then, and there may be more of it, or less
// to do, the next time. Whatever is not on the list is kFatal. A ContractError is for the caller to let through.
ExecutionResult FailureOfCurrentException(ExecutionStatus when_memory_ran_out) noexcept;

}  // namespace oga
