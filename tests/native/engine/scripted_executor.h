// A ModelExecutor without a model: its logits are a function of the whole history of a row, read back through the block
// tables, so that a wrong table, a lost block or a stale slot changes the tokens.
//
// It keeps, per physical slot of the cache, the token written there: in the key of that slot, on the default device. A
// row's history is read through its table, exactly as attention would read keys.
#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/devices.h"
#include "memory/kv_storage.h"
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
  // What a slot holds is one more than its token: a new cache is full of zeros.
  static constexpr TokenId kNothing = -1;

  size_t Slot(const ExecutionBatch& batch, size_t row, int32_t position) const;
  void WriteTokens(const ExecutionBatch& batch, size_t limit);
  void ReadSlots();
  void FillLogits(const ExecutionBatch& batch);

  const int32_t block_size_;
  const int32_t vocab_size_;
  const NextToken next_;
  const std::shared_ptr<const Device> device_ = MakeDevice();
  const std::unique_ptr<DeviceStream> stream_ = device_->CreateStream();
  const KvStorage storage_;
  std::vector<int32_t> written_;  // by this execution, until the stream has copied it
  std::vector<int32_t> slots_;    // the whole cache, as last read
  std::vector<TokenId> history_;
  std::vector<float> logits_;
};

}  // namespace oga::testing
