// One step of paged attention in the shape of Qwen2.5-0.5B (14 heads over 2 of keys and values, 64 wide), for many
// layers in turn, so that the caches of the step are read from memory.
#pragma once

#include <cstdint>
#include <vector>

#include "benchmarks/thread_team.h"
#include "kernels/attention/paged_attention.h"
#include "kernels/product/weight_arena.h"

namespace oga::benchmarks {

struct AttentionStep {
  int32_t rows = 1;
  int32_t past = 0;        // tokens in the cache of each row
  int32_t new_tokens = 1;  // of each row
  CacheType cache = CacheType::kFloat32;
  int32_t layers = 0;  // 0: as many as no cache holds
};

class AttentionCase {
 public:
  explicit AttentionCase(const AttentionStep& step);

  // Bytes of keys and values that all layers together read once.
  double cache_bytes() const;
  // Of both products, for the keys that each query sees.
  double flops() const;

  void Run(kernels::CpuIsa isa, ThreadTeam* team);

 private:
  int64_t LayerBytes() const;

  AttentionStep step_;
  kernels::PagedAttentionArgs args_;
  std::vector<float> activations_, output_, angles_;
  kernels::WeightArena caches_;  // in large pages, as the engine's cache is
  uint8_t *keys_, *values_;
  std::vector<int32_t> cumulative_lengths_, past_lengths_, block_table_;
};

}  // namespace oga::benchmarks
