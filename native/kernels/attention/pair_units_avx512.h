// How AVX512_BF16 computes what attention with products of bfloat16 is written over; see pair_units.h. Included after
// packed_lanes_avx512.h; see simd_math.h for linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/pair_units.h"
#include "kernels/product/packed_lanes_avx512.h"
#include "kernels/product/unit_product.h"
#include "kernels/simd/bfloat16.h"

namespace oga::kernels {
namespace {

// What both forms do with thirty-two numbers in bfloat16.
struct PairOps {
  using Halves = __m512i;

  // Those that a bit of `kept` stands for; the others are zero, and not read.
  static inline __m512i LoadHalves(const Bfloat16* p, uint32_t kept) { return _mm512_maskz_loadu_epi16(kept, p); }
  // Codes have eight bits, as bfloat16 has: nothing is rounded.
  static inline __m512i LoadHalves(const int8_t* p, uint32_t kept) {
    const __m256i codes = _mm256_maskz_loadu_epi8(kept, p);
    const __m512 low = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_castsi256_si128(codes)));
    const __m512 high = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_extracti128_si256(codes, 1)));
    return RoundPairs(low, high);
  }
  // As the sixteen words of a unit's or a staged row's line.
  static inline void StoreWords(float* p, __m512i halves) { _mm512_store_si512(p, halves); }
  // To the nearest, ties to even; a denormal is zero.
  static inline __m512i RoundPairs(__m512 low, __m512 high) { return (__m512i)_mm512_cvtne2ps_pbh(high, low); }
  // Adds the sums of pairs to sixteen sums.
  static inline __m512 AddPairs(__m512i halves, __m512 sums) {
    return _mm512_dpbf16_ps(sums, (__m512bh)halves, (__m512bh)_mm512_set1_epi32(0x3f803f80));
  }
  // Whether any is an infinity or a NaN.
  static inline bool AnyNotFinite(__m512i halves) {
    const __m512i exponent = _mm512_set1_epi16(0x7f80);
    return _mm512_cmpeq_epi16_mask(_mm512_and_si512(halves, exponent), exponent) != 0;
  }

  // 2^x for x <= 0 within 2^-18, which rounding to bfloat16 hides; a NaN stays one. Denormals must be flushed.
  static inline __m512 PowerOfTwo(__m512 x) {
    const __m512 r = _mm512_reduce_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 p = _mm512_set1_ps(0x1.3997d4p-7f);  // least relative error on [-1/2, 1/2]
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.ca1442p-5f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.ec06dap-3f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.62e0dcp-1f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.ffffe8p-1f));
    return _mm512_scalef_ps(p, _mm512_sub_ps(x, r));
  }

  // Turns sixteen rows of sixteen words into columns.
  static inline void TransposeWords(__m512i (&row)[16]) {
    __m512i pair[16];
    OGA_UNROLL
    for (int i = 0; i < 16; i += 2) {
      pair[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
      pair[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
    }
    OGA_UNROLL
    for (int i = 0; i < 16; i += 4) {
      row[i] = _mm512_unpacklo_epi64(pair[i], pair[i + 2]);
      row[i + 1] = _mm512_unpackhi_epi64(pair[i], pair[i + 2]);
      row[i + 2] = _mm512_unpacklo_epi64(pair[i + 1], pair[i + 3]);
      row[i + 3] = _mm512_unpackhi_epi64(pair[i + 1], pair[i + 3]);
    }
    // Each vector has a column of four rows in each of its quarters now.
    OGA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const __m512i low_even = _mm512_shuffle_i32x4(row[i], row[i + 4], 0x88);
      const __m512i low_odd = _mm512_shuffle_i32x4(row[i], row[i + 4], 0xdd);
      const __m512i high_even = _mm512_shuffle_i32x4(row[i + 8], row[i + 12], 0x88);
      const __m512i high_odd = _mm512_shuffle_i32x4(row[i + 8], row[i + 12], 0xdd);
      row[i] = _mm512_shuffle_i32x4(low_even, high_even, 0x88);
      row[i + 8] = _mm512_shuffle_i32x4(low_even, high_even, 0xdd);
      row[i + 4] = _mm512_shuffle_i32x4(low_odd, high_odd, 0x88);
      row[i + 12] = _mm512_shuffle_i32x4(low_odd, high_odd, 0xdd);
    }
  }

  // Words of two rows' numbers for the halves of a unit. Columns come in another order, which is the cheapest: each
  // half has every other four of them. Straighten puts the sums of 32 columns in order, and makes no zero of them
  // negative.
  template <int half>
  static inline __m512i Interleave(__m512i lower, __m512i upper) {
    return half == 0 ? _mm512_unpacklo_epi16(lower, upper) : _mm512_unpackhi_epi16(lower, upper);
  }
  static inline void Straighten(float* sums) {
    const __m512 zero = _mm512_setzero_ps();  // whose sum with a negative zero is a positive one
    const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512 low = _mm512_add_ps(_mm512_load_ps(sums), zero), high = _mm512_add_ps(_mm512_load_ps(sums + 16), zero);
    _mm512_store_ps(sums, _mm512_permutex2var_ps(low, first, high));
    _mm512_store_ps(sums + 16, _mm512_permutex2var_ps(low, _mm512_add_epi32(first, _mm512_set1_epi32(8)), high));
  }
};

// By VDPBF16PS. A chain's two next positions share a word, the earlier one above: see ChainLanes.
class ChainUnits : public PairOps {
 public:
  static constexpr int32_t kRunUnits = 1;
  static constexpr int UpperRow(int word) { return 4 * (word / 2) + word % 2; }
  static constexpr int LowerRow(int word) { return UpperRow(word) + 2; }
  static inline __m512i Arrange(__m512i halves) {
    const __m512i order = _mm512_broadcast_i32x4(_mm_setr_epi8(4, 5, 0, 1, 6, 7, 2, 3, 12, 13, 8, 9, 14, 15, 10, 11));
    return _mm512_shuffle_epi8(halves, order);
  }

  void MultiplyAdd(const UnitRun& run, float* sums) {
    for (int32_t i = 0; i < run.num_units; ++i) {
      MultiplyRows<ChainLanes, 0>(run.num_rows, run.units + i * run.unit_stride, run.staged + i * run.staged_stride,
                                  sums);
    }
  }
};

}  // namespace
}  // namespace oga::kernels
