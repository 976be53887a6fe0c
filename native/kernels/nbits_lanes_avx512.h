// See nbits_lanes_portable.h for the meaning of each operation. With AVX512_BF16 a pair of weights stays in one
// register: its dot product with a pair of activations of which one is zero is a single fused multiply-add, denormals
// flushed, whatever the thread's mode is.
#pragma once

#include "kernels/nbits_weights.h"
#include "kernels/simd_avx512.h"

namespace oga::kernels {
namespace {

struct Lanes : Simd {
  static constexpr int kThinRows = 4;
  static constexpr int kWideRows = 6;
  static constexpr int kWideVectors = 2;

  struct Codes {
    __m512i words;
  };

  // Reads denormals as zero and flushes results to zero while it lives.
  class FlushDenormals {
   public:
    FlushDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040u); }
    ~FlushDenormals() { _mm_setcsr(saved_); }
    FlushDenormals(const FlushDenormals&) = delete;
    FlushDenormals& operator=(const FlushDenormals&) = delete;

   private:
    const unsigned saved_;
  };

  static inline Vec Zero() { return _mm512_setzero_ps(); }

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

#if defined(__AVX512BF16__)
  static constexpr CodeOrder kOrder = CodeOrder::kPairs;
  using Pair = __m512bh;
  static constexpr int kPairFloats = 16;

  // Eight columns each, their even and odd positions side by side: the order of the result's halves.
  static inline Pair RoundPair(Vec low_columns, Vec high_columns) {
    return _mm512_cvtne2ps_pbh(high_columns, low_columns);
  }
  static inline void StorePair(float* p, Pair pair) { _mm512_storeu_si512(p, (__m512i)pair); }
  static inline Pair LoadPair(const float* p) { return (Pair)_mm512_loadu_si512(p); }
  // Eight of sixteen columns' values, each twice.
  static inline Vec Twice(Vec v, int which_eight) {
    const __m512i low = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(which_eight == 0 ? low : _mm512_add_epi32(low, _mm512_set1_epi32(8)), v);
  }

  // An even position's activation is moved to the lower half of its word.
  static inline void StageActivations(Vec v, float* p) {
    const __m512i bits = _mm512_castps_si512(RoundActivations(v));
    _mm512_storeu_si512(p, _mm512_mask_srli_epi32(bits, 0x5555, bits, 16));
  }
  // Rounds sixteen activations and stores their halves side by side, as tiles have them.
  static inline void StageHalves(Vec v, uint16_t* p) {
    const __m512i bits = _mm512_srli_epi32(_mm512_castps_si512(RoundActivations(v)), 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(bits));
  }
  static inline Vec MulAddEven(Pair pair, Vec activation, Vec sum) {
    return _mm512_dpbf16_ps(sum, pair, (Pair)activation);
  }
  static inline Vec MulAddOdd(Pair pair, Vec activation, Vec sum) {
    return _mm512_dpbf16_ps(sum, pair, (Pair)activation);
  }
#else
  static constexpr CodeOrder kOrder = CodeOrder::kColumns;
  struct Pair {
    Vec even, odd;
  };
  static constexpr int kPairFloats = 32;

  static inline Pair RoundPair(Vec even, Vec odd) { return {Round(even), Round(odd)}; }
  static inline void StorePair(float* p, Pair pair) {
    Store(p, pair.even);
    Store(p + 16, pair.odd);
  }
  static inline Pair LoadPair(const float* p) { return {Load(p), Load(p + 16)}; }
  static inline void StageActivations(Vec v, float* p) { Store(p, RoundActivations(v)); }
  static inline Vec MulAddEven(Pair pair, Vec activation, Vec sum) { return MulAdd(pair.even, activation, sum); }
  static inline Vec MulAddOdd(Pair pair, Vec activation, Vec sum) { return MulAdd(pair.odd, activation, sum); }
#endif

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

}  // namespace
}  // namespace oga::kernels
