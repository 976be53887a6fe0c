#include "model/onnx_model.h"

#include "base/error.h"
#include "base/log.h"
#include "base/printable_text.h"
#include "kernels/cpu_isa.h"
#include "model/limits_resolution.h"
#include "model/onnx_executor.h"
#include "model/onnx_file.h"

namespace oga {

namespace {

// What can be told without the runtime is told first: its messages about files and settings are worse.
std::shared_ptr<const ort::Session> OpenSession(const GenaiConfig& config) {
  config.CheckRunnable();
  const kernels::CpuIsa isa = kernels::SelectedCpuIsa();
  const std::string path = config.decoder_path();
  CheckOnnxFiles(path);
  const int threads = config.decoder().session.intra_op_num_threads.value_or(0);
  auto session = std::make_shared<const ort::Session>(path, ort::SessionOptions{threads});
  log::Info(Message("loaded ", Printable(path), " with ", kernels::CpuIsaName(isa), " kernels"));
  return session;
}

}  // namespace

OnnxModel::OnnxModel(const GenaiConfig& config)
    : config_(config),
      session_(OpenSession(config)),
      manifest_(ReadManifest(session_->inputs(), session_->outputs(), config)),
      traits_{.vocab_size = config.vocab_size(), .eos_token_ids = config.eos_token_ids(), .search = config.search()} {}

EngineLimits OnnxModel::ResolveLimits() const { return ResolveEngineLimits(config_, manifest_.bytes_per_slot()); }

std::unique_ptr<ModelExecutor> OnnxModel::CreateExecutor(const EngineLimits& limits) const {
  session_->CheckProcess();
  return std::make_unique<OnnxExecutor>(session_, manifest_, limits);
}

std::shared_ptr<const Model> LoadOnnxModel(const GenaiConfig& config) {
  return std::make_shared<const OnnxModel>(config);
}

}  // namespace oga
