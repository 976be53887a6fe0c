// The seam between the engine and whatever computes logits: ONNX Runtime in production, a script in tests.
//
// Owned by one Engine; called on its owner thread only.
#pragma once

#include <cstdint>

#include "step/execution_batch.h"

namespace oga {

class ModelExecutor {
 public:
  virtual ~ModelExecutor() = default;

  // Runs one step. May write keys and values of the batch's own positions into cache blocks the batch maps, and the
  // targets of its block copies; nothing else is visible. Reports every failure by status; an exception that escapes is
  // treated as kFatal, a ContractError as the broken promise it is.
  virtual ExecutionResult Execute(const ExecutionBatch& batch) = 0;

  // Width of a logits row.
  virtual int32_t vocab_size() const = 0;

  // Bytes of keys and values of one block over all layers; 0 when the executor keeps no cache.
  virtual uint64_t block_bytes() const = 0;
};

}  // namespace oga
