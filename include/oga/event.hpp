// Events for C++17 hosts: what a run tells, as values and views. Hosts include oga.hpp, which states the rules.
#ifndef OGA_EVENT_HPP_
#define OGA_EVENT_HPP_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "handle.hpp"

namespace oga {
inline namespace v0 {

class Request;

// The token counts of a finished turn, by value.
struct TurnUsage {
  uint64_t prompt_tokens = 0;
  uint64_t generated_tokens = 0;
  uint64_t cached_prompt_tokens = 0;
};

// One token under the distribution of its place, by value.
struct Logprob {
  int32_t token = 0;
  float logprob = 0;  // natural logarithm; -infinity for a token that could not have been chosen
  int32_t rank = 0;   // 1 is the most likely token
};

// A view of one event, valid until the next run on its buffer or the buffer's end.
class Event {
 public:
  explicit Event(const OgaEngineEvent* event) noexcept : event_(event) {}

  OgaEngineEventFlags flags() const { return internal::Make<OgaEngineEventFlags>(OgaEngineEventGetFlags, event_); }
  bool has_token() const { return (flags() & OgaEngineEventFlag_Token) != 0; }
  bool turn_finished() const { return (flags() & OgaEngineEventFlag_TurnFinished) != 0; }

  // Whether the event is about `request`.
  bool IsOf(const Request& request) const;
  // The request's identity; nullptr for engine-level events. Never destroyed through this pointer.
  const OgaRequest* request() const { return internal::Make<const OgaRequest*>(OgaEngineEventGetRequest, event_); }

  uint64_t turn_id() const { return internal::Make<uint64_t>(OgaEngineEventGetTurnId, event_); }
  int32_t token() const { return internal::Make<int32_t>(OgaEngineEventGetToken, event_); }
  OgaFinishReason finish_reason() const {
    return internal::Make<OgaFinishReason>(OgaEngineEventGetFinishReason, event_);
  }
  int32_t matched_stop_string_index() const {
    return internal::Make<int32_t>(OgaEngineEventGetMatchedStopStringIndex, event_);
  }
  OgaErrorCode error_code() const { return internal::Make<OgaErrorCode>(OgaEngineEventGetErrorCode, event_); }

  // Why the turn failed; OgaFailureKind_None unless its finish reason is Failed.
  OgaFailureKind failure() const { return internal::Make<OgaFailureKind>(OgaEngineEventGetFailure, event_); }

  // The text that became certain; as long as the event.
  std::string_view text() const {
    const char* text = nullptr;
    size_t size_bytes = 0;
    Check(OgaEngineEventGetText(event_, &text, &size_bytes));
    return {text, size_bytes};
  }

  // Of the event's token: the token itself, then the most likely ones, then those that were named.
  std::vector<Logprob> logprobs() const {
    LogprobArrays arrays;
    Check(OgaEngineEventGetLogprobs(event_, &arrays.tokens, &arrays.logprobs, &arrays.ranks, &arrays.count));
    return arrays.Copy();
  }

  size_t prompt_logprobs_count() const { return internal::Make<size_t>(OgaEngineEventGetPromptLogprobsCount, event_); }

  // Of one token of the turn's input; empty for the first token of a sequence.
  std::vector<Logprob> prompt_logprobs(size_t index) const {
    LogprobArrays arrays;
    Check(
        OgaEngineEventGetPromptLogprobs(event_, index, &arrays.tokens, &arrays.logprobs, &arrays.ranks, &arrays.count));
    return arrays.Copy();
  }

  TurnUsage usage() const {
    const auto* usage = internal::Make<const OgaTurnUsage*>(OgaEngineEventGetUsage, event_);
    TurnUsage counts;
    counts.prompt_tokens = internal::Make<uint64_t>(OgaTurnUsageGetPromptTokens, usage);
    counts.generated_tokens = internal::Make<uint64_t>(OgaTurnUsageGetGeneratedTokens, usage);
    counts.cached_prompt_tokens = internal::Make<uint64_t>(OgaTurnUsageGetCachedPromptTokens, usage);
    return counts;
  }

 private:
  struct LogprobArrays {
    const int32_t* tokens = nullptr;
    const float* logprobs = nullptr;
    const int32_t* ranks = nullptr;
    size_t count = 0;

    std::vector<Logprob> Copy() const {
      std::vector<Logprob> values;
      values.reserve(count);
      for (size_t i = 0; i < count; ++i) values.push_back({tokens[i], logprobs[i], ranks[i]});
      return values;
    }
  };

  const OgaEngineEvent* event_;
};

// Where a run puts its events; made by Engine::CreateEventBuffer. A range of Event.
class EventBuffer : public Handle<OgaEngineEventBuffer, OgaDestroyEngineEventBuffer> {
 public:
  class Iterator {
   public:
    Iterator(const EventBuffer& buffer, size_t index) noexcept : buffer_(&buffer), index_(index) {}

    Event operator*() const noexcept { return (*buffer_)[index_]; }
    Iterator& operator++() noexcept {
      ++index_;
      return *this;
    }
    bool operator!=(const Iterator& other) const noexcept { return index_ != other.index_; }

   private:
    const EventBuffer* buffer_;
    size_t index_;
  };

  size_t size() const noexcept { return OgaEngineEventBufferGetCount(get()); }
  bool empty() const noexcept { return size() == 0; }
  // An event beyond size() is an Error as soon as it is read.
  Event operator[](size_t index) const noexcept { return Event(OgaEngineEventBufferGet(get(), index)); }
  Iterator begin() const noexcept { return Iterator(*this, 0); }
  Iterator end() const noexcept { return Iterator(*this, size()); }

 private:
  friend class Engine;
  explicit EventBuffer(OgaEngineEventBuffer* pointer) noexcept : Handle(pointer) {}
};

}  // namespace v0
}  // namespace oga

#endif  // OGA_EVENT_HPP_
