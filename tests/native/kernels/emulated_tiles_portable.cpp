// What is written for AMX, with the instructions of AVX512_BF16 in plain arithmetic too, so that it runs on every CPU.
#if defined(__x86_64__)

#include "kernels/product/packed_lanes_portable.h"

#include "kernels/attention/paged_attention_pairs.h"
#include "kernels/product/packed_amx.h"
#include "kernels/simd/bfloat16.h"
#include "kernels/simd/denormals.h"
#include "native/kernels/emulated_tiles.h"

namespace oga::kernels {
extern const PackedVariant kPackedEmulatedEverywhere;
extern const PairAttentionVariant kPairAttentionEmulatedEverywhere;

namespace {

// Thirty-two numbers in bfloat16.
struct Numbers {
  uint16_t bits[32];
};

// To the nearest, ties to even; a denormal is zero, and a NaN stays one.
uint16_t RoundedBits(float value) {
  const uint32_t bits = BitsFromFloat(value);
  return (bits & 0x7f800000u) == 0 ? static_cast<uint16_t>(bits >> 16 & 0x8000u) : ToBfloat16(value).bits;
}

float Lane(Simd::Vec v, int lane) { return v.part[lane / 4][lane % 4]; }

Numbers Round(Simd::Vec low, Simd::Vec high) {
  Numbers rounded;
  for (int i = 0; i < 32; ++i) rounded.bits[i] = RoundedBits(Lane(i < 16 ? low : high, i % 16));
  return rounded;
}

// PairLanes of packed_lanes_avx512.h.
struct EmulatedLanes : Lanes {
  static constexpr CodeOrder kOrder = CodeOrder::kPairs;
  static constexpr int kUnitSteps = 16;
  using Weights = Numbers;
  static constexpr int kStepFloats = 16;
  using FlushDenormals = DenormalMode<true>;

  static Vec Twice(Vec v, int which_eight) {
    Vec twice;
    for (int i = 0; i < 16; ++i) twice.part[i / 4][i % 4] = Lane(v, 8 * which_eight + i / 2);
    return twice;
  }
  static Weights RoundStep(Vec low_columns, Vec high_columns) { return kernels::Round(low_columns, high_columns); }
  static void StoreWeights(float* p, const Weights& weights) { std::memcpy(p, &weights, sizeof(weights)); }
  static void StageHalves(Vec v, uint16_t* p) {
    for (int i = 0; i < 16; ++i) p[i] = RoundedBits(Lane(v, i));
  }
};

// PairOps of pair_units_avx512.h.
struct EmulatedOps {
  using Halves = Numbers;
  using Vec = Simd::Vec;

  static Halves LoadHalves(const Bfloat16* p, uint32_t kept) {
    Halves halves = {};
    for (int i = 0; i < 32; ++i) {
      if ((kept >> i & 1u) != 0) halves.bits[i] = p[i].bits;
    }
    return halves;
  }
  static Halves LoadHalves(const int8_t* p, uint32_t kept) {
    Halves halves = {};
    for (int i = 0; i < 32; ++i) {
      if ((kept >> i & 1u) != 0) halves.bits[i] = RoundedBits(p[i]);
    }
    return halves;
  }
  static void StoreWords(float* p, const Halves& halves) { std::memcpy(p, &halves, sizeof(halves)); }
  static Halves RoundPairs(Vec low, Vec high) { return kernels::Round(low, high); }
  static Vec AddPairs(const Halves& halves, Vec sums) {
    for (int i = 0; i < 16; ++i) {
      sums.part[i / 4][i % 4] += ToFloat(Bfloat16{halves.bits[2 * i + 1]});
      sums.part[i / 4][i % 4] += ToFloat(Bfloat16{halves.bits[2 * i]});
    }
    return sums;
  }
  static bool AnyNotFinite(const Halves& halves) {
    bool any = false;
    for (const uint16_t bits : halves.bits) any = any || (bits & 0x7f80u) == 0x7f80u;
    return any;
  }
  static Vec PowerOfTwo(Vec x) {
    Vec powers;
    for (int i = 0; i < 16; ++i) powers.part[i / 4][i % 4] = PowerOfTwo(Lane(x, i));
    return powers;
  }
  static void TransposeWords(Halves (&row)[16]) {
    Halves column[16];
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 16; ++j) std::memcpy(&column[j].bits[2 * i], &row[i].bits[2 * j], 4);
    }
    std::memcpy(row, column, sizeof(column));
  }
  // In the order of the columns, so that nothing is to straighten but the zeros.
  template <int half>
  static Halves Interleave(const Halves& lower, const Halves& upper) {
    Halves words;
    for (int i = 0; i < 16; ++i) {
      words.bits[2 * i] = lower.bits[16 * half + i];
      words.bits[2 * i + 1] = upper.bits[16 * half + i];
    }
    return words;
  }
  static void Straighten(float* sums) {
    for (int i = 0; i < kPanelColumns; ++i) sums[i] += 0.0f;
  }

 private:
  static float PowerOfTwo(float x) {
    if (x < -150.0f) return 0.0f;
    const float whole = __builtin_nearbyintf(x), r = x - whole;
    float p = 0x1.3997d4p-7f;
    for (const float factor : {0x1.ca1442p-5f, 0x1.ec06dap-3f, 0x1.62e0dcp-1f, 0x1.ffffe8p-1f}) {
      p = __builtin_fmaf(p, r, factor);
    }
    return static_cast<float>(static_cast<double>(p) * __builtin_exp2(static_cast<double>(whole)));
  }
};

}  // namespace

const PackedVariant kPackedEmulatedEverywhere = AmxEntry<EmulatedLanes, EmulatedTiles>::kTable;
const PairAttentionVariant kPairAttentionEmulatedEverywhere = PairEntry<TileUnits<EmulatedTiles, EmulatedOps>>::kTable;

}  // namespace oga::kernels

#endif
