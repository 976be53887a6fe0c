#include "model/onnx_executor.h"

#include <array>

#include "base/check.h"
#include "base/error.h"
#include "model/execution_failure.h"

namespace oga {

namespace {

// A prompt chunk above this many tokens leaves activations in the runtime's arena that decoding never needs again.
constexpr size_t kLargeStepTokens = 256;

KvShape ShapeOf(const DecoderManifest& manifest, const EngineLimits& limits) {
  const auto require = [](int64_t fixed, uint32_t found, const char* what, const char* key) {
    if (fixed < 0 || fixed == found) return;
    const std::string path = Message("engine.dynamic_batching.", key);
    Throw(StatusCode::kInvalidArgument, Field{path}, "the graph fixes its caches to a ", what, " of ", fixed,
          ", but the engine has ", found, "; set ", path, " to ", fixed);
  };
  require(manifest.fixed_block_size, limits.block_size_slots, "block size", "block_size");
  require(manifest.fixed_num_blocks, limits.num_blocks, "number of blocks", "num_blocks");
  return {.num_layers = static_cast<uint32_t>(manifest.layers.size()),
          .num_blocks = limits.num_blocks,
          .block_size_slots = limits.block_size_slots,
          .num_kv_heads = manifest.num_kv_heads,
          .head_size = manifest.head_size,
          .type = manifest.cache_type};
}

// Checks the shape before it asks the session for its device.
KvStorage MakeStorage(const ort::Session* session, const DecoderManifest& manifest, SizedLimits sized) {
  const KvShape shape = ShapeOf(manifest, sized.limits);
  return KvStorage(session->device(), shape, std::move(sized.cache));
}

ort::ElementType ElementOf(CacheType type) {
  switch (type) {
    case CacheType::kFloat32: break;
    case CacheType::kFloat16: return ort::ElementType::kFloat16;
    case CacheType::kBfloat16: return ort::ElementType::kBfloat16;
    case CacheType::kInt8: return ort::ElementType::kInt8;
  }
  return ort::ElementType::kFloat;
}

}  // namespace

OnnxExecutor::OnnxExecutor(std::shared_ptr<const ort::Session> session, const DecoderManifest& manifest,
                           SizedLimits sized, Ledger& ledger)
    : session_(std::move(session)),
      manifest_(manifest),
      storage_(MakeStorage(session_.get(), manifest, std::move(sized))),
      binding_(*session_),
      stream_(session_->device().CreateStream()),
      inputs_(manifest_, binding_, *stream_, ledger),
      logits_(manifest_, binding_, *stream_, ledger) {
  BindCaches();
}

void OnnxExecutor::BindCaches() {
  const KvShape& shape = storage_.shape();
  const std::array<int64_t, 4> dims = {shape.num_blocks, shape.block_size_slots, shape.num_kv_heads, shape.head_size};
  const ort::ElementType type = ElementOf(shape.type);
  for (uint32_t layer = 0; layer < shape.num_layers; ++layer) {
    const LayerTensors& names = manifest_.layers[layer];
    const auto bind = [&](KvSide side, const std::string& past, const std::string& present) {
      const ort::Tensor cache(*session_, storage_.Tensor(layer, side), storage_.tensor_bytes(), dims, type);
      binding_.BindInput(past, cache);
      binding_.BindOutput(present, cache);
    };
    bind(KvSide::kKey, names.past_key, names.present_key);
    bind(KvSide::kValue, names.past_value, names.present_value);
  }
}

ExecutionResult OnnxExecutor::Execute(const ExecutionBatch& batch) {
  try {
    ExecutionResult result;
    result.logits = Run(batch);
    return result;
  } catch (const ContractError&) {
    DrainCopies();
    throw;
  } catch (...) {
    ExecutionResult result = FailureOfCurrentException(ExecutionStatus::kCapacityExceeded);
    DrainCopies();
    return result;
  }
}

// After a step that failed half-way: no copy of it may happen later, from memory that has gone or into blocks that are
// somebody else's by then.
void OnnxExecutor::DrainCopies() noexcept {
  try {
    stream_->Synchronize();
  } catch (...) {
    // The step has failed already, and its own failure says more.
  }
}

std::span<const float> OnnxExecutor::Run(const ExecutionBatch& batch) {
  CheckBatch(batch);
  // A step that samples nothing still computes one row: graphs are not made for tensors without elements.
  static constexpr int64_t kFirstToken[] = {0};
  const bool samples = !batch.logits_indices.empty();
  const std::span<const int64_t> indices = samples ? batch.logits_indices : std::span<const int64_t>(kFirstToken);
  logits_.Shape(batch, indices);
  for (const BlockCopy& copy : batch.block_copies) storage_.CopyBlock(*stream_, copy.source, copy.target);
  inputs_.Pack(batch, indices);
  stream_->Synchronize();
  RunSession(batch);
  return logits_.Read(batch);
}

// Shrinking takes effect at the end of a run, and the chunks of a long prompt follow each other: so the first small
// step after large ones gives their memory back.
void OnnxExecutor::RunSession(const ExecutionBatch& batch) {
  const bool large = batch.token_ids.size() > kLargeStepTokens;
  const bool shrink = arena_is_large_ && !large;
  session_->Run(binding_, shrink ? ort::ArenaAfterRun::kShrink : ort::ArenaAfterRun::kKeep);
  arena_is_large_ = large;
}

}  // namespace oga
