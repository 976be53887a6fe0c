#include "capi/boundary.h"

using oga::Event;
using oga::EventErrorCode;
using oga::FailureKind;
using oga::FinishReason;
using oga::capi::AsInternal;
using oga::capi::AsPublic;
using oga::capi::Guard;
using oga::capi::Require;
using oga::capi::RequireOut;

namespace {

constexpr bool Same(FinishReason reason, OgaFinishReason constant) {
  return static_cast<OgaFinishReason>(reason) == constant;
}
static_assert(Same(FinishReason::kNone, OgaFinishReason_None));
static_assert(Same(FinishReason::kEos, OgaFinishReason_Eos));
static_assert(Same(FinishReason::kStopString, OgaFinishReason_StopString));
static_assert(Same(FinishReason::kMaxGeneratedTokens, OgaFinishReason_MaxGeneratedTokens));
static_assert(Same(FinishReason::kMaxSessionTokens, OgaFinishReason_MaxSessionTokens));
static_assert(Same(FinishReason::kCancelled, OgaFinishReason_Cancelled));
static_assert(Same(FinishReason::kFailed, OgaFinishReason_Failed));

constexpr bool Same(EventErrorCode code, OgaErrorCode constant) { return static_cast<OgaErrorCode>(code) == constant; }
static_assert(Same(EventErrorCode::kNone, OgaErrorCode_None));
static_assert(Same(EventErrorCode::kCapacityDeferred, OgaErrorCode_CapacityDeferred));
static_assert(Same(EventErrorCode::kExecutionCapacityExceeded, OgaErrorCode_ExecutionCapacityExceeded));
static_assert(Same(EventErrorCode::kRetryableExecution, OgaErrorCode_RetryableExecution));
static_assert(Same(EventErrorCode::kRequestUnserviceable, OgaErrorCode_RequestUnserviceable));
static_assert(Same(EventErrorCode::kEngineContractFailure, OgaErrorCode_EngineContractFailure));
static_assert(Same(EventErrorCode::kEngineExecutionFailure, OgaErrorCode_EngineExecutionFailure));

constexpr bool Same(FailureKind kind, OgaFailureKind constant) { return static_cast<OgaFailureKind>(kind) == constant; }
static_assert(Same(FailureKind::kNone, OgaFailureKind_None));
static_assert(Same(FailureKind::kBadLogits, OgaFailureKind_BadLogits));
static_assert(Same(FailureKind::kNoAllowedToken, OgaFailureKind_NoAllowedToken));
static_assert(Same(FailureKind::kGrammarFailed, OgaFailureKind_GrammarFailed));
static_assert(Same(FailureKind::kNeverFits, OgaFailureKind_NeverFits));
static_assert(Same(FailureKind::kExecution, OgaFailureKind_Execution));
static_assert(Same(FailureKind::kContract, OgaFailureKind_Contract));

static_assert(oga::event_flags::kToken == OgaEngineEventFlag_Token);
static_assert(oga::event_flags::kTurnFinished == OgaEngineEventFlag_TurnFinished);
static_assert(oga::event_flags::kCapacityBlocked == OgaEngineEventFlag_CapacityBlocked);
static_assert(oga::event_flags::kFailed == OgaEngineEventFlag_Failed);
static_assert(oga::event_flags::kRetryable == OgaEngineEventFlag_Retryable);

// Every getter: give `out` its neutral value, refuse a null event, then read.
template <typename Value, typename Read>
OgaResult* Get(const OgaEngineEvent* event, Value* out, Value neutral, const Read& read) {
  return Guard([&] {
    RequireOut(out, neutral);
    Require(event, "event");
    *out = read(*AsInternal(event));
  });
}

// Where the parallel arrays of log-probabilities go.
struct LogprobOuts {
  const int32_t** tokens;
  const float** logprobs;
  const int32_t** ranks;
  size_t* count;

  void Clear() const {
    RequireOut<const int32_t*>(tokens, nullptr, "tokens");
    RequireOut<const float*>(logprobs, nullptr, "logprobs");
    RequireOut<const int32_t*>(ranks, nullptr, "ranks");
    RequireOut<size_t>(count, 0, "count");
  }
  void Write(const oga::search::TokenLogprobs& values) const {
    *tokens = values.tokens.data();
    *logprobs = values.logprobs.data();
    *ranks = values.ranks.data();
    *count = values.tokens.size();
  }
};

size_t ScoredPromptTokens(const Event& event) {
  return event.prompt_logprobs == nullptr ? 0 : event.prompt_logprobs->size();
}

}  // namespace

OgaResult* OGA_API_CALL OgaEngineEventGetFlags(const OgaEngineEvent* event, OgaEngineEventFlags* out) {
  return Get(event, out, OgaEngineEventFlag_None, [](const Event& e) { return e.flags; });
}

OgaResult* OGA_API_CALL OgaEngineEventGetRequest(const OgaEngineEvent* event, const OgaRequest** out) {
  return Get<const OgaRequest*>(event, out, nullptr, [](const Event& e) { return AsPublic(e.request.get()); });
}

OgaResult* OGA_API_CALL OgaEngineEventGetTurnId(const OgaEngineEvent* event, uint64_t* out) {
  return Get<uint64_t>(event, out, 0, [](const Event& e) { return e.turn_id; });
}

OgaResult* OGA_API_CALL OgaEngineEventGetToken(const OgaEngineEvent* event, int32_t* out) {
  return Get(event, out, 0, [](const Event& e) { return e.token; });
}

OgaResult* OGA_API_CALL OgaEngineEventGetFinishReason(const OgaEngineEvent* event, OgaFinishReason* out) {
  return Get(event, out, OgaFinishReason_None,
             [](const Event& e) { return static_cast<OgaFinishReason>(e.finish_reason); });
}

OgaResult* OGA_API_CALL OgaEngineEventGetMatchedStopStringIndex(const OgaEngineEvent* event, int32_t* out) {
  return Get(event, out, -1, [](const Event& e) { return e.matched_stop_string_index; });
}

OgaResult* OGA_API_CALL OgaEngineEventGetErrorCode(const OgaEngineEvent* event, OgaErrorCode* out) {
  return Get(event, out, OgaErrorCode_None, [](const Event& e) { return static_cast<OgaErrorCode>(e.error_code); });
}

OgaResult* OGA_API_CALL OgaEngineEventGetFailure(const OgaEngineEvent* event, OgaFailureKind* out) {
  return Get(event, out, OgaFailureKind_None, [](const Event& e) { return static_cast<OgaFailureKind>(e.failure); });
}

OgaResult* OGA_API_CALL OgaEngineEventGetUsage(const OgaEngineEvent* event, const OgaTurnUsage** out) {
  return Get<const OgaTurnUsage*>(event, out, nullptr, [](const Event& e) { return AsPublic(&e.usage); });
}

OgaResult* OGA_API_CALL OgaEngineEventGetText(const OgaEngineEvent* event, const char** out, size_t* size_bytes) {
  return Guard([&] {
    RequireOut<const char*>(out, "");
    if (size_bytes != nullptr) *size_bytes = 0;
    Require(event, "event");
    const std::string& text = AsInternal(event)->text;
    *out = text.c_str();
    if (size_bytes != nullptr) *size_bytes = text.size();
  });
}

OgaResult* OGA_API_CALL OgaEngineEventGetLogprobs(const OgaEngineEvent* event, const int32_t** tokens,
                                                  const float** logprobs, const int32_t** ranks, size_t* count) {
  return Guard([&] {
    const LogprobOuts outs{tokens, logprobs, ranks, count};
    outs.Clear();
    Require(event, "event");
    if (const auto& values = AsInternal(event)->logprobs; values != nullptr) outs.Write(*values);
  });
}

OgaResult* OGA_API_CALL OgaEngineEventGetPromptLogprobsCount(const OgaEngineEvent* event, size_t* out) {
  return Get<size_t>(event, out, 0, ScoredPromptTokens);
}

OgaResult* OGA_API_CALL OgaEngineEventGetPromptLogprobs(const OgaEngineEvent* event, size_t index,
                                                        const int32_t** tokens, const float** logprobs,
                                                        const int32_t** ranks, size_t* count) {
  return Guard([&] {
    const LogprobOuts outs{tokens, logprobs, ranks, count};
    outs.Clear();
    Require(event, "event");
    const size_t scored = ScoredPromptTokens(*AsInternal(event));
    if (index >= scored) {
      oga::Throw(oga::StatusCode::kInvalidArgument, oga::Field{"index"}, "index is ", index,
                 "; the event has log-probabilities of ", scored, " input tokens");
    }
    outs.Write((*AsInternal(event)->prompt_logprobs)[index]);
  });
}
