// Sixteen float lanes as one AVX-512 register. See simd_portable.h for the meaning of each operation. Every operation
// gives the same bits as its AVX2 form.
#pragma once

// The unmasked intrinsics of GCC 12 pass a deliberately undefined register, which its own analysis then reports.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <cstddef>
#include <cstdint>

#include "kernels/simd/bfloat16.h"
#include "kernels/simd/float16.h"

namespace oga::kernels {
namespace {

struct Simd {
  using Vec = __m512;

  static constexpr int kMaxRows = 8;
  static constexpr int Columns(int rows) { return rows <= 6 ? 4 : 2; }

  static inline Vec Broadcast(float x) { return _mm512_set1_ps(x); }
  static inline Vec Load(const float* p) { return _mm512_loadu_ps(p); }
  static inline Vec Load(const Float16* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static inline Vec Load(const Bfloat16* p) {
    return Widen(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
  }
  static inline Vec Load(const int8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static inline Vec LoadLow(const float* p) { return _mm512_zextps256_ps512(_mm256_loadu_ps(p)); }
  static inline Vec LoadLow(const Float16* p) {
    return _mm512_zextps256_ps512(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static inline Vec LoadLow(const Bfloat16* p) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return Widen(_mm512_cvtepu16_epi32(_mm256_zextsi128_si256(halves)));
  }
  static inline Vec LoadLow(const int8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  static inline void Store(float* p, Vec v) { _mm512_storeu_ps(p, v); }
  static inline void Store(Float16* p, Vec v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
  static inline void Store(Bfloat16* p, Vec v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(RoundToBfloat16(v)));
  }
  static inline void StoreLow(float* p, Vec v) { _mm256_storeu_ps(p, _mm512_castps512_ps256(v)); }
  static inline void StoreLow(Float16* p, Vec v) {
    const __m128i halves = _mm256_cvtps_ph(_mm512_castps512_ps256(v), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), halves);
  }
  static inline void StoreLow(Bfloat16* p, Vec v) {
    const __m128i halves = _mm256_castsi256_si128(_mm512_cvtepi32_epi16(RoundToBfloat16(v)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), halves);
  }

  static inline Vec Add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
  static inline Vec Sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
  static inline Vec Mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
  static inline Vec Div(Vec a, Vec b) { return _mm512_div_ps(a, b); }
  static inline Vec MulAdd(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
  static inline Vec Max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
  static inline Vec WhereLess(Vec x, Vec limit, Vec below, Vec above) {
    return _mm512_mask_mov_ps(above, _mm512_cmp_ps_mask(x, limit, _CMP_LT_OQ), below);
  }
  static inline Vec ZeroWhereLess(Vec v, Vec x, Vec limit) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, limit, _CMP_NLT_UQ), v);
  }
  static inline Vec ScaleByPowerOfTwo(Vec v, Vec n_bits) {
    const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(n_bits), 23);
    return _mm512_mul_ps(v, _mm512_castsi512_ps(_mm512_add_epi32(exponent, _mm512_set1_epi32(0x3f800000))));
  }
  static inline Vec KeepLanes(Vec v, int begin, int end, Vec fill) {
    const uint32_t below_end = end >= 16 ? 0xffffu : end <= 0 ? 0u : (1u << end) - 1u;
    const uint32_t below_begin = begin >= 16 ? 0xffffu : begin <= 0 ? 0u : (1u << begin) - 1u;
    return _mm512_mask_mov_ps(fill, static_cast<__mmask16>(below_end & ~below_begin), v);
  }
  static inline float First(Vec v) { return _mm512_cvtss_f32(v); }
  static inline float ReduceAdd(Vec v) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
  static inline float ReduceMax(Vec v) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
  }

  template <typename Element>
  static inline void Transpose(const Element* base, const int64_t* offsets, float* out) {
    __m512 row[8], pair[8];
    for (int i = 0; i < 8; ++i) row[i] = LoadTwoRows(base + offsets[i], base + offsets[i + 8]);
    for (int i = 0; i < 4; ++i) {
      pair[2 * i] = _mm512_unpacklo_ps(row[2 * i], row[2 * i + 1]);
      pair[2 * i + 1] = _mm512_unpackhi_ps(row[2 * i], row[2 * i + 1]);
    }
    for (int half = 0; half < 2; ++half) {
      for (int i = 0; i < 2; ++i) {
        const __m512 a = pair[4 * half + i], b = pair[4 * half + i + 2];
        row[4 * half + 2 * i] = _mm512_shuffle_ps(a, b, 0x44);
        row[4 * half + 2 * i + 1] = _mm512_shuffle_ps(a, b, 0xee);
      }
    }
    const __m512i even = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
    const __m512i odd = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    for (int i = 0; i < 4; ++i) {
      const __m512d a = _mm512_castps_pd(row[i]), b = _mm512_castps_pd(row[4 + i]);
      _mm512_storeu_ps(out + 16 * i, _mm512_castpd_ps(_mm512_permutex2var_pd(a, even, b)));
      _mm512_storeu_ps(out + 16 * (4 + i), _mm512_castpd_ps(_mm512_permutex2var_pd(a, odd, b)));
    }
  }

 private:
  static inline Vec Widen(__m512i words) { return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16)); }
  static inline __m512i RoundToBfloat16(Vec v) {
    const __m512i bits = _mm512_castps_si512(v), high = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(_mm512_srli_epi32(rounded, 16), nan, high, _mm512_set1_epi32(0x40));
  }
  static inline __m512 LoadTwoRows(const float* low, const float* high) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(low)), _mm256_loadu_ps(high), 1);
  }
  static inline __m512 LoadTwoRows(const Float16* low, const Float16* high) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(low));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(high));
    return _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1));
  }
  static inline __m512 LoadTwoRows(const Bfloat16* low, const Bfloat16* high) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(low));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(high));
    return Widen(_mm512_cvtepu16_epi32(_mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1)));
  }
  static inline __m512 LoadTwoRows(const int8_t* low, const int8_t* high) {
    const __m128i a = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(low));
    const __m128i b = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(high));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_unpacklo_epi64(a, b)));
  }
};

}  // namespace
}  // namespace oga::kernels
