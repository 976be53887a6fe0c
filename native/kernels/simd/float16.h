// IEEE half precision as stored in a cache, converted without hardware. Both directions give what F16C gives, bit for
// bit: exact widening, and rounding to the nearest, ties to even.
//
// Everything here has internal linkage: the variants of a kernel are compiled for different instruction sets, and the
// linker must never take one variant's copy of a shared function for another.
#pragma once

#include <cstdint>
#include <cstring>

namespace oga::kernels {

struct Float16 {
  uint16_t bits;
};

static inline float FloatFromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

static inline uint32_t BitsFromFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static inline float ToFloat(Float16 half) {
  const uint32_t sign = static_cast<uint32_t>(half.bits & 0x8000u) << 16;
  const uint32_t magnitude = half.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {
    const uint32_t quiet = magnitude > 0x7c00u ? 0x00400000u : 0u;
    return FloatFromBits(sign | 0x7f800000u | quiet | (magnitude & 0x3ffu) << 13);
  }
  if (magnitude < 0x0400u) {
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return FloatFromBits(sign | BitsFromFloat(value));
  }
  return FloatFromBits(sign | ((magnitude << 13) + 0x38000000u));
}

static inline Float16 ToFloat16(float value) {
  const uint32_t bits = BitsFromFloat(value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t half;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | (magnitude >> 13 & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {
    half = 0x7c00u;  // 65520 and above round to infinity
  } else if (magnitude < 0x38800000u) {
    // Below the smallest normal half, the sum with 0.5 has exactly the spacing of half denormals: the adder rounds.
    half = BitsFromFloat(FloatFromBits(magnitude) + 0.5f) - BitsFromFloat(0.5f);
  } else {
    half = (magnitude - 0x38000000u + 0x0fffu + (magnitude >> 13 & 1u)) >> 13;
  }
  return Float16{static_cast<uint16_t>(sign | half)};
}

}  // namespace oga::kernels
