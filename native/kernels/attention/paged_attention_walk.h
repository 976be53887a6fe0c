// How a tile goes through its splits: all of them, merged as they come, or some, whose partials somebody else merges.
// Included by the variant sources only; see simd_math.h for linkage.
//
// A `Core` is what attends to one split after another: Core(call, tile, splits) prepares the queries, AttendSplit(split)
// is called for all of `splits` in order, and highest(i), weight(i) and Weighted(i) then have the split's results for the
// tile's query `i`.
#pragma once

#include <cstdint>

#include "kernels/attention/paged_attention_partial.h"
#include "kernels/attention/paged_attention_rows.h"
#include "kernels/attention/paged_attention_variant.h"

namespace oga::kernels {
namespace {

template <class S, class Core>
void AttendTile(const PagedAttentionCall& call, const QueryTile& tile) {
  const SplitRange splits = VisibleSplits(call, tile);
  Core core(call, tile, splits);
  alignas(64) float memory[kTileFloats + kMaxTileQueries * (kPartialHeaderFloats + 16)];
  const int32_t floats = tile.num_queries * (kPartialHeaderFloats + call.padded_head_size);
  for (int32_t i = 0; i < floats; ++i) memory[i] = 0.0f;
  const Partial running(call, tile, memory);
  for (int32_t split = splits.first; split <= splits.last; ++split) {
    core.AttendSplit(split);
    for (int32_t i = 0; i < tile.num_queries; ++i) {
      MergeQuery<S>(call, core.highest(i), core.weight(i), core.Weighted(i), running, i);
    }
  }
  WriteOutput<S>(call, tile, running);
}

template <class S, class Core>
void AttendTileSplits(const PagedAttentionCall& call, const SplitRun& run, float* partials) {
  const SplitRange splits = {run.first_split, run.first_split + run.num_splits - 1};
  Core core(call, run.tile, splits);
  for (int32_t split = splits.first; split <= splits.last; ++split, partials += run.slot_floats) {
    const Partial partial(call, run.tile, partials);
    core.AttendSplit(split);
    for (int32_t i = 0; i < run.tile.num_queries; ++i) {
      partial.highest[i] = core.highest(i);
      partial.weight[i] = core.weight(i);
      float* const values = partial.values + i * partial.stride;
      const WeightedRow weighted = core.Weighted(i);
      for (int32_t d = 0; d < call.padded_head_size; d += 16) S::Store(values + d, weighted.template Load<S>(d));
    }
  }
}

}  // namespace
}  // namespace oga::kernels
