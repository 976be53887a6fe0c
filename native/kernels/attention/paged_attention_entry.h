// Fills in a PagedAttentionVariant from the templates. Included last by each variant source.
#pragma once

#include <cstdint>

#include "kernels/attention/paged_attention_tile.h"
#include "kernels/attention/paged_attention_variant.h"
#include "kernels/attention/paged_attention_walk.h"
#include "kernels/attention/paged_attention_write.h"

namespace oga::kernels {
namespace {

template <class S>
struct VariantEntry {
  static void Write(const PagedAttentionCall& call, int32_t begin, int32_t end) {
    switch (call.args.cache_type) {
      case CacheType::kFloat32: return WriteTokens<S, float>(call, begin, end);
      case CacheType::kFloat16: return WriteTokens<S, Float16>(call, begin, end);
      case CacheType::kBfloat16: return WriteTokens<S, Bfloat16>(call, begin, end);
      case CacheType::kInt8: return WriteTokens<S, int8_t>(call, begin, end);
    }
  }
  static void Attend(const PagedAttentionCall& call, const QueryTile& tile) {
    switch (call.args.cache_type) {
      case CacheType::kFloat32: return AttendTile<S, TileAttention<S, float>>(call, tile);
      case CacheType::kFloat16: return AttendTile<S, TileAttention<S, Float16>>(call, tile);
      case CacheType::kBfloat16: return AttendTile<S, TileAttention<S, Bfloat16>>(call, tile);
      case CacheType::kInt8: return AttendTile<S, TileAttention<S, int8_t>>(call, tile);
    }
  }
  static void AttendSplits(const PagedAttentionCall& call, const SplitRun& run, float* partials) {
    switch (call.args.cache_type) {
      case CacheType::kFloat32: return AttendTileSplits<S, TileAttention<S, float>>(call, run, partials);
      case CacheType::kFloat16: return AttendTileSplits<S, TileAttention<S, Float16>>(call, run, partials);
      case CacheType::kBfloat16: return AttendTileSplits<S, TileAttention<S, Bfloat16>>(call, run, partials);
      case CacheType::kInt8: return AttendTileSplits<S, TileAttention<S, int8_t>>(call, run, partials);
    }
  }
  static void Merge(const PagedAttentionCall& call, const QueryTile& tile, const float* partial, float* running) {
    const Partial into(call, tile, running);
    const float* const values = partial + kPartialHeaderFloats * tile.num_queries;
    for (int32_t i = 0; i < tile.num_queries; ++i) {
      const WeightedRow row = {values + i * call.padded_head_size, 32};
      MergeQuery<S>(call, partial[i], partial[tile.num_queries + i], row, into, i);
    }
  }
  static void Finish(const PagedAttentionCall& call, const QueryTile& tile, const float* running) {
    WriteOutput<S>(call, tile, Partial(call, tile, const_cast<float*>(running)));
  }
  static constexpr PagedAttentionVariant kTable = {Write, false, Attend, AttendSplits, Merge, Finish};
};

}  // namespace
}  // namespace oga::kernels
