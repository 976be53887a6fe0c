// The decoder graph as the executor uses it: what the config promises, found in the graph and checked.
//
// A plain value, made once when a model is loaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/genai_config.h"
#include "ort/shape.h"
#include "step/cache_type.h"

namespace oga {

// Which packed tokens the graph computes logits for.
enum class LogitsRows {
  kPerIndex,  // those that the input logits_indices names
  kPerToken,  // all
  kPerRow,    // the last one of every row
};

// Names of one layer's caches, in and out.
struct LayerTensors {
  std::string past_key;
  std::string past_value;
  std::string present_key;
  std::string present_value;
};

struct DecoderManifest {
  DecoderTensorNames names;
  std::vector<LayerTensors> layers;  // those that own a cache

  CacheType cache_type = CacheType::kFloat32;
  uint32_t num_kv_heads = 0;
  uint32_t head_size = 0;
  int64_t fixed_num_blocks = -1;  // -1: any
  int64_t fixed_block_size = -1;

  LogitsRows logits_rows = LogitsRows::kPerIndex;
  ort::ElementType logits_index_type = ort::ElementType::kInt32;
  int32_t vocab_size = 0;

  bool has_attention_metadata = false;
  // Rows of position_ids: 0 when the graph has none, 1 for a vector, 3 for a matrix of temporal and spatial positions.
  int32_t position_rows = 0;

  // Keys and values of one token over all layers.
  uint64_t bytes_per_slot() const;
};

// Checks the graph's inputs and outputs against the config. Throws Error: kModelError for a tensor that is missing or
// has another type or shape, kUnsupported for what this build does not run. Every message names the tensor, the key of
// the config that names it, what was found and what was wanted.
DecoderManifest ReadManifest(const std::vector<ort::TensorInfo>& inputs, const std::vector<ort::TensorInfo>& outputs,
                             const GenaiConfig& config);

}  // namespace oga
