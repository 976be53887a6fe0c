// A decoder loaded through ONNX Runtime; what LoadOnnxModel of model.h returns.
//
// Immutable after construction, used from any thread.
#pragma once

#include <memory>
#include <string>

#include "model/manifest.h"
#include "model/model.h"
#include "ort/session.h"

namespace oga {

class OnnxModel final : public Model {
 public:
  explicit OnnxModel(const GenaiConfig& config);

  const std::string& type() const override { return config_.model_type(); }
  const std::string& device_type() const override { return device_type_; }
  const ModelTraits& traits() const override { return traits_; }
  EngineLimits ResolveLimits() const override;
  std::unique_ptr<ModelExecutor> CreateExecutor(const EngineLimits& limits) const override;

 private:
  GenaiConfig config_;
  std::shared_ptr<const ort::Session> session_;
  DecoderManifest manifest_;
  ModelTraits traits_;
  std::string device_type_ = "CPU";
};

}  // namespace oga
