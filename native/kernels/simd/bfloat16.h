// bfloat16 as stored in a cache or an activation, converted without the instructions that few CPUs have: exact
// widening, and rounding to the nearest, ties to even. Denormals are kept, whatever the thread's mode: only integers
// are involved.
//
// Internal linkage throughout; float16.h says why.
#pragma once

#include <cstdint>

#include "kernels/simd/float16.h"

namespace oga::kernels {

struct Bfloat16 {
  uint16_t bits;
};

static inline float ToFloat(Bfloat16 x) { return FloatFromBits(static_cast<uint32_t>(x.bits) << 16); }

static inline Bfloat16 ToBfloat16(float value) {
  const uint32_t bits = BitsFromFloat(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return Bfloat16{static_cast<uint16_t>(bits >> 16 | 0x0040u)};
  return Bfloat16{static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

}  // namespace oga::kernels
