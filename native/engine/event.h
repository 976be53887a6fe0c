// One event, by value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "search/logprobs.h"
#include "step/ids.h"

namespace oga {

class Request;

// Values of the next ones equal the constants of include/oga/event.h; the C boundary asserts it.
enum class FinishReason : uint32_t {
  kNone = 0,
  kEos = 1,
  kStopString = 2,
  kMaxGeneratedTokens = 3,
  kMaxSessionTokens = 4,
  kCancelled = 5,
  kFailed = 6,
};

enum class EventErrorCode : uint32_t {
  kNone = 0,
  kCapacityDeferred = 1,
  kExecutionCapacityExceeded = 2,
  kRetryableExecution = 3,
  kRequestUnserviceable = 4,
  kEngineContractFailure = 5,
  kEngineExecutionFailure = 6,
};

// Why a turn ended kFailed.
enum class FailureKind : uint32_t {
  kNone = 0,
  kBadLogits = 1,
  kNoAllowedToken = 2,
  kGrammarFailed = 3,
  kNeverFits = 4,
  kExecution = 5,
  kContract = 6,
};

// What the event of a turn's end says of the engine: the first four concern one turn, the last two all of them.
constexpr EventErrorCode CodeOf(FailureKind kind) noexcept {
  switch (kind) {
    case FailureKind::kNone: return EventErrorCode::kNone;
    case FailureKind::kBadLogits:
    case FailureKind::kNoAllowedToken:
    case FailureKind::kGrammarFailed:
    case FailureKind::kNeverFits: return EventErrorCode::kRequestUnserviceable;
    case FailureKind::kExecution: return EventErrorCode::kEngineExecutionFailure;
    case FailureKind::kContract: return EventErrorCode::kEngineContractFailure;
  }
  return EventErrorCode::kEngineContractFailure;
}

namespace event_flags {
inline constexpr uint32_t kToken = 1;
inline constexpr uint32_t kTurnFinished = 2;
inline constexpr uint32_t kCapacityBlocked = 4;
inline constexpr uint32_t kFailed = 8;
inline constexpr uint32_t kRetryable = 16;
}  // namespace event_flags

// By token of a turn's input; the first token of a sequence follows nothing and has empty arrays.
using PromptLogprobs = std::vector<search::TokenLogprobs>;

struct TurnUsage {
  uint64_t prompt_tokens = 0;
  uint64_t generated_tokens = 0;
  uint64_t cached_prompt_tokens = 0;
};

struct Event {
  std::shared_ptr<Request> request;  // null for engine-level events
  TurnId turn_id = 0;
  uint32_t flags = 0;
  TokenId token = 0;
  FinishReason finish_reason = FinishReason::kNone;
  EventErrorCode error_code = EventErrorCode::kNone;
  FailureKind failure = FailureKind::kNone;  // of a turn whose finish reason is kFailed
  int32_t matched_stop_string_index = -1;
  TurnUsage usage;                                        // zero unless kTurnFinished
  std::string text;                                       // that became certain; empty unless the turn emits text
  std::shared_ptr<const search::TokenLogprobs> logprobs;  // of the token; null unless asked for
  std::shared_ptr<const PromptLogprobs> prompt_logprobs;  // on the turn's first event; null unless asked for
};

}  // namespace oga
