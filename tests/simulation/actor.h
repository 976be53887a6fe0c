// Actor: what a host knows about one of its requests, and what the naive one-request reference says must come next.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "simulation/script.h"
#include "simulation/told_oracle.h"

namespace oga::testing {

class Actor {
 public:
  Actor(std::shared_ptr<Request> request, uint64_t max_session_tokens)
      : request_(std::move(request)), max_session_tokens_(max_session_tokens) {}

  const std::shared_ptr<Request>& request() const { return request_; }
  bool live() const { return live_; }
  bool failed() const { return failed_; }
  const std::vector<TokenId>& sequence() const { return sequence_; }
  const std::vector<Request::TurnRecord>& turns() const { return turns_; }
  uint64_t room() const { return max_session_tokens_ - sequence_.size(); }
  uint64_t max_session_tokens() const { return max_session_tokens_; }

  void Began(TurnId id, const std::vector<TokenId>& input, const SamplingOptions& options, TellOptions tells);
  void Cancelled() { cancelled_ = true; }
  void Rewound(const Request::TurnRecord& turn);
  void CopyFrom(const Actor& source);

  // Checks an event against the reference and follows it. Returns what is wrong, or nothing.
  std::string Follow(const Event& event, bool engine_failed);

 private:
  search::SampleOutcome Reference() const;
  std::optional<TokenId> ReferenceToken() const;  // nullopt: the row fails
  bool IsStop(TokenId token) const;
  FailureKind ExpectedFailure(bool engine_failed) const;
  std::string CheckEnding(const Event& event, std::optional<TokenId> expected, bool engine_failed) const;

  std::shared_ptr<Request> request_;
  uint64_t max_session_tokens_;
  std::vector<TokenId> sequence_;
  std::vector<Request::TurnRecord> turns_;
  SamplingSettings settings_;
  ToldOracle told_;
  bool live_ = false;
  bool cancelled_ = false;
  bool failed_ = false;
  uint64_t prompt_tokens_ = 0;
  uint64_t generated_tokens_ = 0;
};

}  // namespace oga::testing
