#include "model/onnx_model.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/printable_text.h"
#include "config/read_file.h"
#include "kernels/simd/cpu_isa.h"
#include "model/onnx_executor.h"
#include "onnx/onnx_file.h"
#include "onnx/onnx_products.h"
#include "operators/cpu/cpu_operators.h"

namespace oga {

namespace {

// A session and the memory it holds, which is given back after it.
struct ChargedSession {
  ChargedSession(const std::string& path, const GenaiConfig& config, uint64_t file_bytes, Ledger& ledger)
      : weights(ledger.Claim(MemoryRole::kWeights, file_bytes, BeyondMemory::kAttribute)),
        workspace(ledger.Open(MemoryRole::kWorkspace, BeyondMemory::kAttribute)),
        session(path, Options(path, config)) {
    weights.Settle();
    workspace.Settle();
  }

  ort::SessionOptions Options(const std::string& path, const GenaiConfig& config) {
    const SessionConfig& chosen = config.decoder().session;
    auto options = operators::CpuSessionOptions({.intra_op_threads = chosen.intra_op_num_threads.value_or(0),
                                                 .matmul = chosen.cpu_matmul,
                                                 .has_half_products = HasHalfProducts(path),
                                                 .weights = &weights,
                                                 .workspace = &workspace});
    options.device = MakeDevice(config.providers());
    return options;
  }

  // As large as the files, but for weights that were packed, whose bytes are counted. More than there seems to be room
  // for may work: the kernel drops pages of a mapped file and reads them again.
  Lease weights;
  Lease workspace;  // of the operators
  const ort::Session session;
};

// What can be told without the runtime is told first: its messages about files and settings are worse.
std::shared_ptr<const ort::Session> OpenSession(const GenaiConfig& config, Ledger& ledger) {
  config.CheckRunnable();
  const kernels::CpuIsa isa = kernels::SelectedCpuIsa();
  const std::string path = config.decoder_path();
  const OnnxFileBytes files = CheckOnnxFiles(path);
  const auto charged = std::make_shared<ChargedSession>(path, config, files.total(), ledger);
  log::Info(Message("loaded ", Printable(path), " with ", kernels::CpuIsaName(isa), " kernels"));
  return {charged, &charged->session};
}

}  // namespace

OnnxModel::OnnxModel(const GenaiConfig& config, Ledger& ledger)
    : config_(config),
      ledger_(ledger),
      session_(OpenSession(config, ledger)),
      manifest_(ReadManifest(session_->inputs(), session_->outputs(), config)),
      traits_{.vocab_size = config.vocab_size(), .eos_token_ids = config.eos_token_ids(), .search = config.search()} {
  traits_.sampleable_tokens = CountSampleable();
  traits_.logits_of_any_token = manifest_.logits_rows != LogitsRows::kPerRow;
}

std::shared_ptr<const Tokenizer> OnnxModel::tokenizer() const {
  const std::lock_guard lock(tokenizer_mutex_);
  if (!tokenizer_) tokenizer_ = Tokenizer::FromConfig(config_);
  return tokenizer_;
}

// One above the largest id that the tokenizer knows; from there on the vocabulary is padding. 0 when nobody can tell.
int32_t OnnxModel::CountSampleable() const {
  if (!FileExists(config_.folder() + "/" + kTokenizerFileName)) return 0;
  try {
    const auto known = static_cast<int64_t>(tokenizer()->token_bytes()->size());
    return static_cast<int32_t>(std::min<int64_t>(known, config_.vocab_size()));
  } catch (const Error& error) {
    // Token ids work without text; whoever asks for text gets the error.
    log::Warning(
        Message("the tokenizer cannot be used, so text is not available and padding of the vocabulary may be "
                "sampled: ",
                error.message()));
    return 0;
  }
}

SizedLimits OnnxModel::ResolveLimits() const {
  session_->CheckProcess();
  return ResolveEngineLimits(config_, manifest_.bytes_per_slot(), ledger_);
}

std::unique_ptr<ModelExecutor> OnnxModel::CreateExecutor(SizedLimits sized) const {
  session_->CheckProcess();
  auto executor = std::make_unique<OnnxExecutor>(session_, manifest_, std::move(sized), ledger_);
  if (log::IsEnabled(log::Level::kInfo)) log::Info(ledger_.Report().Text());
  return executor;
}

std::shared_ptr<const Model> LoadOnnxModel(const GenaiConfig& config) {
  return std::make_shared<const OnnxModel>(config);
}

}  // namespace oga
