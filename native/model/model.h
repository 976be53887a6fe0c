// A loaded model: its config, its checked graph and the ONNX Runtime session, shared by any number of engines.
//
// Thread-safe after construction (immutable); each engine makes its own executor.
#pragma once

#include <memory>
#include <string>

#include "config/genai_config.h"
#include "config/limits_resolution.h"
#include "model/model_executor.h"
#include "step/engine_limits.h"
#include "text/tokenizer.h"

namespace oga {

class Model {
 public:
  virtual ~Model() = default;

  virtual const std::string& type() const = 0;
  virtual const std::string& device_type() const = 0;  // its device: "CPU"
  virtual const ModelTraits& traits() const = 0;

  // The tokenizer of the model's folder, read when it is first asked for. Throws Error{kNotFound} when there is none,
  // and what Tokenizer::FromConfig throws for one that cannot be used; nothing else of a model needs it.
  virtual std::shared_ptr<const Tokenizer> tokenizer() const;

  // The engine's limits and the memory they take: configured ones as they are, the rest by default, num_blocks from the
  // memory that is really left when it is not configured (reported in the info log).
  virtual SizedLimits ResolveLimits() const = 0;

  // A new executor with its own key-value cache of limits.num_blocks blocks. Throws Error{kResourceExhausted} when the
  // cache does not fit.
  virtual std::unique_ptr<ModelExecutor> CreateExecutor(SizedLimits sized) const = 0;
};

// Loads the graph named by the config and checks it against the config (names, types, ranks, head sizes).
std::shared_ptr<const Model> LoadOnnxModel(const GenaiConfig& config);

}  // namespace oga
