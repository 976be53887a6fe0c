#include "native/engine/scripted_executor.h"

#include <stdexcept>
#include <utility>

namespace oga::testing {

TokenId HashedNext(std::span<const TokenId> history, int32_t vocab_size) {
  uint64_t hash = 1469598103934665603ull;
  for (const TokenId token : history) hash = (hash ^ static_cast<uint64_t>(token + 1)) * 1099511628211ull;
  return static_cast<TokenId>((hash >> 17) % static_cast<uint64_t>(vocab_size));
}

ScriptedExecutor::ScriptedExecutor(const EngineLimits& limits, int32_t vocab_size, NextToken next)
    : block_size_(static_cast<int32_t>(limits.block_size_slots)),
      vocab_size_(vocab_size),
      next_(std::move(next)),
      storage_(*device_, {.num_layers = 1,
                          .num_blocks = limits.num_blocks,
                          .block_size_slots = limits.block_size_slots,
                          .num_kv_heads = 1,
                          .head_size = 1}),
      slots_(limits.pool_slots()) {}

ScriptedExecutor::~ScriptedExecutor() = default;

ExecutionResult ScriptedExecutor::Execute(const ExecutionBatch& batch) {
  ++executions;
  last_rows = batch.rows();
  last_tokens = batch.token_ids.size();
  Outcome outcome;
  if (!outcomes.empty()) {
    outcome = outcomes.front();
    outcomes.pop_front();
  }
  for (const BlockCopy& copy : batch.block_copies) storage_.CopyBlock(*stream_, copy.source, copy.target);
  WriteTokens(batch, outcome.writes_before_failure);
  ReadSlots();
  if (outcome.throws) throw std::runtime_error("scripted exception");
  ExecutionResult result;
  result.status = outcome.status;
  if (result.status != ExecutionStatus::kOk) {
    result.message = "scripted failure";
    return result;
  }
  FillLogits(batch);
  result.logits = std::span<const float>(logits_).first(logits_.size() - (outcome.wrong_shape ? 1 : 0));
  return result;
}

size_t ScriptedExecutor::Slot(const ExecutionBatch& batch, size_t row, int32_t position) const {
  const int32_t column = position / block_size_;
  if (column >= batch.block_table_columns) throw std::runtime_error("a position lies beyond the block table");
  const BlockId block = batch.block_table[row * batch.block_table_columns + column];
  if (block < 0) throw std::runtime_error("a position's block is not mapped");
  return static_cast<size_t>(block) * block_size_ + position % block_size_;
}

void ScriptedExecutor::WriteTokens(const ExecutionBatch& batch, size_t limit) {
  if (record_rows) last_row_tokens.clear();
  written_.clear();
  written_.reserve(batch.token_ids.size());  // what is being copied stays where it is
  const DeviceAddress keys = storage_.Tensor(0, KvSide::kKey);
  for (size_t row = 0; row < batch.rows(); ++row) {
    const int32_t first = batch.cumulative_lengths[row];
    const int32_t last = batch.cumulative_lengths[row + 1];
    if (record_rows) {
      last_row_tokens.emplace_back(batch.token_ids.begin() + first, batch.token_ids.begin() + last);
    }
    for (int32_t t = first; t < last && static_cast<size_t>(t) < limit; ++t) {
      written_.push_back(batch.token_ids[t] - kNothing);
      const size_t slot = Slot(batch, row, batch.past_lengths[row] + t - first);
      stream_->CopyToDevice(keys + slot * sizeof(int32_t), &written_.back(), sizeof(int32_t));
    }
  }
}

void ScriptedExecutor::ReadSlots() {
  stream_->CopyToHost(slots_.data(), storage_.Tensor(0, KvSide::kKey), slots_.size() * sizeof(int32_t));
  stream_->Synchronize();
}

void ScriptedExecutor::FillLogits(const ExecutionBatch& batch) {
  logits_.assign(batch.logits_indices.size() * vocab_size_, 0.0f);
  size_t row = 0;
  for (size_t i = 0; i < batch.logits_indices.size(); ++i) {
    const int64_t token = batch.logits_indices[i];
    while (token >= batch.cumulative_lengths[row + 1]) ++row;
    const int32_t length = batch.past_lengths[row] + static_cast<int32_t>(token) - batch.cumulative_lengths[row] + 1;
    history_.clear();
    for (int32_t p = 0; p < length; ++p) {
      history_.push_back(slots_[Slot(batch, row, p)] + kNothing);
      if (history_.back() == kNothing) throw std::runtime_error("a row reads a slot that was never written");
    }
    const std::span<float> logits = std::span(logits_).subspan(i * vocab_size_, vocab_size_);
    logits[next_(history_)] = 10.0f;
    if (edit_logits) edit_logits(logits, history_);
  }
}

}  // namespace oga::testing
