// What the product with packed weights needs of sixteen lanes besides float arithmetic. The packed_lanes_*.h headers
// define the same `Lanes` in an unnamed namespace, over the `Simd` of their instruction set, and each variant source
// includes one.
#pragma once

#include "kernels/product/packed_weights.h"
#include "kernels/simd/simd_portable.h"

namespace oga::kernels {
namespace {

struct Lanes : Simd {
  // The register tile of the product: rows with the weights decoded in registers, rows over weights decoded before,
  // and how many vectors of sixteen columns the latter spans.
  static constexpr int kThinRows = 1;
  static constexpr int kWideRows = 1;
  static constexpr int kWideVectors = 1;

  // A step takes both chains of sums of sixteen columns on by one position each, an even and the following odd one.
  static constexpr CodeOrder kOrder = CodeOrder::kColumns;
  static constexpr int kUnitSteps = 16;
  struct Weights {
    Vec even, odd;
  };
  static constexpr int kStepFloats = 32;  // stored
  struct Codes {
    FourWords part[4];
  };

  // The thread's denormal mode is left alone: this variant promises a tolerance only.
  struct FlushDenormals {};

  static inline Vec Zero() { return Broadcast(0.0f); }

  // Whatever is not a NaN, to the nearest bfloat16.
  static inline Vec Round(Vec v) {
    return Each([&](int i) {
      const FourWords bits = (FourWords)v.part[i];
      return (Four)((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
    });
  }
  static inline Weights RoundStep(Vec even, Vec odd) { return {Round(even), Round(odd)}; }
  static inline void StoreWeights(float* p, Weights weights) {
    Store(p, weights.even);
    Store(p + 16, weights.odd);
  }
  static inline Weights LoadWeights(const float* p) { return {Load(p), Load(p + 16)}; }

  // Words of two numbers in bfloat16, of an even position in the lower half and of the odd one after it in the upper.
  static inline Weights WidenPairs(Codes words) {
    return {Each([&](int i) { return (Four)(words.part[i] << 16); }),
            Each([&](int i) { return (Four)(words.part[i] & 0xffff0000u); })};
  }

  // Rounds sixteen activations, NaNs among them, and stores them in the form of the operand below.
  static inline void StageActivations(Vec v, float* p) {
    Store(p, Each([&](int i) {
            const FourWords bits = (FourWords)v.part[i];
            const FourWords rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
            const FourWords nan = (FourWords)((bits & 0x7fffffffu) > 0x7f800000u);
            return (Four)((nan & 0x7fc00000u) | (~nan & rounded));
          }));
  }

  static inline Codes LoadCodes(const uint8_t* p) {
    Codes codes;
    std::memcpy(&codes, p, sizeof(codes));
    return codes;
  }
  // The code at `index` of each lane's word as a float.
  template <int bits, bool is_signed>
  static inline Vec Decode(Codes codes, int index) {
    typedef int32_t FourInts __attribute__((vector_size(16)));
    return Each([&](int i) {
      const FourWords top = codes.part[i] << (32 - bits - bits * index);
      const FourInts code = is_signed ? (FourInts)top >> (32 - bits) : (FourInts)(top >> (32 - bits));
      return __builtin_convertvector(code, Four);
    });
  }
  static inline Vec LoadBytes(const uint8_t* p) {
    return Each([&](int i) {
      Four four;
      for (int lane = 0; lane < 4; ++lane) four[lane] = p[4 * i + lane];
      return four;
    });
  }
};

}  // namespace
}  // namespace oga::kernels
