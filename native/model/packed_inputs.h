// The integer inputs of a step: packed tokens, row borders, lengths, tables, positions, and which logits are wanted.
//
// Owned by one executor, used on its engine's thread.
#pragma once

#include <span>

#include "model/bound_tensor.h"
#include "model/manifest.h"
#include "step/execution_batch.h"

namespace oga {

class PackedInputs {
 public:
  // The references must outlive the inputs.
  PackedInputs(const DecoderManifest& manifest, ort::IoBinding& binding, const ort::Environment& environment,
               Ledger& ledger);

  // Writes and binds every input of `batch`. `logits_indices` stands in for the batch's own. Throws Error
  // {kInvalidArgument} for a batch whose parts do not fit together.
  void Pack(const ExecutionBatch& batch, std::span<const int64_t> logits_indices);

 private:
  void PackTables(const ExecutionBatch& batch);
  void PackMetadata(const ExecutionBatch& batch);
  void PackPositions(const ExecutionBatch& batch);
  void PackLogitsIndices(std::span<const int64_t> indices);

  const DecoderManifest& manifest_;
  BoundTensor input_ids_;
  BoundTensor cumulative_lengths_;
  BoundTensor past_lengths_;
  BoundTensor block_table_;
  BoundTensor attention_metadata_;
  BoundTensor position_ids_;
  BoundTensor logits_indices_;
};

// Throws Error{kInvalidArgument} unless the parts of `batch` fit together: borders that start at 0, end at the number
// of tokens and give every row at least one; a table of rows * columns; indices ascending within the tokens.
void CheckBatch(const ExecutionBatch& batch);

}  // namespace oga
