#include "simulation/actor.h"

#include <algorithm>

#include "native/search/reference_sampler.h"
#include "search/sampling_rules.h"

namespace oga::testing {

namespace {
bool IsEos(TokenId token) { return std::find(std::begin(kSimEos), std::end(kSimEos), token) != std::end(kSimEos); }
}  // namespace

void Actor::Began(TurnId id, const std::vector<TokenId>& input, const SamplingOptions& options, TellOptions tells) {
  turns_.push_back({id, static_cast<uint32_t>(sequence_.size())});
  sequence_.insert(sequence_.end(), input.begin(), input.end());
  settings_ = search::Resolve(options, SearchDefaults{}, {kSimVocab, kSimSampleable, kSimEos});
  told_ = ToldOracle(std::move(tells), sequence_, input.size());
  live_ = true;
  cancelled_ = false;
  prompt_tokens_ = input.size();
  generated_tokens_ = 0;
}

void Actor::Rewound(const Request::TurnRecord& turn) {
  const Request::TurnRecord target = turn;
  sequence_.resize(target.start_tokens);
  while (!turns_.empty() && turns_.back().id >= target.id) turns_.pop_back();
  failed_ = false;
}

void Actor::CopyFrom(const Actor& source) {
  sequence_ = source.sequence_;
  turns_ = source.turns_;
}

search::SampleOutcome Actor::Reference() const {
  search::RowCase row;
  row.logits.resize(kSimVocab);
  FillScriptLogits(row.logits, sequence_);
  row.settings = settings_;
  row.sequence = sequence_;
  row.output_begin = sequence_.size() - generated_tokens_;
  if (!settings_.ignore_eos) row.eos_token_ids.assign(std::begin(kSimEos), std::end(kSimEos));
  row.may_end = generated_tokens_ >= settings_.min_generated_tokens;
  row.seed = request_->seed();
  row.position = sequence_.size();
  search::Sampler sampler(kSimVocab, kSimSampleable);
  sampler.ReserveHistory(sequence_.size());
  return sampler.Sample(search::CaseInputs(row).get());
}

std::optional<TokenId> Actor::ReferenceToken() const {
  const search::SampleOutcome outcome = Reference();
  return outcome.status == search::SampleStatus::kOk ? std::optional(outcome.token) : std::nullopt;
}

std::string Actor::Follow(const Event& event, bool engine_failed) {
  if (!live_) return "an event of a turn that is not live";
  if (event.turn_id != turns_.back().id) return "an event names another turn";
  std::optional<TokenId> expected;
  const bool ends_without_token = (event.flags & event_flags::kToken) == 0;
  if (!ends_without_token) {
    expected = ReferenceToken();
    if (!expected) return "a token came out of a row that fails";
    if (*expected != event.token) return "the token differs from the reference";
    if (IsEos(event.token) && !settings_.ignore_eos) return "an EOS was emitted";
    if (generated_tokens_ == 0 && told_.prompt_fails()) return "a token came out after a prompt that fails";
    told_.Append(event.token, IsStop(event.token));
    sequence_.push_back(event.token);
    ++generated_tokens_;
  }
  if (const std::string wrong = told_.Follow(event); !wrong.empty()) return wrong;
  const bool should_end = (expected && told_.matched_index() >= 0) || (expected && IsStop(*expected)) ||
                          generated_tokens_ == settings_.max_generated_tokens ||
                          sequence_.size() == max_session_tokens_;
  if ((event.flags & event_flags::kTurnFinished) == 0) return should_end ? "the turn should have ended" : "";
  live_ = false;
  const std::string wrong = CheckEnding(event, expected, engine_failed);
  failed_ = event.finish_reason == FinishReason::kFailed && !engine_failed;
  return wrong;
}

bool Actor::IsStop(TokenId token) const {
  return std::find(settings_.stop_tokens.begin(), settings_.stop_tokens.end(), token) != settings_.stop_tokens.end();
}

// kNone: it should not have failed.
FailureKind Actor::ExpectedFailure(bool engine_failed) const {
  if (engine_failed) return FailureKind::kExecution;
  if (generated_tokens_ == 0 && told_.prompt_fails()) return FailureKind::kBadLogits;
  switch (Reference().status) {
    case search::SampleStatus::kOk: break;
    case search::SampleStatus::kBadLogits: return FailureKind::kBadLogits;
    case search::SampleStatus::kNoCandidate: return FailureKind::kNoAllowedToken;
  }
  return FailureKind::kNone;
}

std::string Actor::CheckEnding(const Event& event, std::optional<TokenId> expected, bool engine_failed) const {
  if (event.usage.prompt_tokens != prompt_tokens_) return "the usage counts another prompt";
  if (event.usage.generated_tokens != generated_tokens_) return "the usage counts another output";
  const bool has_kind = event.failure != FailureKind::kNone;
  if (has_kind != (event.finish_reason == FinishReason::kFailed))
    return "a failure kind and no failure, or none with one";
  if (event.error_code != CodeOf(event.failure)) return "the error code belongs to another failure kind";
  if (const std::string wrong = told_.CheckEnding(event); !wrong.empty()) return wrong;
  const bool full_turn = settings_.max_generated_tokens != 0 && generated_tokens_ == settings_.max_generated_tokens;
  switch (event.finish_reason) {
    case FinishReason::kEos: {
      if (expected) return IsStop(*expected) ? "" : "an Eos ending carries a token that stops nothing";
      const std::optional<TokenId> end = ReferenceToken();
      return end && IsEos(*end) && !settings_.ignore_eos ? "" : "the turn ended Eos where the reference has none";
    }
    case FinishReason::kMaxGeneratedTokens:
      if (expected && IsStop(*expected)) return "the limit hid a stop token";
      return full_turn ? "" : "the turn ended before its token limit";
    case FinishReason::kMaxSessionTokens:
      return sequence_.size() == max_session_tokens_ && !full_turn ? "" : "the turn ended before its session limit";
    case FinishReason::kStopString: return "";  // the oracle of what is told has judged it
    case FinishReason::kCancelled: return cancelled_ ? "" : "the turn was not cancelled";
    case FinishReason::kFailed:
      return event.failure == ExpectedFailure(engine_failed) ? "" : "the turn failed of another kind";
    default: return "the turn ended for no reason";
  }
}

}  // namespace oga::testing
