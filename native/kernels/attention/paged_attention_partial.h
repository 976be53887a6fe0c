// What attention over one split of the positions leaves, how splits are merged, and how a finished row is written.
// Included by the variant sources only; see simd_math.h for linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/paged_attention_heads.h"
#include "kernels/attention/paged_attention_variant.h"
#include "kernels/attention/paged_attention_write.h"
#include "kernels/simd/simd_math.h"

namespace oga::kernels {
namespace {

// The softcap on sixteen scores.
template <class S>
inline void CapScore(const PagedAttentionCall& call, float* scores) {
  S::Store(scores, S::Mul(S::Broadcast(call.score_cap), Tanh<S>(S::Load(scores))));
}

// Views a partial, whose layout paged_attention_variant.h describes.
struct Partial {
  Partial(const PagedAttentionCall& call, const QueryTile& tile, float* memory)
      : highest(memory),
        weight(memory + tile.num_queries),
        values(memory + kPartialHeaderFloats * tile.num_queries),
        stride(call.padded_head_size) {}
  float* highest;
  float* weight;
  float* values;
  ptrdiff_t stride;
};

// A query's weighted values of one split, in groups of 32 dimensions.
struct WeightedRow {
  const float* first;
  ptrdiff_t group_stride;  // in floats; 32 where the groups follow one another
  template <class S>
  inline typename S::Vec Load(int32_t dimension) const {
    return S::Load(first + dimension / 32 * group_stride + dimension % 32);
  }
};

template <class S>
inline void MergeQuery(const PagedAttentionCall& call, float highest, float weight, const WeightedRow& values,
                       const Partial& running, int32_t query) {
  using Vec = typename S::Vec;
  if (weight == 0.0f) return;
  float* sums = running.values + query * running.stride;
  if (running.weight[query] == 0.0f) {
    running.highest[query] = highest;
    running.weight[query] = weight;
    for (int32_t i = 0; i < call.padded_head_size; i += 16) S::Store(sums + i, values.template Load<S>(i));
    return;
  }
  // Whichever side has the lower maximum is scaled down; the other one's factor is 1.
  const bool rises = !(highest <= running.highest[query]);
  const float drop = rises ? running.highest[query] - highest : highest - running.highest[query];
  const Vec factor = Exp2<S>(S::Broadcast(drop));
  const Vec keep = rises ? factor : S::Broadcast(1.0f);
  const Vec add = rises ? S::Broadcast(1.0f) : factor;
  if (rises) running.highest[query] = highest;
  running.weight[query] =
      S::First(S::MulAdd(S::Broadcast(running.weight[query]), keep, S::Mul(S::Broadcast(weight), add)));
  for (int32_t i = 0; i < call.padded_head_size; i += 16) {
    S::Store(sums + i, S::MulAdd(S::Load(sums + i), keep, S::Mul(values.template Load<S>(i), add)));
  }
}

// What turns a query's weighted sum into its output. A sink adds its weight to the others' and no value.
template <class S>
inline float Normalizer(float highest, float weight, const float* sink) {
  if (sink == nullptr) return 1.0f / weight;
  const float level = *sink * kLog2E;
  if (level <= highest) return 1.0f / (weight + S::First(Exp2<S>(S::Broadcast(level - highest))));
  const float drop = S::First(Exp2<S>(S::Broadcast(highest - level)));
  return drop / (S::First(S::MulAdd(S::Broadcast(weight), S::Broadcast(drop), S::Broadcast(1.0f))));
}

template <class S>
inline void WriteOutput(const PagedAttentionCall& call, const QueryTile& tile, const Partial& running) {
  const PagedAttentionArgs& args = call.args;
  const int32_t head_size = args.shape.head_size;
  alignas(64) float row[kMaxHeadSize + 16];
  for (int32_t i = 0; i < tile.num_queries; ++i) {
    const QueryPlace query = PlaceOf(call, tile, i);
    const ChannelScales scales(args.value_scale, query.kv_head, head_size);
    const int64_t token = args.cumulative_lengths[tile.row] + query.new_token;
    const float* sums = running.values + i * running.stride;
    float memory;
    const float* sink =
        args.head_sink == nullptr ? nullptr : ReadRow<S>(args.activation_type, args.head_sink, query.head, 1, &memory);
    const auto factor = S::Broadcast(Normalizer<S>(running.highest[i], running.weight[i], sink));
    for (int32_t d = 0; d < call.padded_head_size; d += 16) S::Store(row + d, S::Mul(S::Load(sums + d), factor));
    if (scales.data != nullptr) {
      for (int32_t d = 0; d < head_size; ++d) row[d] *= scales[d];
    }
    const int64_t first = (token * args.shape.num_heads + query.head) * head_size;
    StoreActivations<S>(args.activation_type, row, head_size, args.output, first);
  }
}

}  // namespace
}  // namespace oga::kernels
