#if defined(__x86_64__)

#include "benchmarks/limits_avx512.h"

namespace oga::benchmarks {
namespace {

struct Avx512Bf16 : Avx512 {
  using Factor = __m512bh;
  static constexpr int kFlops = 64;

  static Factor Make(float value) { return _mm512_cvtne2ps_pbh(_mm512_set1_ps(value), _mm512_set1_ps(value)); }
  static Sums MultiplyAdd(Sums sums, Factor a, Factor b) { return _mm512_dpbf16_ps(sums, a, b); }
};

}  // namespace

const LimitLoops kLimitsAvx512Bf16 = kLoops<Avx512Bf16>;

}  // namespace oga::benchmarks

#endif
