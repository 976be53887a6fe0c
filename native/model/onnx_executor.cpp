#include "model/onnx_executor.h"

#include <algorithm>
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

ort::ElementType ElementOf(CacheType type) {
  switch (type) {
    case CacheType::kFloat32: break;
    case CacheType::kFloat16: return ort::ElementType::kFloat16;
    case CacheType::kBfloat16: return ort::ElementType::kBfloat16;
    case CacheType::kInt8: return ort::ElementType::kInt8;
  }
  return ort::ElementType::kFloat;
}

// A graph with one row of logits per row of the batch cannot give those of another token.
void RequireLastTokens(const ExecutionBatch& batch) {
  size_t row = 0;
  for (const int64_t index : batch.logits_indices) {
    while (batch.cumulative_lengths[row + 1] <= index) ++row;
    const int32_t last = batch.cumulative_lengths[row + 1] - 1;
    if (index == last) continue;
    Throw(StatusCode::kInvalidArgument, "logits of token ", index, " are wanted, but the graph gives those of the ",
          "last token of each row only, here of token ", last);
  }
}

}  // namespace

OnnxExecutor::OnnxExecutor(std::shared_ptr<const ort::Session> session, const DecoderManifest& manifest,
                           SizedLimits sized, Ledger& ledger)
    : session_(std::move(session)),
      manifest_(manifest),
      storage_(ShapeOf(manifest, sized.limits), std::move(sized.cache)),
      binding_(*session_),
      inputs_(manifest_, binding_, session_->environment(), ledger),
      logits_(binding_, session_->environment(), BindingSide::kOutput, manifest_.names.logits, ort::ElementType::kFloat,
              ledger) {
  BindCaches();
}

void OnnxExecutor::BindCaches() {
  const KvShape& shape = storage_.shape();
  const std::array<int64_t, 4> dims = {shape.num_blocks, shape.block_size_slots, shape.num_kv_heads, shape.head_size};
  const ort::ElementType type = ElementOf(shape.type);
  for (uint32_t layer = 0; layer < shape.num_layers; ++layer) {
    const LayerTensors& names = manifest_.layers[layer];
    const auto bind = [&](KvSide side, const std::string& past, const std::string& present) {
      const ort::Tensor cache(session_->environment(), storage_.Tensor(layer, side), storage_.tensor_bytes(), dims,
                              type);
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
    throw;
  } catch (...) {
    return FailureOfCurrentException(ExecutionStatus::kCapacityExceeded);
  }
}

std::span<const float> OnnxExecutor::Run(const ExecutionBatch& batch) {
  CheckBatch(batch);
  if (manifest_.logits_rows == LogitsRows::kPerRow) RequireLastTokens(batch);
  for (const BlockCopy& copy : batch.block_copies) storage_.CopyBlock(copy.source, copy.target);

  // A step that samples nothing still computes one row: graphs are not made for tensors without elements.
  static constexpr int64_t kFirstToken[] = {0};
  const bool samples = !batch.logits_indices.empty();
  const std::span<const int64_t> indices = samples ? batch.logits_indices : std::span<const int64_t>(kFirstToken);
  inputs_.Pack(batch, indices);
  size_t rows = indices.size();
  if (manifest_.logits_rows == LogitsRows::kPerToken) rows = batch.token_ids.size();
  if (manifest_.logits_rows == LogitsRows::kPerRow) rows = batch.rows();
  auto* const logits = static_cast<float*>(logits_.Shape({static_cast<int64_t>(rows), manifest_.vocab_size}));
  RunSession(batch);
  return SelectRows(batch, logits);
}

// Shrinking takes effect at the end of a run, and the chunks of a long prompt follow each other: so the first small
// step after large ones gives their memory back.
void OnnxExecutor::RunSession(const ExecutionBatch& batch) {
  const bool large = batch.token_ids.size() > kLargeStepTokens;
  const bool shrink = arena_is_large_ && !large;
  session_->Run(binding_, shrink ? ort::ArenaAfterRun::kShrink : ort::ArenaAfterRun::kKeep);
  arena_is_large_ = large;
}

// Moves the wanted rows to the front, in order; they are ascending, so no row is overwritten before it was read.
std::span<const float> OnnxExecutor::SelectRows(const ExecutionBatch& batch, float* logits) const {
  const size_t width = static_cast<size_t>(manifest_.vocab_size);
  const size_t wanted = batch.logits_indices.size();
  size_t row = 0;
  for (size_t i = 0; i < wanted && manifest_.logits_rows != LogitsRows::kPerIndex; ++i) {
    const int64_t token = batch.logits_indices[i];
    while (batch.cumulative_lengths[row + 1] <= token) ++row;
    const size_t source = manifest_.logits_rows == LogitsRows::kPerRow ? row : static_cast<size_t>(token);
    if (source != i) std::copy_n(logits + source * width, width, logits + i * width);
  }
  return {logits, wanted * width};
}

}  // namespace oga
