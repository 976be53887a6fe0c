// What a step's trace line says; engine/step_trace.h shows one.
#include <new>

#include "base/log.h"
#include "engine/engine.h"

namespace oga {

namespace {

const char* RowEvent(const RowResult& result) {
  switch (result.finish) {
    case FinishReason::kNone: return result.appends ? "token" : "none";
    case FinishReason::kEos: return "eos";
    case FinishReason::kStopString: return "stop_string";
    case FinishReason::kMaxGeneratedTokens: return "max_generated_tokens";
    case FinishReason::kMaxSessionTokens: return "max_session_tokens";
    case FinishReason::kCancelled: return "cancelled";
    case FinishReason::kFailed: return "failed";
  }
  return "none";
}

const char* WaitedFor(SkipReason reason) {
  switch (reason) {
    case SkipReason::kRows: return "rows";
    case SkipReason::kBlocks: return "blocks";
    case SkipReason::kPlaces: return "places";
    case SkipReason::kJustDropped: return "just_dropped";
    case SkipReason::kPrefix: return "prefix";
  }
  return "rows";
}

void AppendPhases(std::string& line, const PhaseClock& clock) {
  static constexpr const char* kNames[] = {"plan", "reserve", "pack", "execute", "sample", "commit"};
  line += "\"us\": {";
  for (size_t i = 0; i < static_cast<size_t>(StepPhase::kCount); ++i) {
    const double microseconds = static_cast<double>(clock.nanoseconds(static_cast<StepPhase>(i))) / 1000.0;
    line += Message(i == 0 ? "\"" : ", \"", kNames[i], "\": ", microseconds);
  }
  line += "}";
}

}  // namespace

std::string Engine::TraceLine(const char* outcome) const {
  std::string line =
      Message("{\"attempt\": ", attempt_, ", \"step\": ", statistics_.steps, ", \"outcome\": \"", outcome,
              "\", \"tokens\": ", plan_.scheduled_tokens, ", \"free_blocks\": ", cache_.pool().available_blocks(),
              ", \"running\": ", queues_.running().size(), ", \"waiting\": ", queues_.waiting().size(),
              ", \"dormant\": ", queues_.dormant().size());
  line += ", \"rows\": [";
  const bool committed = results_.size() == plan_.rows.size();
  for (size_t i = 0; i < plan_.rows.size(); ++i) {
    const RowPlan& row = plan_.rows[i];
    const Request& request = *requests_[row.index];
    line += Message(i == 0 ? "{" : ", {", "\"request\": ", request.id(), ", \"turn\": ", request.turn_id(),
                    ", \"past\": ", row.past_tokens, ", \"tokens\": ", row.scheduled_tokens, ", \"kind\": \"",
                    row.pending_tokens == 1 ? "decode" : "prefill", "\", \"event\": \"",
                    committed ? RowEvent(results_[i]) : "none", "\"}");
  }
  line += "], \"dropped\": [";
  for (size_t i = 0; i < dropped_.size(); ++i) line += Message(i == 0 ? "" : ", ", dropped_[i]);
  line += "], \"waited\": [";
  for (size_t i = 0; i < plan_.skips.size(); ++i) {
    const Request& request = *requests_[plan_.skips[i].index];
    line += Message(i == 0 ? "{" : ", {", "\"request\": ", request.id(), ", \"turn\": ", request.turn_id(),
                    ", \"tokens\": ", request.view().pending_tokens(),
                    ", \"steps\": ", statistics_.steps - request.view().last_progress_step, ", \"for\": \"",
                    WaitedFor(plan_.skips[i].reason), "\"}");
  }
  line += "], ";
  AppendPhases(line, clock_);
  line += "}\n";
  return line;
}

// Tells about a step that is over, so it must not fail: without memory or disk the trace ends instead.
void Engine::Trace(const char* outcome) noexcept {
  if (trace_ == nullptr) return;
  try {
    if (trace_->Write(TraceLine(outcome))) return;
    log::Warning("the trace file cannot be written any more; tracing has ended");
  } catch (const std::bad_alloc&) {
  }
  trace_.reset();
}

void Engine::SetTraceFile(const std::string& path) {
  const Entry entry(*this);
  trace_ = path.empty() ? nullptr : std::make_unique<StepTrace>(path);
}

}  // namespace oga
