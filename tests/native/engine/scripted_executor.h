// A ModelExecutor without a model: its logits are a function of the whole history of a row, read back through the block
// tables, so that a wrong table, a lost block or a stale slot changes the tokens.
//
// It keeps, per physical slot of the cache, the token written there. A row's history is read through its table, exactly as
// attention would read keys.
#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/model_executor.h"
#include "step/engine_limits.h"

namespace oga::testing {

// The token that follows a history: what the naive reference and the executor agree on.
using NextToken = std::function<TokenId(std::span<const TokenId>)>;

TokenId HashedNext(std::span<const TokenId> history, int32_t vocab_size);

class ScriptedExecutor : public ModelExecutor {
 public:
  ScriptedExecutor(const EngineLimits& limits, int32_t vocab_size, NextToken next);
  ~ScriptedExecutor() override;

  int32_t vocab_size() const override { return vocab_size_; }
  uint64_t block_bytes() const override { return 64; }

  // One entry is consumed per execution; afterwards every execution succeeds.
  struct Outcome {
    ExecutionStatus status = ExecutionStatus::kOk;
    bool throws = false;
    bool wrong_shape = false;
    size_t writes_before_failure = std::numeric_limits<size_t>::max();  // tokens
  };
  std::deque<Outcome> outcomes;

  // Called with the logits of a sampled row and its history before they are returned.
  std::function<void(std::span<float>, std::span<const TokenId>)> edit_logits;

  size_t executions = 0;
  size_t last_rows = 0;
  size_t last_tokens = 0;
  std::vector<std::vector<TokenId>> last_row_tokens;
  bool record_rows = false;

  ExecutionResult Execute(const ExecutionBatch& batch) override;

 private:
  static constexpr TokenId kNothing = -7;

  size_t Slot(const ExecutionBatch& batch, size_t row, int32_t position) const;
  void CopyBlock(const BlockCopy& copy);
  void WriteTokens(const ExecutionBatch& batch, size_t limit);
  void FillLogits(const ExecutionBatch& batch);

  const int32_t block_size_;
  const int32_t vocab_size_;
  const NextToken next_;
  std::vector<TokenId> slots_;
  std::vector<TokenId> history_;
  std::vector<float> logits_;
};

}  // namespace oga::testing
