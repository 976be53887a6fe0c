// Sixteen float lanes as two AVX2 registers; needs FMA and F16C. See simd_portable.h for the meaning of each operation.
// Every operation gives the same bits as its AVX-512 form.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/simd/bfloat16.h"
#include "kernels/simd/float16.h"

namespace oga::kernels {
namespace {

struct Simd {
  struct Vec {
    __m256 low, high;
  };

  static constexpr int kMaxRows = 6;
  static constexpr int Columns(int rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }

  static inline __m256 LoadEight(const float* p) { return _mm256_loadu_ps(p); }
  static inline __m256 LoadEight(const Float16* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static inline __m256 LoadEight(const Bfloat16* p) {
    const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
  }
  static inline __m256 LoadEight(const int8_t* p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  static inline void StoreEight(float* p, __m256 v) { _mm256_storeu_ps(p, v); }
  static inline void StoreEight(Float16* p, __m256 v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
  static inline void StoreEight(Bfloat16* p, __m256 v) {
    const __m256i bits = _mm256_castps_si256(v), high = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    const __m256i words = _mm256_blendv_epi8(_mm256_srli_epi32(rounded, 16), quiet, nan);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
  }

  static inline Vec Broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  template <typename Element>
  static inline Vec Load(const Element* p) {
    return {LoadEight(p), LoadEight(p + 8)};
  }
  template <typename Element>
  static inline Vec LoadLow(const Element* p) {
    return {LoadEight(p), _mm256_setzero_ps()};
  }
  template <typename Element>
  static inline void Store(Element* p, Vec v) {
    StoreEight(p, v.low);
    StoreEight(p + 8, v.high);
  }
  template <typename Element>
  static inline void StoreLow(Element* p, Vec v) {
    StoreEight(p, v.low);
  }

  static inline Vec Add(Vec a, Vec b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
  static inline Vec Sub(Vec a, Vec b) { return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)}; }
  static inline Vec Mul(Vec a, Vec b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
  static inline Vec Div(Vec a, Vec b) { return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)}; }
  static inline Vec MulAdd(Vec a, Vec b, Vec c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static inline Vec Max(Vec a, Vec b) { return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)}; }
  static inline __m256 EightWhereLess(__m256 x, __m256 limit, __m256 below, __m256 above) {
    return _mm256_blendv_ps(above, below, _mm256_cmp_ps(x, limit, _CMP_LT_OQ));
  }
  static inline Vec WhereLess(Vec x, Vec limit, Vec below, Vec above) {
    return {EightWhereLess(x.low, limit.low, below.low, above.low),
            EightWhereLess(x.high, limit.high, below.high, above.high)};
  }
  static inline Vec ZeroWhereLess(Vec v, Vec x, Vec limit) {
    return {_mm256_andnot_ps(_mm256_cmp_ps(x.low, limit.low, _CMP_LT_OQ), v.low),
            _mm256_andnot_ps(_mm256_cmp_ps(x.high, limit.high, _CMP_LT_OQ), v.high)};
  }
  static inline __m256 ScaleEight(__m256 v, __m256 n_bits) {
    const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(n_bits), 23);
    return _mm256_mul_ps(v, _mm256_castsi256_ps(_mm256_add_epi32(exponent, _mm256_set1_epi32(0x3f800000))));
  }
  static inline Vec ScaleByPowerOfTwo(Vec v, Vec n_bits) {
    return {ScaleEight(v.low, n_bits.low), ScaleEight(v.high, n_bits.high)};
  }
  static inline __m256 KeepEight(__m256 v, int begin, int end, __m256 fill) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i before = _mm256_cmpgt_epi32(_mm256_set1_epi32(begin), lane);
    const __m256i inside = _mm256_andnot_si256(before, _mm256_cmpgt_epi32(_mm256_set1_epi32(end), lane));
    return _mm256_blendv_ps(fill, v, _mm256_castsi256_ps(inside));
  }
  static inline Vec KeepLanes(Vec v, int begin, int end, Vec fill) {
    return {KeepEight(v.low, begin, end, fill.low), KeepEight(v.high, begin - 8, end - 8, fill.high)};
  }
  static inline float First(Vec v) { return _mm256_cvtss_f32(v.low); }
  static inline float ReduceAdd(Vec v) {
    const __m256 eight = _mm256_add_ps(v.low, v.high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
  static inline float ReduceMax(Vec v) {
    const __m256 eight = _mm256_max_ps(v.low, v.high);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
  }

  template <typename Element>
  static inline void Transpose(const Element* base, const int64_t* offsets, float* out) {
    TransposeEight(base, offsets, out);
    TransposeEight(base, offsets + 8, out + 8);
  }

 private:
  template <typename Element>
  static inline void TransposeEight(const Element* base, const int64_t* offsets, float* out) {
    __m256 row[8], pair[8];
    for (int i = 0; i < 8; ++i) row[i] = LoadEight(base + offsets[i]);
    for (int i = 0; i < 4; ++i) {
      pair[2 * i] = _mm256_unpacklo_ps(row[2 * i], row[2 * i + 1]);
      pair[2 * i + 1] = _mm256_unpackhi_ps(row[2 * i], row[2 * i + 1]);
    }
    for (int half = 0; half < 2; ++half) {
      for (int i = 0; i < 2; ++i) {
        const __m256 a = pair[4 * half + i], b = pair[4 * half + i + 2];
        row[4 * half + 2 * i] = _mm256_shuffle_ps(a, b, 0x44);
        row[4 * half + 2 * i + 1] = _mm256_shuffle_ps(a, b, 0xee);
      }
    }
    for (int i = 0; i < 4; ++i) {
      _mm256_storeu_ps(out + 16 * i, _mm256_permute2f128_ps(row[i], row[4 + i], 0x20));
      _mm256_storeu_ps(out + 16 * (4 + i), _mm256_permute2f128_ps(row[i], row[4 + i], 0x31));
    }
  }
};

}  // namespace
}  // namespace oga::kernels
