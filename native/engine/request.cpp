#include "engine/request.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "engine/engine.h"
#include "search/bitmask.h"

namespace oga {

namespace {
[[noreturn]] void ThrowClosed() {
  Throw(StatusCode::kInvalidState, "the request is closed; create a new one with the engine's CreateRequest");
}
}  // namespace

Request::Request(std::weak_ptr<Engine> engine, std::shared_ptr<std::atomic<bool>> abandonment, RequestIndex index,
                 RequestId id, uint64_t max_session_tokens, int32_t priority, uint64_t seed)
    : engine_(std::move(engine)),
      abandonment_(std::move(abandonment)),
      max_session_tokens_(max_session_tokens),
      seed_(seed) {
  view_.index = index;
  view_.request = id;
  view_.priority = priority;
}

std::shared_ptr<Engine> Request::LockEngine() const {
  std::shared_ptr<Engine> engine = engine_.lock();
  if (engine == nullptr) ThrowClosed();
  CheckOpen();
  return engine;
}

void Request::CheckOpen() const {
  if (state_ == RequestState::kClosed) ThrowClosed();
}

TurnId Request::BeginTurn(std::span<const TokenId> input, const TurnOptions* options) {
  return LockEngine()->BeginTurn(*this, input, options);
}

bool Request::CancelTurn(TurnId id) { return LockEngine()->CancelTurn(*this, id); }

void Request::RewindToStartOfTurn(TurnId id) { LockEngine()->Rewind(*this, id); }

std::shared_ptr<Request> Request::Fork() { return LockEngine()->Fork(*this); }

void Request::Close() {
  if (state_ == RequestState::kClosed) return;
  if (const std::shared_ptr<Engine> engine = engine_.lock()) engine->Close(*this);
}

void Request::CheckUsable() const {
  const std::shared_ptr<Engine> engine = LockEngine();
  engine->CheckOwner();
}

std::unique_ptr<TurnOptions> Request::CreateTurnOptions() {
  CheckUsable();
  return std::make_unique<TurnOptions>(weak_from_this());
}

void Request::AdoptHandle() noexcept {
  const std::lock_guard lock(handle_mutex_);
  handle_ = shared_from_this();
}

void Request::ReleaseHandle() noexcept {
  std::shared_ptr<Request> self;  // outlives the lock: it may be the last share
  const std::lock_guard lock(handle_mutex_);
  self = std::move(handle_);
  abandoned_.store(true);
  abandonment_->store(true);
}

const Request::TurnRecord* Request::FindTurn(TurnId id) const noexcept {
  const auto found = std::lower_bound(turns_.begin(), turns_.end(), id,
                                      [](const TurnRecord& turn, TurnId wanted) { return turn.id < wanted; });
  return found != turns_.end() && found->id == id ? &*found : nullptr;
}

std::span<const TokenId> Request::penalized_tokens() const noexcept {
  return distinct_ ? distinct_->values() : std::span<const TokenId>{};
}

std::span<const search::TokenCount> Request::output_counts() const noexcept {
  return output_counts_ ? output_counts_->values() : std::span<const search::TokenCount>{};
}

void Request::StartTurn(std::span<const TokenId> input, TurnSetup setup, int32_t vocab_size) {
  SamplingSettings& settings = setup.settings;
  const uint64_t length = tokens_.size() + input.size();
  // A limit near 2^64 must not wrap.
  uint64_t output = std::min(max_session_tokens_ - length, kEagerTokens);
  if (settings.max_generated_tokens != 0) output = std::min(output, settings.max_generated_tokens);
  tokens_.reserve(length + output);
  turns_.reserve(turns_.size() + 1);
  std::optional<search::DistinctTokens> distinct;
  if (settings.repetition_penalty != 1.0f) {
    distinct.emplace(vocab_size);
    distinct->Reserve(tokens_.capacity());
    for (const TokenId token : tokens_) distinct->Append(token);
    for (const TokenId token : input) distinct->Append(token);
  }
  std::optional<search::TokenCounts> counts;
  if (settings.counts_output()) counts.emplace(vocab_size).Reserve(output);
  std::shared_ptr<PromptLogprobs> prompt_logprobs;
  if (settings.logprobs.of_prompt()) {
    prompt_logprobs = std::make_shared<PromptLogprobs>();
    prompt_logprobs->reserve(input.size());
    // Nothing predicts the first token of a sequence.
    if (tokens_.empty()) prompt_logprobs->emplace_back();
  }

  // Nothing below can fail.
  turns_.push_back({++turn_id_, static_cast<uint32_t>(tokens_.size()), seed_});
  tokens_.insert(tokens_.end(), input.begin(), input.end());
  distinct_ = std::move(distinct);
  output_counts_ = std::move(counts);
  settings_ = std::move(setup.settings);
  if (settings_.seed) seed_ = *settings_.seed;
  usage_ = {};
  usage_.prompt_tokens = input.size();
  text_ = std::move(setup.text);
  cursor_ = std::move(setup.cursor);
  prompt_logprobs_ = std::move(prompt_logprobs);
  prompt_end_ = prompt_logprobs_ == nullptr ? 0 : static_cast<uint32_t>(tokens_.size());
  scored_end_ = std::max(turns_.back().start_tokens, 1u);
  view_.chunk_limit_tokens = scores_prompt() ? kScoredChunkTokens : 0;
  state_ = RequestState::kQueued;
  view_.sequence_tokens = static_cast<uint32_t>(tokens_.size());
  view_.live = true;
  view_.decoding = false;
  // A continuation holds old blocks, not yet those of its new input: it can be dropped until it is given them.
  view_.preemptible = true;
}

void Request::ReserveToken() {
  if (tokens_.size() == tokens_.capacity()) tokens_.reserve(std::min(max_session_tokens_, 2 * tokens_.size()));
  if (distinct_) distinct_->Reserve(1);
  if (output_counts_) output_counts_->Reserve(1);
}

void Request::Judge(TokenId token, std::span<const TokenId> eos_token_ids, RowResult& result) const noexcept {
  result.token = token;
  const auto is_in = [token](std::span<const TokenId> ids) {
    return std::find(ids.begin(), ids.end(), token) != ids.end();
  };
  if (!settings_.ignore_eos && is_in(eos_token_ids)) {
    result.finish = FinishReason::kEos;
    return;
  }
  result.appends = true;
  if (is_in(settings_.stop_tokens)) {
    result.finish = FinishReason::kEos;
    result.is_text = false;
  } else if (settings_.max_generated_tokens != 0 && usage_.generated_tokens + 1 >= settings_.max_generated_tokens) {
    result.finish = FinishReason::kMaxGeneratedTokens;
  } else if (tokens_.size() + 1 >= max_session_tokens_) {
    result.finish = FinishReason::kMaxSessionTokens;
  }
}

void Request::StageGrammar(RowResult& result) {
  // An ending of its own needs nothing more from the grammar; a limit may still coincide with its end.
  if (cursor_ == nullptr || !result.appends || result.finish == FinishReason::kEos) return;
  cursor_->Stage(result.token);
  if (cursor_->IsComplete()) result.finish = FinishReason::kEos;
}

void Request::RollbackGrammar() noexcept {
  if (cursor_ != nullptr) cursor_->Rollback();
}

std::span<const uint32_t> Request::GrammarMask() {
  const std::span<const uint32_t> mask = cursor_->Mask();
  TokenId forced = 0;
  // What follows a sampled token was looked up before the step, unless the tokens are to come one by one.
  const bool looked_up = view_.decoding && !settings_.logprobs.of_output();
  if (!looked_up && cursor_->ForcedTokens({&forced, 1}) == 1) {
    grammar_mask_.assign(mask.size(), 0);
    search::SetBit(grammar_mask_, forced);
    return grammar_mask_;
  }
  if (settings_.stop_tokens.empty() || !cursor_->MayEnd()) return mask;
  grammar_mask_.assign(mask.begin(), mask.end());
  for (const TokenId token : settings_.stop_tokens) search::SetBit(grammar_mask_, token);
  return grammar_mask_;
}

void Request::StageText(RowResult& result) {
  if (!text_ || result.failed()) return;
  text_->Restart();
  if (result.appends) {
    result.matched_stop_string = text_->Take(result.token, result.text);
    const bool matched = result.matched_stop_string != StopStrings::kNoMatch;
    if (matched) {
      result.finish = FinishReason::kStopString;
    } else if (!result.is_text) {
      result.text.clear();
      text_->Restart();
    }
  }
  if (result.finish != FinishReason::kNone) text_->Finish(result.text);
}

uint32_t Request::logits_rows(const RowPlan& row) const noexcept {
  if (!scores_prompt()) return row.samples() ? 1 : 0;
  const uint32_t first = std::max(row.past_tokens, scored_end_ - 1);
  return row.past_tokens + row.scheduled_tokens - std::min(first, row.past_tokens + row.scheduled_tokens);
}

void Request::CommitRow(const RowPlan& row, RowResult& result, uint64_t step) noexcept {
  view_.cached_tokens = row.past_tokens + row.scheduled_tokens;
  // Counted at the first admission of a turn only: a preemption shows nowhere.
  if (state_ == RequestState::kQueued && row.hit_blocks > 0) {
    usage_.cached_prompt_tokens = row.past_tokens - std::min(row.past_tokens, turns_.back().start_tokens);
  }
  for (search::TokenLogprobs& scored : result.prompt_logprobs) {
    prompt_logprobs_->push_back(std::move(scored));
    ++scored_end_;
  }
  if (!scores_prompt()) view_.chunk_limit_tokens = 0;
  AppendOutput(result);
  view_.decoding = result.appends;
  view_.preemptible = row.samples();
  view_.last_progress_step = step;
  state_ = RequestState::kActive;
}

void Request::AppendOutput(const RowResult& result) noexcept {
  if (!result.appends) return;
  if (text_) text_->Commit();
  if (cursor_ != nullptr) cursor_->Commit();
  tokens_.push_back(result.token);
  if (distinct_) distinct_->Append(result.token);
  if (output_counts_) output_counts_->Append(result.token);
  ++usage_.generated_tokens;
  view_.sequence_tokens = static_cast<uint32_t>(tokens_.size());
  // Not when more than this token is to be computed.
  view_.decoding = view_.pending_tokens() == 1;
  view_.preemptible = true;
}

void Request::EndTurn() noexcept {
  state_ = RequestState::kTurnComplete;
  view_.live = false;
  view_.decoding = false;
  view_.tail_shared = false;  // looked up for those with a live turn only, and stale from here on
  view_.chunk_limit_tokens = 0;
  text_.reset();
  cursor_.reset();
  prompt_logprobs_.reset();
  prompt_end_ = 0;
}

void Request::TruncateToTurn(const TurnRecord& turn) noexcept {
  const TurnRecord target = turn;
  tokens_.resize(target.start_tokens);
  while (!turns_.empty() && turns_.back().id >= target.id) turns_.pop_back();
  seed_ = target.seed;
  distinct_.reset();  // the next turn builds its own
  output_counts_.reset();
  view_.sequence_tokens = target.start_tokens;
  view_.cached_tokens = std::min(view_.cached_tokens, target.start_tokens);
  failed_ = false;
}

void Request::CopySequence(const Request& source) {
  tokens_ = source.tokens_;
  turns_ = source.turns_;
  for (TurnRecord& turn : turns_) turn.seed = seed_;  // where it rewinds to, it draws differently too
  turn_id_ = source.turn_id_;
  view_.sequence_tokens = source.view_.sequence_tokens;
  state_ = RequestState::kTurnComplete;
}

void Request::Detach() noexcept {
  state_ = RequestState::kClosed;
  // Assigned, not cleared: a closed request whose handle lives on should not keep a long sequence in memory.
  tokens_ = {};
  turns_ = {};
  settings_ = {};
  distinct_.reset();
  output_counts_.reset();
  text_.reset();
  cursor_.reset();
  prompt_logprobs_.reset();
  prompt_end_ = 0;
  view_ = {};
}

void Request::Validate() const {
  const bool live = turn_live();
  CheckInvariant(!live || view_.cached_tokens < tokens_.size(), "R1", "a live turn has nothing left to compute");
  CheckInvariant(live == view_.live, "R2", "the view and the state disagree about a live turn");
  for (size_t i = 1; i < turns_.size(); ++i) {
    CheckInvariant(turns_[i - 1].id < turns_[i].id && turns_[i - 1].start_tokens < turns_[i].start_tokens, "R3",
                   "turns are out of order");
  }
  CheckInvariant(turns_.empty() || turns_.back().id <= turn_id_, "R3", "a turn id was not handed out");
  CheckInvariant(view_.sequence_tokens == tokens_.size(), "R4", "the view has another length");
  CheckInvariant(tokens_.size() <= max_session_tokens_, "R5", "the sequence is longer than its limit");
  CheckInvariant(!scores_prompt() || view_.cached_tokens < scored_end_, "R6", "a token was cached but not scored");
}

}  // namespace oga
