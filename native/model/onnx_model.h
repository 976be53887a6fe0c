// A decoder loaded through ONNX Runtime; what LoadOnnxModel of model.h returns.
//
// Immutable after construction but for the tokenizer, which is read once; used from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "model/manifest.h"
#include "model/model.h"
#include "ort/session.h"

namespace oga {

class OnnxModel final : public Model {
 public:
  // The ledger outlives the model and its executors.
  explicit OnnxModel(const GenaiConfig& config, Ledger& ledger = Ledger::Cpu());

  const std::string& type() const override { return config_.model_type(); }
  const std::string& device_type() const override { return session_->device().name(); }
  const ModelTraits& traits() const override { return traits_; }
  std::shared_ptr<const Tokenizer> tokenizer() const override;
  SizedLimits ResolveLimits() const override;
  std::unique_ptr<ModelExecutor> CreateExecutor(SizedLimits sized) const override;

 private:
  int32_t CountSampleable() const;

  GenaiConfig config_;
  Ledger& ledger_;
  std::shared_ptr<const ort::Session> session_;
  DecoderManifest manifest_;
  ModelTraits traits_;
  mutable std::mutex tokenizer_mutex_;
  mutable std::shared_ptr<const Tokenizer> tokenizer_;  // null until it is asked for
};

}  // namespace oga
