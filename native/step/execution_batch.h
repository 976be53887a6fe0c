// What one model execution reads and returns. Plain views: the caller owns all memory and keeps it alive for the call.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "step/ids.h"

namespace oga {

// Copies one block of every layer and side before the model runs (copy on write).
struct BlockCopy {
  BlockId source;
  BlockId target;
};

// The packed rows of one step. Row i owns tokens [cumulative_lengths[i], cumulative_lengths[i + 1]) and writes their
// keys and values at positions past_lengths[i] onwards, through block_table row i.
struct ExecutionBatch {
  std::span<const TokenId> token_ids;           // [tokens]
  std::span<const int32_t> cumulative_lengths;  // [rows + 1], starts at 0
  std::span<const int32_t> past_lengths;        // [rows], committed cache length
  std::span<const BlockId> block_table;         // [rows * block_table_columns], row-major, kUnmappedBlock beyond
  int32_t block_table_columns = 0;
  std::span<const int64_t> logits_indices;  // [sampled], ascending packed token indices
  std::span<const BlockCopy> block_copies;  // performed before the execution

  size_t rows() const { return past_lengths.size(); }
};

enum class ExecutionStatus {
  kOk,
  kRetryable,         // failed, nothing lost: a later attempt may succeed
  kCapacityExceeded,  // ran out of memory, nothing lost
  kFatal,             // failed for good, or nobody can tell
};

// `logits` holds one vocabulary-sized row per entry of `logits_indices`, in that order, and is valid until the next
// execution. On failure it is empty and `message` says why.
struct ExecutionResult {
  ExecutionStatus status = ExecutionStatus::kOk;
  std::span<const float> logits;
  std::string message;
};

}  // namespace oga
