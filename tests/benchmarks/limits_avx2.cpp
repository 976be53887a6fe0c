#if defined(__x86_64__)

#include <immintrin.h>

#include "benchmarks/limits_loops.h"

namespace oga::benchmarks {
namespace {

struct Avx2 {
  using Bits = __m256i;
  using Sums = __m256;
  using Factor = __m256;
  static constexpr size_t kBytes = 32;
  static constexpr int kFlops = 16;
  static constexpr int kSums = 12;

  static Bits Load(const uint8_t* from) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(from)); }
  static Bits Add(Bits a, Bits b) { return _mm256_add_epi64(a, b); }
  static uint64_t Sum(Bits bits) { return static_cast<uint64_t>(_mm256_extract_epi64(bits, 0)); }
  static Sums Begin(float value) { return _mm256_set1_ps(value); }
  static Factor Make(float value) { return Begin(value); }
  static Sums MultiplyAdd(Sums sums, Factor a, Factor b) { return _mm256_fmadd_ps(a, b, sums); }
  static float First(Sums sums) { return _mm256_cvtss_f32(sums); }
};

}  // namespace

const LimitLoops kLimitsAvx2 = kLoops<Avx2>;

}  // namespace oga::benchmarks

#endif
