// The integer inputs of a step: packed tokens, row borders, lengths, tables, positions, and which logits are wanted.
//
// Owned by one executor, used on its engine's thread.
#pragma once

#include <span>

#include "model/input_tensor.h"
#include "model/manifest.h"
#include "step/execution_batch.h"

namespace oga {

class PackedInputs {
 public:
  // All references must outlive the inputs.
  PackedInputs(const DecoderManifest& manifest, ort::IoBinding& binding, DeviceStream& stream, Ledger& ledger);

  // Writes and binds every input of `batch`; they are there when the stream is synchronised, as it must be before the
  // next call. `logits_indices` stands in for the batch's own.
  void Pack(const ExecutionBatch& batch, std::span<const int64_t> logits_indices);

 private:
  void PackTables(const ExecutionBatch& batch);
  void PackMetadata(const ExecutionBatch& batch);
  void PackPositions(const ExecutionBatch& batch);
  void PackLogitsIndices(std::span<const int64_t> indices);

  const DecoderManifest& manifest_;
  InputTensor input_ids_;
  InputTensor cumulative_lengths_;
  InputTensor past_lengths_;
  InputTensor block_table_;
  InputTensor attention_metadata_;
  InputTensor position_ids_;
  InputTensor logits_indices_;
};

// Throws Error{kInvalidArgument} unless the parts of `batch` fit together: borders that start at 0, end at the number
// of tokens and give every row at least one; a table of rows * columns; indices ascending within the tokens.
void CheckBatch(const ExecutionBatch& batch);

}  // namespace oga
