// Runs the steps of one engine through a loaded decoder, over a key-value cache of its own.
//
// Owned by one Engine, used on its thread. Shares the session, whose device says where all tensors live; binds the
// caches once, in and out to the same memory.
#pragma once

#include <memory>

#include "config/limits_resolution.h"
#include "device/device.h"
#include "memory/kv_storage.h"
#include "model/logits_output.h"
#include "model/manifest.h"
#include "model/model_executor.h"
#include "model/packed_inputs.h"
#include "ort/io_binding.h"
#include "ort/session.h"

namespace oga {

class OnnxExecutor final : public ModelExecutor {
 public:
  // Inputs and logits are charged to the ledger, which outlives this; the cache to its lease, once it is there.
  // Throws Error: kResourceExhausted when the cache does not fit, kInvalidArgument for a block size or number of blocks
  // that the graph fixes otherwise.
  OnnxExecutor(std::shared_ptr<const ort::Session> session, const DecoderManifest& manifest, SizedLimits sized,
               Ledger& ledger);

  ExecutionResult Execute(const ExecutionBatch& batch) override;
  int32_t vocab_size() const override { return manifest_.vocab_size; }
  uint64_t block_bytes() const override { return storage_.block_bytes(); }

 private:
  void BindCaches();
  std::span<const float> Run(const ExecutionBatch& batch);
  void RunSession(const ExecutionBatch& batch);
  void DrainCopies() noexcept;

  std::shared_ptr<const ort::Session> session_;
  DecoderManifest manifest_;
  KvStorage storage_;
  ort::IoBinding binding_;
  std::unique_ptr<DeviceStream> stream_;
  PackedInputs inputs_;
  LogitsOutput logits_;
  bool arena_is_large_ = false;  // the runtime's arena may hold the activations of a large step
};

}  // namespace oga
