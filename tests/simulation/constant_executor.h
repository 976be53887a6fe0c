// A model that costs nothing: the same logits for every row. For measuring and counting what the engine itself does.
#pragma once

#include <vector>

#include "model/model_executor.h"
#include "step/engine_limits.h"

namespace oga::testing {

class ConstantExecutor final : public ModelExecutor {
 public:
  ConstantExecutor(size_t rows, int32_t vocab_size) : vocab_size_(vocab_size), logits_(rows * vocab_size) {
    for (size_t i = 0; i < logits_.size(); ++i) logits_[i] = static_cast<float>(i % vocab_size % 7);
  }

  ExecutionResult Execute(const ExecutionBatch& batch) override {
    ExecutionResult result;
    result.logits = std::span<const float>(logits_).first(batch.logits_indices.size() * vocab_size_);
    return result;
  }
  int32_t vocab_size() const override { return vocab_size_; }
  uint64_t block_bytes() const override { return 0; }

 private:
  const int32_t vocab_size_;
  std::vector<float> logits_;
};

// Limits that nothing runs into.
inline EngineLimits RoomyLimits(uint32_t rows) {
  EngineLimits limits;
  limits.block_size_slots = 16;
  limits.num_blocks = rows * 600;
  limits.max_batch_size = rows;
  limits.max_scheduled_tokens = 4096;
  limits.max_resident_requests = 4 * rows;
  limits.max_wait_steps = 32;
  limits.context_length_tokens = 1u << 20;
  return limits;
}

}  // namespace oga::testing
