// Request: one sequence with all its turns.
//
//        BeginTurn            first committed step           turn ends
//  Created ------> Queued -------------------------> Active -----------> TurnComplete
//                    ^                                                        |
//                    +----------------------- BeginTurn ----------------------+
//  any state -- Close, abandonment, or the engine's end --> Closed
//
// Owned jointly by the host's handle, the engine (while not closed) and undelivered or borrowed events. The host's calls
// belong to the owner thread of the engine; from elsewhere they throw InvalidState and change nothing. Only
// ReleaseHandle may run on any thread.
//
// R1  cached tokens are fewer than sequence tokens while a turn is live
// R2  a turn is live exactly in Queued and Active
// R3  turn ids rise and are never reused; turns start at rising positions of the sequence
// R4  the scheduler's view repeats the request's own counts
// R5  the sequence never exceeds the session limit
// R6  while a prompt is scored, no more tokens are cached than were scored
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/event.h"
#include "engine/options.h"
#include "engine/run_queues.h"
#include "engine/turn_options.h"
#include "engine/turn_text.h"
#include "grammar/grammar_cursor.h"
#include "search/distinct_tokens.h"
#include "search/token_counts.h"
#include "step/ids.h"
#include "step/plan.h"
#include "step/sampling.h"
#include "step/views.h"

namespace oga {

class Engine;
namespace testing {
struct RequestAccess;
}

enum class RequestState { kCreated, kQueued, kActive, kTurnComplete, kClosed };

// What a turn starts with besides its input.
struct TurnSetup {
  SamplingSettings settings;
  std::optional<TurnText> text{};                    // none when nobody reads it
  std::unique_ptr<grammar::GrammarCursor> cursor{};  // null without guidance
};

// What a step decided for one row; staged until the commit.
struct RowResult {
  bool appends = false;  // `token` joins the sequence and is told to the host
  bool is_text = true;   // false for a stop token
  TokenId token = 0;
  FinishReason finish = FinishReason::kNone;
  FailureKind failure = FailureKind::kNone;  // of kFailed
  int32_t matched_stop_string = StopStrings::kNoMatch;
  std::string text;  // that became certain
  std::shared_ptr<const search::TokenLogprobs> logprobs;
  PromptLogprobs prompt_logprobs;  // of the input tokens that the row computed the predecessors of

  bool failed() const noexcept { return finish == FinishReason::kFailed; }
  void Fail(FailureKind kind) noexcept {
    finish = FinishReason::kFailed;
    failure = kind;
  }
  static RowResult Failed(FailureKind kind) noexcept {
    RowResult result;
    result.Fail(kind);
    return result;
  }
};

class Request : public std::enable_shared_from_this<Request> {
 public:
  // Output tokens that room is made for when a turn starts, so that decoding does not stop to grow vectors; longer turns
  // grow geometrically.
  static constexpr uint64_t kEagerTokens = 4096;
  // Most tokens of a step while the log-probabilities of a prompt are computed: each needs a row of logits.
  static constexpr uint32_t kScoredChunkTokens = 64;

  Request(std::weak_ptr<Engine> engine, std::shared_ptr<std::atomic<bool>> abandonment, RequestIndex index,
          RequestId id, uint64_t max_session_tokens, int32_t priority, uint64_t seed);

  // --- The host's calls; include/oga/request.h states their contracts -------------------------------------------------
  TurnId BeginTurn(std::span<const TokenId> input, const TurnOptions* options);
  bool CancelTurn(TurnId id);
  void RewindToStartOfTurn(TurnId id);
  std::shared_ptr<Request> Fork();
  void Close();
  std::unique_ptr<TurnOptions> CreateTurnOptions();
  // Throws unless the request is open and the caller is the owner thread of its engine.
  void CheckUsable() const;
  // Throws when the request is closed.
  void CheckOpen() const;

  // The C boundary's handle keeps the request alive from AdoptHandle to ReleaseHandle. Releasing marks an open request
  // abandoned; the engine reclaims it at its next boundary.
  void AdoptHandle() noexcept;
  void ReleaseHandle() noexcept;

  // --- For the engine -------------------------------------------------------------------------------------------------
  struct TurnRecord {
    TurnId id = 0;
    uint32_t start_tokens = 0;  // length of the sequence before the turn
    uint64_t seed = 0;          // of the request before the turn
  };

  RequestState state() const noexcept { return state_; }
  bool turn_live() const noexcept { return state_ == RequestState::kQueued || state_ == RequestState::kActive; }
  bool abandoned() const noexcept { return abandoned_.load(); }
  bool failed() const noexcept { return failed_; }
  RequestIndex index() const noexcept { return view_.index; }
  RequestId id() const noexcept { return view_.request; }
  std::span<const TokenId> tokens() const noexcept { return tokens_; }
  uint64_t max_session_tokens() const noexcept { return max_session_tokens_; }
  TurnId turn_id() const noexcept { return turn_id_; }
  const TurnRecord* FindTurn(TurnId id) const noexcept;
  const std::vector<TurnRecord>& turns() const noexcept { return turns_; }
  const SamplingSettings& settings() const noexcept { return settings_; }
  uint64_t seed() const noexcept { return seed_; }
  TurnUsage usage() const noexcept { return usage_; }
  // Empty when no option of the turn reads them.
  std::span<const TokenId> penalized_tokens() const noexcept;
  std::span<const search::TokenCount> output_counts() const noexcept;

  // The first position of the sequence whose token is not scored yet; meaningful while scores_prompt().
  uint32_t scored_end() const noexcept { return scored_end_; }
  // Whether log-probabilities of the live turn's input are still to be computed.
  bool scores_prompt() const noexcept { return scored_end_ < prompt_end_; }
  // How many of the row's last tokens need logits: those that predict input tokens to be scored, and the last one of a
  // row that samples.
  uint32_t logits_rows(const RowPlan& row) const noexcept;
  // The log-probabilities of the turn's input, once: null when they were not asked for or are already taken.
  std::shared_ptr<const PromptLogprobs> TakePromptLogprobs() noexcept { return std::move(prompt_logprobs_); }

  CandidateView& view() noexcept { return view_; }
  const CandidateView& view() const noexcept { return view_; }
  QueuePlace place = QueuePlace::kNone;

  // Appends the input and makes the turn live. Strong guarantee: on an exception nothing changed.
  void StartTurn(std::span<const TokenId> input, TurnSetup setup, int32_t vocab_size);
  // Makes room for one more token. May throw std::bad_alloc; changes nothing visible.
  void ReserveToken();
  // What the sampled token means for the turn, without changing anything.
  void Judge(TokenId token, std::span<const TokenId> eos_token_ids, RowResult& result) const noexcept;
  // Stages the result's token in the turn's grammar, and the ending that a complete grammar gives it. May throw, and then
  // nothing changed that RollbackGrammar does not undo.
  void StageGrammar(RowResult& result);
  void RollbackGrammar() noexcept;
  // The turn's cursor; null without guidance.
  grammar::GrammarCursor* cursor() noexcept { return cursor_.get(); }
  // The mask of the next token: the grammar's, and a stop token where the turn may end. Throws as GrammarCursor::Mask.
  std::span<const uint32_t> GrammarMask();

  // Stages what the result means for the turn's text, and the ending that a stop string gives it. May throw
  // std::bad_alloc; nothing is changed until CommitRow.
  void StageText(RowResult& result);
  // Publishes a step's outcome for this row.
  void CommitRow(const RowPlan& row, RowResult& result, uint64_t step) noexcept;
  // Publishes a token that needed no row: the part of CommitRow that concerns the output.
  void AppendOutput(const RowResult& result) noexcept;
  void EndTurn() noexcept;
  void MarkFailed() noexcept { failed_ = true; }
  void TruncateToTurn(const TurnRecord& turn) noexcept;
  // Takes over the sequence of `source`. May throw; nothing else knows the request yet.
  void CopySequence(const Request& source);
  // The last change: no engine, no tokens, no turn. The handle stays usable for destruction.
  void Detach() noexcept;

  void Validate() const;

 private:
  friend struct testing::RequestAccess;

  std::shared_ptr<Engine> LockEngine() const;  // throws when closed or the engine is gone

  std::weak_ptr<Engine> engine_;
  std::shared_ptr<std::atomic<bool>> abandonment_;  // tells the engine that some request was abandoned
  std::atomic<bool> abandoned_{false};
  std::mutex handle_mutex_;
  std::shared_ptr<Request> handle_;  // the C handle's share

  std::atomic<RequestState> state_{RequestState::kCreated};
  uint64_t max_session_tokens_;
  uint64_t seed_;
  bool failed_ = false;  // the last turn ended Failed by its own fault; only rewind and close are left
  std::vector<TokenId> tokens_;
  std::vector<TurnRecord> turns_;
  TurnId turn_id_ = 0;  // of the current or last turn
  SamplingSettings settings_;
  TurnUsage usage_;
  std::optional<search::DistinctTokens> distinct_;    // kept only while a repetition penalty acts
  std::optional<search::TokenCounts> output_counts_;  // of the turn; kept only while they are penalised
  std::optional<TurnText> text_;                      // of the live turn; none when nobody reads it
  std::unique_ptr<grammar::GrammarCursor> cursor_;    // of the live turn; null without guidance
  std::vector<uint32_t> grammar_mask_;                // scratch of GrammarMask
  std::shared_ptr<PromptLogprobs> prompt_logprobs_;   // of the live turn's input; null unless asked for
  uint32_t scored_end_ = 0;                           // position up to which they are computed
  uint32_t prompt_end_ = 0;                           // 0: none are wanted
  CandidateView view_;
};

}  // namespace oga
