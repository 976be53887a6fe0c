// How a head of activations is read: widened to floats, normalised, rotated. And how a finished row is stored.
//
// Norm and rotation are plain loops that every variant computes in the same order, so queries and keys come out with
// the same bits everywhere. Included by the variant sources only; see simd_math.h for linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/paged_attention_variant.h"
#include "kernels/simd/bfloat16.h"
#include "kernels/simd/float16.h"

namespace oga::kernels {
namespace {

// head_size is a multiple of 8, so a vector row ends whole or half.
template <class S, class From, class To>
inline void CopyRow(const From* from, int32_t count, To* to) {
  int32_t i = 0;
  for (; i + 16 <= count; i += 16) S::Store(to + i, S::Load(from + i));
  if (i < count) S::StoreLow(to + i, S::LoadLow(from + i));
}

// Of any count: half a rotation need not be a whole number of vectors.
template <class S, class From>
inline const float* WidenRow(const From* from, int32_t count, float* to) {
  int32_t i = 0;
  for (; i + 16 <= count; i += 16) S::Store(to + i, S::Load(from + i));
  for (; i < count; ++i) to[i] = ToFloat(from[i]);
  return to;
}

// `count` activations from index `first` on: where they lie if they are floats, else widened into `scratch`.
template <class S>
inline const float* ReadRow(ActivationType type, const void* base, int64_t first, int32_t count, float* scratch) {
  switch (type) {
    case ActivationType::kFloat16: return WidenRow<S>(static_cast<const Float16*>(base) + first, count, scratch);
    case ActivationType::kBfloat16: return WidenRow<S>(static_cast<const Bfloat16*>(base) + first, count, scratch);
    default: return static_cast<const float*>(base) + first;
  }
}

template <class S>
inline void StoreActivations(ActivationType type, const float* row, int32_t count, void* base, int64_t first) {
  switch (type) {
    case ActivationType::kFloat16: return CopyRow<S>(row, count, static_cast<Float16*>(base) + first);
    case ActivationType::kBfloat16: return CopyRow<S>(row, count, static_cast<Bfloat16*>(base) + first);
    default: return CopyRow<S>(row, count, static_cast<float*>(base) + first);
  }
}

// Reads heads of the queries or of the keys. Cheapest when the heads of one position follow one another.
template <class S>
class HeadReader {
 public:
  HeadReader(const PagedAttentionCall& call, const void* activations, int64_t token_stride, const void* gains)
      : args_(call.args), head_size_(args_.shape.head_size), activations_(activations), token_stride_(token_stride) {
    if (gains != nullptr) gains_ = ReadRow<S>(args_.activation_type, gains, 0, head_size_, gains_memory_);
  }

  void Read(int64_t token, int32_t head, int32_t position, float* out) {
    const int64_t first = token * token_stride_ + static_cast<int64_t>(head) * head_size_;
    const float* in = ReadRow<S>(args_.activation_type, activations_, first, head_size_, raw_);
    if (gains_ != nullptr) {
      Normalize(in, normalized_);
      in = normalized_;
    }
    if (!args_.params.rotary) {
      for (int32_t i = 0; i < head_size_; ++i) out[i] = in[i];
      return;
    }
    if (position != position_) MoveTo(position);
    Rotate(in, out);
  }

 private:
  // The sum of squares has eight lanes in every variant.
  void Normalize(const float* __restrict in, float* __restrict out) const {
    float lanes[8] = {};
    for (int32_t i = 0; i < head_size_; i += 8) {
      for (int32_t lane = 0; lane < 8; ++lane) lanes[lane] += in[i + lane] * in[i + lane];
    }
    const float squares =
        ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
    const float mean = squares / static_cast<float>(head_size_);
    const float factor = 1.0f / __builtin_sqrtf(mean + args_.params.norm_epsilon);
    for (int32_t i = 0; i < head_size_; ++i) out[i] = in[i] * factor * gains_[i];
  }

  void MoveTo(int32_t position) {
    const int32_t half = args_.params.rotary_dim / 2;
    const int64_t first = static_cast<int64_t>(position) * half;
    cosine_ = ReadRow<S>(args_.activation_type, args_.cos_cache, first, half, cosine_memory_);
    sine_ = ReadRow<S>(args_.activation_type, args_.sin_cache, first, half, sine_memory_);
    position_ = position;
  }

  // Rotates pairs (x[i], x[i + half]) or (x[2i], x[2i + 1]) behind the offset; the dimensions around them are copied.
  void Rotate(const float* __restrict head, float* __restrict rotated) const {
    const PagedAttentionParams& params = args_.params;
    const int32_t half = params.rotary_dim / 2;
    const float* __restrict in = head + params.rotary_offset;
    float* __restrict out = rotated + params.rotary_offset;
    const float* __restrict cosine = cosine_;
    const float* __restrict sine = sine_;
    for (int32_t i = 0; i < params.rotary_offset; ++i) rotated[i] = head[i];
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
    for (int32_t i = params.rotary_offset + params.rotary_dim; i < head_size_; ++i) rotated[i] = head[i];
  }

  const PagedAttentionArgs& args_;
  const int32_t head_size_;
  const void* const activations_;
  const int64_t token_stride_;
  const float* gains_ = nullptr;
  int32_t position_ = -1;  // of cosine_ and sine_
  const float* cosine_ = nullptr;
  const float* sine_ = nullptr;
  alignas(64) float gains_memory_[kMaxHeadSize];
  alignas(64) float raw_[kMaxHeadSize];
  alignas(64) float normalized_[kMaxHeadSize];
  alignas(64) float cosine_memory_[kMaxHeadSize / 2];
  alignas(64) float sine_memory_[kMaxHeadSize / 2];
};

}  // namespace
}  // namespace oga::kernels
