// PackedStep: the packed inputs of one execution, in buffers that are reused from step to step.
//
// Owned by one Engine; owner thread. Allocates only when a step is larger than every one before it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "step/execution_batch.h"
#include "step/ids.h"

namespace oga {

class PackedStep {
 public:
  // Starts a batch of this size.
  void Begin(size_t rows, size_t tokens, uint32_t table_columns);

  // Appends a row; returns where its block table goes. The logits of its last `logits_rows` tokens are wanted.
  std::span<BlockId> AddRow(std::span<const TokenId> tokens, uint32_t past_tokens, uint32_t logits_rows);

  // A view of the batch, valid until the next Begin.
  ExecutionBatch Batch(std::span<const BlockCopy> copies) const noexcept;

 private:
  uint32_t table_columns_ = 0;
  std::vector<TokenId> token_ids_;
  std::vector<int32_t> cumulative_lengths_;
  std::vector<int32_t> past_lengths_;
  std::vector<BlockId> block_table_;
  std::vector<int64_t> logits_indices_;
};

}  // namespace oga
