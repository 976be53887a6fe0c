// See packed_lanes_portable.h for the meaning of each operation. AVX512_BF16 has forms of its own, in which a word
// holds two weights in bfloat16, in another order of codes for each user.
#pragma once

#include "kernels/product/packed_weights.h"
#include "kernels/simd/denormals.h"
#include "kernels/simd/simd_avx512.h"

namespace oga::kernels {
namespace {

struct CommonLanes : Simd {
  static constexpr int kThinRows = 4;
  static constexpr int kWideRows = 6;
  static constexpr int kWideVectors = 2;

  struct Codes {
    __m512i words;
  };

  using FlushDenormals = DenormalMode<true>;

  static inline Vec Zero() { return _mm512_setzero_ps(); }

  static inline Codes LoadCodes(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
  template <int bits, bool is_signed>
  static inline Vec Decode(Codes codes, int index) {
    if constexpr (bits == 4) {  // the permutation looks at four bits of each word
      const __m512 values = is_signed ? _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1)
                                      : _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
      return _mm512_permutexvar_ps(_mm512_srli_epi32(codes.words, static_cast<unsigned>(4 * index)), values);
    } else {
      const __m512i top = _mm512_slli_epi32(codes.words, static_cast<unsigned>(24 - 8 * index));
      return _mm512_cvtepi32_ps(is_signed ? _mm512_srai_epi32(top, 24) : _mm512_srli_epi32(top, 24));
    }
  }
  static inline Vec LoadBytes(const uint8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
};

#if defined(__AVX512BF16__)

struct HalvesLanes : CommonLanes {
  // Eight of sixteen columns' values, each twice: for the two words of a column.
  static inline Vec Twice(Vec v, int which_eight) {
    const __m512i low = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(which_eight == 0 ? low : _mm512_add_epi32(low, _mm512_set1_epi32(8)), v);
  }
  // To the nearest, ties to even; a denormal is zero, and a NaN stays one.
  static inline __m256i RoundSixteen(Vec v) { return (__m256i)_mm512_cvtneps_pbh(v); }
  // Sixteen columns, of which each argument has eight.
  static inline __m512bh RoundHalves(Vec low_columns, Vec high_columns) {
    return _mm512_cvtne2ps_pbh(high_columns, low_columns);
  }
};

// VDPBF16PS adds the product of the upper halves first, then that of the lower ones, each as a fused multiply-add with
// denormals flushed: two steps of one chain. A step here is four positions of K.
struct ChainLanes : HalvesLanes {
  static constexpr CodeOrder kOrder = CodeOrder::kChains;
  static constexpr int kUnitSteps = 8;
  struct Weights {
    __m512bh even, odd;
  };
  static constexpr int kStepFloats = 32;

  static inline Weights RoundStep(Vec even_low, Vec even_high, Vec odd_low, Vec odd_high) {
    return {RoundHalves(even_low, even_high), RoundHalves(odd_low, odd_high)};
  }
  static inline void StoreWeights(float* p, Weights weights) {
    _mm512_storeu_si512(p, (__m512i)weights.even);
    _mm512_storeu_si512(p + 16, (__m512i)weights.odd);
  }
  static inline Weights LoadWeights(const float* p) {
    return {(__m512bh)_mm512_loadu_si512(p), (__m512bh)_mm512_loadu_si512(p + 16)};
  }
  // Eight words, the even and the odd chain's by turns: of four positions the third and the first, the fourth and the
  // second.
  static inline void StageActivations(Vec v, float* p) {
    const __m256i order = _mm256_setr_epi8(4, 5, 0, 1, 6, 7, 2, 3, 12, 13, 8, 9, 14, 15, 10, 11, 4, 5, 0, 1, 6, 7, 2, 3,
                                           12, 13, 8, 9, 14, 15, 10, 11);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_shuffle_epi8(RoundSixteen(v), order));
  }
  static inline Vec MulAdd(__m512bh weights, Vec activations, Vec sum) {
    return _mm512_dpbf16_ps(sum, weights, (__m512bh)activations);
  }
};

// Decodes to the words of an AMX tile; the tiles do the rest.
struct PairLanes : HalvesLanes {
  static constexpr CodeOrder kOrder = CodeOrder::kPairs;
  static constexpr int kUnitSteps = 16;
  using Weights = __m512bh;
  static constexpr int kStepFloats = 16;

  static inline Weights RoundStep(Vec low_columns, Vec high_columns) { return RoundHalves(low_columns, high_columns); }
  static inline void StoreWeights(float* p, Weights weights) { _mm512_storeu_si512(p, (__m512i)weights); }
  // Rounds sixteen activations and stores their halves side by side.
  static inline void StageHalves(Vec v, uint16_t* p) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), RoundSixteen(v));
  }
};

#else

struct Lanes : CommonLanes {
  static constexpr CodeOrder kOrder = CodeOrder::kColumns;
  static constexpr int kUnitSteps = 16;
  struct Weights {
    Vec even, odd;
  };
  static constexpr int kStepFloats = 32;

  static inline Vec Round(Vec v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
    const __m512i half = _mm512_mask_mov_epi32(_mm512_set1_epi32(0x7fff), odd, _mm512_set1_epi32(0x8000));
    const __m512i sum = _mm512_add_epi32(bits, half);
    return _mm512_castsi512_ps(_mm512_and_si512(sum, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  static inline Vec RoundActivations(Vec v) {
    const __m512 normal = _mm512_mul_ps(v, _mm512_set1_ps(1.0f));  // a denormal becomes zero
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_mask_mov_ps(Round(normal), nan, _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)));
  }

  static inline Weights RoundStep(Vec even, Vec odd) { return {Round(even), Round(odd)}; }
  static inline void StoreWeights(float* p, Weights weights) {
    Store(p, weights.even);
    Store(p + 16, weights.odd);
  }
  static inline Weights LoadWeights(const float* p) { return {Load(p), Load(p + 16)}; }
  static inline Weights WidenPairs(Codes codes) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(codes.words, 16)),
            _mm512_castsi512_ps(_mm512_and_si512(codes.words, upper))};
  }
  static inline void StageActivations(Vec v, float* p) { Store(p, RoundActivations(v)); }
};

#endif

}  // namespace
}  // namespace oga::kernels
