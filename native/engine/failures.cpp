// What a step that did not commit means for the host.
#include <algorithm>
#include <new>

#include "base/log.h"
#include "engine/engine.h"

namespace oga {

// Room for events was made at the start of the step: one per open request, one per row and one for the engine.
void Engine::PushEngineEvent(uint32_t flags, EventErrorCode code) noexcept {
  Event event;
  event.flags = flags;
  event.error_code = code;
  events_.Push(std::move(event));
}

void Engine::FailUnserviceable() noexcept {
  for (const RequestIndex index : plan_.unserviceable) {
    RowResult failed = RowResult::Failed(FailureKind::kNeverFits);
    requests_[index]->MarkFailed();
    FinishTurn(*requests_[index], failed);
  }
}

// A lost log line must not become a failure of the step it tells of, and memory may be short just now.
void Engine::WarnOfRollback(const char* what, const ExecutionResult& result) noexcept {
  try {
    log::Warning(Message(what, result.message));
  } catch (const std::bad_alloc&) {
  }
}

// Everything is as before the step; the reservation is gone with its destructor.
void Engine::Rollback(const ExecutionResult& result) noexcept {
  for (const RowPlan& row : plan_.rows) requests_[row.index]->RollbackGrammar();
  ++statistics_.rolled_back_steps;
  Trace("rolled_back");
  switch (result.status) {
    case ExecutionStatus::kCapacityExceeded:
      ShrinkBudget();
      PushEngineEvent(event_flags::kCapacityBlocked, EventErrorCode::kExecutionCapacityExceeded);
      return WarnOfRollback("a step ran out of memory and was rolled back: ", result);
    case ExecutionStatus::kRetryable:
      PushEngineEvent(event_flags::kRetryable, EventErrorCode::kRetryableExecution);
      return WarnOfRollback("a step failed and was rolled back: ", result);
    case ExecutionStatus::kOk:
    case ExecutionStatus::kFatal: break;
  }
  Fail(FailureKind::kExecution, result.message);
}

// The end of this engine's work: every open turn fails, and later progress calls get the stored error.
void Engine::Fail(FailureKind kind, const std::string& message) noexcept {
  try {
    failure_.emplace(
        StatusCode::kEngineUnhealthy,
        Message("the engine failed and makes no further progress; close its requests and create a new one. "
                "Cause: ",
                message));
  } catch (...) {
    failure_.emplace(StatusCode::kEngineUnhealthy, std::string());
  }
  RowResult failed = RowResult::Failed(kind);
  bool any = false;
  for (const std::shared_ptr<Request>& request : requests_) {
    if (request == nullptr || !request->turn_live()) continue;
    any = true;
    FinishTurn(*request, failed);
  }
  if (!any) PushEngineEvent(event_flags::kFailed, CodeOf(kind));
}

// After the model ran out of memory the next attempts are smaller: with fewer prompt tokens first, then with fewer rows.
void Engine::ShrinkBudget() noexcept {
  token_budget_ = std::max(1u, std::min(token_budget_, plan_.scheduled_tokens) / 2);
}

void Engine::GrowBudget() noexcept {
  token_budget_ = std::min<uint64_t>(limits_.max_scheduled_tokens, uint64_t{2} * token_budget_);
}

}  // namespace oga
