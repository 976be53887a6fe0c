// See packed_lanes_portable.h for the meaning of each operation.
#pragma once

#include "kernels/product/packed_weights.h"
#include "kernels/simd/denormals.h"
#include "kernels/simd/simd_avx2.h"

namespace oga::kernels {
namespace {

struct Lanes : Simd {
  static constexpr int kThinRows = 1;
  static constexpr int kWideRows = 3;
  static constexpr int kWideVectors = 1;

  static constexpr CodeOrder kOrder = CodeOrder::kColumns;
  static constexpr int kUnitSteps = 16;
  struct Weights {
    Vec even, odd;
  };
  static constexpr int kStepFloats = 32;
  struct Codes {
    __m256i low, high;
  };

  using FlushDenormals = DenormalMode<true>;

  static inline Vec Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }

  static inline __m256 RoundEight(__m256 v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), last);
    return _mm256_castsi256_ps(_mm256_and_si256(sum, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  static inline Vec Round(Vec v) { return {RoundEight(v.low), RoundEight(v.high)}; }
  static inline Weights RoundStep(Vec even, Vec odd) { return {Round(even), Round(odd)}; }
  static inline void StoreWeights(float* p, Weights weights) {
    Store(p, weights.even);
    Store(p + 16, weights.odd);
  }
  static inline Weights LoadWeights(const float* p) { return {Load(p), Load(p + 16)}; }

  static inline Weights WidenPairs(Codes words) {
    const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    return {
        {_mm256_castsi256_ps(_mm256_slli_epi32(words.low, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(words.high, 16))},
        {_mm256_castsi256_ps(_mm256_and_si256(words.low, upper)),
         _mm256_castsi256_ps(_mm256_and_si256(words.high, upper))}};
  }

  static inline __m256 RoundActivations(__m256 v) {
    const __m256 normal = _mm256_mul_ps(v, _mm256_set1_ps(1.0f));  // a denormal becomes zero
    const __m256 nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
    const __m256 quiet = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
    return _mm256_blendv_ps(RoundEight(normal), quiet, nan);
  }
  static inline void StageActivations(Vec v, float* p) {
    Store(p, Vec{RoundActivations(v.low), RoundActivations(v.high)});
  }

  static inline Codes LoadCodes(const uint8_t* p) {
    const __m256i* const words = reinterpret_cast<const __m256i*>(p);
    return {_mm256_loadu_si256(words), _mm256_loadu_si256(words + 1)};
  }
  template <int bits, bool is_signed>
  static inline __m256 DecodeEight(__m256i codes, int index) {
    const __m256i top = _mm256_slli_epi32(codes, 32 - bits - bits * index);
    const __m256i code = is_signed ? _mm256_srai_epi32(top, 32 - bits) : _mm256_srli_epi32(top, 32 - bits);
    return _mm256_cvtepi32_ps(code);
  }
  template <int bits, bool is_signed>
  static inline Vec Decode(Codes codes, int index) {
    return {DecodeEight<bits, is_signed>(codes.low, index), DecodeEight<bits, is_signed>(codes.high, index)};
  }
  static inline Vec LoadBytes(const uint8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
            _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)))};
  }
};

}  // namespace
}  // namespace oga::kernels
