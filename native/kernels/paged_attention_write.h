// First half of a paged attention call: rotary embedding, and new keys and values into the cache. The rotation is
// written as plain loops that every variant computes in the same order, so queries and keys rotate to the same bits
// everywhere. Included by the variant sources only; see simd_math.h for linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/float16.h"
#include "kernels/paged_attention_variant.h"

namespace oga::kernels {
namespace {

// Rotates pairs (x[i], x[i + half]) or (x[2i], x[2i + 1]) of one head at `position`; the head's tail is copied.
template <class S>
inline void RotateHead(const PagedAttentionCall& call, int32_t position, const float* __restrict in,
                       float* __restrict out) {
  const PagedAttentionParams& params = call.args.params;
  const int32_t rotary_dim = params.rotary ? params.rotary_dim : 0;
  const int32_t half = rotary_dim / 2;
  const float* __restrict cosine = call.args.cos_cache + static_cast<int64_t>(position) * half;
  const float* __restrict sine = call.args.sin_cache + static_cast<int64_t>(position) * half;
  if (params.rotary_interleaved) {
    for (int32_t i = 0; i < half; ++i) {
      const float x = in[2 * i], y = in[2 * i + 1];
      out[2 * i] = x * cosine[i] - y * sine[i];
      out[2 * i + 1] = y * cosine[i] + x * sine[i];
    }
  } else {
    for (int32_t i = 0; i < half; ++i) {
      const float x = in[i], y = in[half + i];
      out[i] = x * cosine[i] - y * sine[i];
      out[half + i] = y * cosine[i] + x * sine[i];
    }
  }
  for (int32_t i = rotary_dim; i < call.args.shape.head_size; ++i) out[i] = in[i];
}

// head_size is a multiple of 8, so a vector row ends whole or half.
template <class S, class From, class To>
inline void CopyRow(const From* from, int32_t count, To* to) {
  int32_t i = 0;
  for (; i + 16 <= count; i += 16) S::Store(to + i, S::Load(from + i));
  if (i < count) S::StoreLow(to + i, S::LoadLow(from + i));
}

inline int64_t CacheOffset(const PagedAttentionArgs& args, int32_t row, int32_t position) {
  const PagedAttentionShape& shape = args.shape;
  const int64_t entry = static_cast<int64_t>(row) * shape.table_columns + position / shape.block_size;
  const int64_t slot = static_cast<int64_t>(args.block_table[entry]) * shape.block_size + position % shape.block_size;
  return slot * shape.num_kv_heads * shape.head_size;
}

template <class S, class Element>
inline void WriteToken(const PagedAttentionCall& call, int32_t row, int32_t token) {
  const PagedAttentionArgs& args = call.args;
  const int32_t head_size = args.shape.head_size;
  const int32_t position = args.past_lengths[row] + token - args.cumulative_lengths[row];
  const int64_t offset = CacheOffset(args, row, position);
  Element* key_slot = static_cast<Element*>(args.key_cache) + offset;
  Element* value_slot = static_cast<Element*>(args.value_cache) + offset;
  alignas(64) float rotated[kMaxHeadSize];
  for (int32_t head = 0; head < args.shape.num_kv_heads; ++head) {
    const int64_t first = static_cast<int64_t>(head) * head_size;
    RotateHead<S>(call, position, args.key + token * args.key_stride + first, rotated);
    CopyRow<S>(rotated, head_size, key_slot + first);
    CopyRow<S>(args.value + token * args.value_stride + first, head_size, value_slot + first);
  }
}

template <class S, class Element>
inline void WriteTokens(const PagedAttentionCall& call, int32_t begin, int32_t end) {
  int32_t row = 0;
  for (int32_t token = begin; token < end; ++token) {
    while (call.args.cumulative_lengths[row + 1] <= token) ++row;
    WriteToken<S, Element>(call, row, token);
  }
}

}  // namespace
}  // namespace oga::kernels
