// First half of a paged attention call: new keys and values into the cache. Included by the variant sources only; see
// simd_math.h for linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/paged_attention_heads.h"
#include "kernels/attention/paged_attention_variant.h"

namespace oga::kernels {
namespace {

// Where a slot of a row's block begins in the cache, in elements.
inline int64_t SlotOffset(const PagedAttentionArgs& args, int32_t row, int32_t column, int32_t slot) {
  const PagedAttentionShape& shape = args.shape;
  const int64_t block = args.block_table[static_cast<int64_t>(row) * shape.table_columns + column];
  return (block * shape.block_size + slot) * shape.num_kv_heads * shape.head_size;
}

// The scales of a head's channels; `stride` is 0 where all channels share one.
struct ChannelScales {
  ChannelScales(const CacheScale& scale, int32_t kv_head, int32_t head_size)
      : data(scale.data + (scale.per_channel ? static_cast<int64_t>(kv_head) * head_size : 0)),
        stride(scale.per_channel ? 1 : 0) {}
  float operator[](int32_t channel) const { return data[channel * stride]; }
  const float* data;
  int32_t stride;
};

// The nearest code, ties to even: a sum with 1.5 * 2^23 has it in its low bits. Comparisons with a NaN are false.
inline int8_t CodeOf(float value, float scale) {
  const float steps = scale > 0.0f ? value / scale : 0.0f;
  const float low = steps > -128.0f ? steps : steps <= -128.0f ? -128.0f : 0.0f;
  const float clamped = low < 127.0f ? low : 127.0f;
  return static_cast<int8_t>(BitsFromFloat(clamped + 0x1.8p23f) & 0xffu);
}

template <class S, class Element>
inline void StoreCached(const float* row, int32_t count, const ChannelScales&, Element* slot) {
  CopyRow<S>(row, count, slot);
}
template <class S>
inline void StoreCached(const float* row, int32_t count, const ChannelScales& scales, int8_t* slot) {
  for (int32_t i = 0; i < count; ++i) slot[i] = CodeOf(row[i], scales[i]);
}

template <class S, class Element>
inline void WriteToken(const PagedAttentionArgs& args, HeadReader<S>& keys, int32_t row, int32_t token) {
  const int32_t head_size = args.shape.head_size;
  const int32_t position = args.past_lengths[row] + token - args.cumulative_lengths[row];
  int64_t offset;
  if (args.slot_mapping == nullptr) {
    offset = SlotOffset(args, row, position / args.shape.block_size, position % args.shape.block_size);
  } else {
    if (args.slot_mapping[token] < 0) return;
    offset = static_cast<int64_t>(args.slot_mapping[token]) * args.shape.num_kv_heads * head_size;
  }
  Element* key_slot = static_cast<Element*>(args.key_cache) + offset;
  Element* value_slot = static_cast<Element*>(args.value_cache) + offset;
  alignas(64) float memory[kMaxHeadSize];
  for (int32_t head = 0; head < args.shape.num_kv_heads; ++head) {
    const int64_t first = static_cast<int64_t>(head) * head_size;
    keys.Read(token, head, position, memory);
    StoreCached<S>(memory, head_size, ChannelScales(args.key_scale, head, head_size), key_slot + first);
    const float* value =
        ReadRow<S>(args.activation_type, args.value, token * args.value_stride + first, head_size, memory);
    StoreCached<S>(value, head_size, ChannelScales(args.value_scale, head, head_size), value_slot + first);
  }
}

template <class S, class Element>
inline void WriteTokens(const PagedAttentionCall& call, int32_t begin, int32_t end) {
  HeadReader<S> keys(call, call.args.key, call.args.key_stride, call.args.key_norm);
  int32_t row = 0;
  for (int32_t token = begin; token < end; ++token) {
    while (call.args.cumulative_lengths[row + 1] <= token) ++row;
    WriteToken<S, Element>(call.args, keys, row, token);
  }
}

}  // namespace
}  // namespace oga::kernels
