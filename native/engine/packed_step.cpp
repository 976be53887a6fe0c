#include "engine/packed_step.h"

#include <algorithm>

namespace oga {

namespace {

// Grows geometrically: tables widen by one column at a time while sequences grow.
template <typename Vector>
void ClearAndReserve(Vector& vector, size_t size) {
  vector.clear();
  if (size > vector.capacity()) vector.reserve(std::max(size, 2 * vector.capacity()));
}

}  // namespace

void PackedStep::Begin(size_t rows, size_t tokens, uint32_t table_columns) {
  table_columns_ = table_columns;
  ClearAndReserve(token_ids_, tokens);
  ClearAndReserve(cumulative_lengths_, rows + 1);
  ClearAndReserve(past_lengths_, rows);
  ClearAndReserve(block_table_, rows * table_columns);
  ClearAndReserve(logits_indices_, rows);
  cumulative_lengths_.push_back(0);
}

std::span<BlockId> PackedStep::AddRow(std::span<const TokenId> tokens, uint32_t past_tokens, uint32_t logits_rows) {
  token_ids_.insert(token_ids_.end(), tokens.begin(), tokens.end());
  cumulative_lengths_.push_back(static_cast<int32_t>(token_ids_.size()));
  past_lengths_.push_back(static_cast<int32_t>(past_tokens));
  for (uint32_t i = logits_rows; i > 0; --i) logits_indices_.push_back(static_cast<int64_t>(token_ids_.size() - i));
  block_table_.resize(block_table_.size() + table_columns_, kUnmappedBlock);
  return std::span(block_table_).last(table_columns_);
}

ExecutionBatch PackedStep::Batch(std::span<const BlockCopy> copies) const noexcept {
  ExecutionBatch batch;
  batch.token_ids = token_ids_;
  batch.cumulative_lengths = cumulative_lengths_;
  batch.past_lengths = past_lengths_;
  batch.block_table = block_table_;
  batch.block_table_columns = static_cast<int32_t>(table_columns_);
  batch.logits_indices = logits_indices_;
  batch.block_copies = copies;
  return batch;
}

}  // namespace oga
