// Vectors of 64 bytes for limits_loops.h, in files compiled for AVX-512.
#pragma once

// As kernels/simd/simd_avx512.h says.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include "benchmarks/limits_loops.h"

namespace oga::benchmarks {
namespace {

struct Avx512 {
  using Bits = __m512i;
  using Sums = __m512;
  using Factor = __m512;
  static constexpr size_t kBytes = 64;
  static constexpr int kFlops = 32;
  static constexpr int kSums = 16;

  static Bits Load(const uint8_t* from) { return _mm512_load_si512(from); }
  static Bits Add(Bits a, Bits b) { return _mm512_add_epi64(a, b); }
  static uint64_t Sum(Bits bits) { return static_cast<uint64_t>(_mm_cvtsi128_si64(_mm512_castsi512_si128(bits))); }
  static Sums Begin(float value) { return _mm512_set1_ps(value); }
  static Factor Make(float value) { return Begin(value); }
  static Sums MultiplyAdd(Sums sums, Factor a, Factor b) { return _mm512_fmadd_ps(a, b, sums); }
  static float First(Sums sums) { return _mm512_cvtss_f32(sums); }
};

}  // namespace
}  // namespace oga::benchmarks
