// The activation of gated feed-forward layers: SwiGLU, silu(gate) * up (Shazeer, "GLU Variants Improve Transformer",
// 2020). Included after one of the simd_*.h headers; see simd_math.h for linkage.
#pragma once

#include "kernels/simd/simd_math.h"

namespace oga::kernels {
namespace {

// gate / (1 + e^-gate) * up, within some 2^-22 of it. From e^-|gate|, which cannot overflow; the variants with fused
// multiply-add give the same bits, for a row as for any other.
template <class S>
inline typename S::Vec SwiGlu(typename S::Vec gate, typename S::Vec up) {
  using Vec = typename S::Vec;
  constexpr float kLog2E = 0x1.715476p+0f;
  const Vec zero = S::Broadcast(0.0f);
  const Vec negative = S::Max(S::Sub(zero, gate), zero);  // one of the two is zero
  const Vec positive = S::Max(zero, gate);                // and this one a NaN for a NaN
  const Vec power = Exp2<S>(S::Mul(S::Add(negative, positive), S::Broadcast(-kLog2E)));
  const Vec numerator = S::Sub(positive, S::Mul(negative, power));
  return S::Mul(S::Div(numerator, S::Add(S::Broadcast(1.0f), power)), up);
}

}  // namespace
}  // namespace oga::kernels
