// How a variant reads the forms of packed weights. A `Format` names what the product is written over: its Scales, its
// Decoder of a unit, and whether units are stored as if they were decoded already. Included by packed_product.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/product/packed_variant.h"
#include "kernels/simd/prefetch.h"
#include "kernels/simd/simd_math.h"

namespace oga::kernels {
namespace {

// Where a panel's stream has come to. Whoever reads a unit asks for the lines so far ahead of it; Next does for the
// headers, without which a line of most units would come late.
struct UnitStream {
  const uint8_t* header;
  const uint8_t* codes;
  int32_t unit = 0;
  int32_t left_in_group;

  UnitStream(const PackedLayout& layout, const uint8_t* panel)
      : header(panel), codes(panel + layout.header_bytes), left_in_group(layout.units_per_group) {}

  template <int ahead_bytes>
  inline void Next(const PackedLayout& layout) {
    codes += layout.unit_bytes;
    ++unit;
    if (--left_in_group > 0) return;
    left_in_group = layout.units_per_group;
    header = codes;
    codes += layout.header_bytes;
    for (int32_t line = 0; line < layout.header_bytes; line += 64)
      __builtin_prefetch(header + ahead_bytes + line, 0, 3);
  }
};

// How a code's zero point is taken off. Folded, the weight is code * scale - zero * scale by one fused multiply-add:
// the same number, since a scale that is a half times a power of two leaves both products and their difference exact.
enum class Zeros { kNone, kSubtracted, kFolded };

// Scales and zero points of one block of sixteen columns, in the order of the decoded codes.
template <class S, Zeros zeros>
struct BlockScales {
  static constexpr int kParts = S::kOrder == CodeOrder::kColumns ? 1 : 2;
  typename S::Vec scale[kParts];
  typename S::Vec zero[kParts];  // when folded, times the scale and negative

  inline void Load(const PackedLayout& layout, const uint8_t* header, int32_t block, int32_t first_column) {
    const int32_t index = block * kPanelColumns + first_column;
    const auto scales = layout.half_scales ? S::Mul(S::Load(reinterpret_cast<const Float16*>(header) + index),
                                                    S::Broadcast(layout.unscale))
                                           : S::Load(reinterpret_cast<const float*>(header) + index);
    Spread(scales, scale);
    const uint8_t* const points = header + layout.zeros_offset;
    if constexpr (zeros == Zeros::kFolded) {
      Spread(S::Mul(S::Sub(S::Broadcast(0.0f), S::LoadBytes(points + index)), scales), zero);
    } else if constexpr (zeros == Zeros::kSubtracted) {
      Spread(layout.zero_kind == ZeroKind::kUint8 ? S::LoadBytes(points + index)
                                                  : S::Load(reinterpret_cast<const float*>(points) + index),
             zero);
    }
  }

 private:
  static inline void Spread(typename S::Vec v, typename S::Vec* parts) {
    if constexpr (kParts == 1) {
      parts[0] = v;
    } else {
      parts[0] = S::Twice(v, 0);
      parts[1] = S::Twice(v, 1);
    }
  }
};

// Decodes the weights of sixteen columns, step by step. A load serves several steps.
template <class S, int bits, Zeros zeros>
struct BlockDecoder {
  static constexpr int kVectors = S::kOrder == CodeOrder::kChains ? 4 : S::kOrder == CodeOrder::kPairs ? 2 : 1;
  static constexpr int kLoadSteps = (S::kOrder == CodeOrder::kColumns ? 16 : 32) / bits;
  static constexpr int kLoadBytes = kVectors * 2 * 64;  // of both halves of the panel

  typename S::Codes codes[kVectors];

  // `half` is the first or the second sixteen columns of the panel.
  inline void Load(const uint8_t* unit, int step, int half) {
    const uint8_t* const from = unit + step / kLoadSteps * kLoadBytes;
    if constexpr (kVectors == 1) {
      codes[0] = S::LoadCodes(from + half * 64);
    } else {
      OGA_UNROLL
      for (int i = 0; i < kVectors; ++i) codes[i] = S::LoadCodes(from + (i / 2 * 4 + half * 2 + i % 2) * 64);
    }
  }
  inline typename S::Weights Get(int step, const BlockScales<S, zeros>& scales) const {
    const int i = step % kLoadSteps;
    if constexpr (S::kOrder == CodeOrder::kChains) {
      return S::RoundStep(Scaled(codes[0], i, scales, 0), Scaled(codes[1], i, scales, 1),
                          Scaled(codes[2], i, scales, 0), Scaled(codes[3], i, scales, 1));
    } else if constexpr (S::kOrder == CodeOrder::kPairs) {
      return S::RoundStep(Scaled(codes[0], i, scales, 0), Scaled(codes[1], i, scales, 1));
    } else {
      return S::RoundStep(Scaled(codes[0], 2 * i, scales, 0), Scaled(codes[0], 2 * i + 1, scales, 0));
    }
  }

 private:
  static inline typename S::Vec Scaled(typename S::Codes words, int index, const BlockScales<S, zeros>& scales,
                                       int part) {
    const auto code = S::template Decode<bits, zeros == Zeros::kNone>(words, index);
    if constexpr (zeros == Zeros::kFolded) return Simd::MulAdd(code, scales.scale[part], scales.zero[part]);
    if constexpr (zeros == Zeros::kSubtracted) return S::Mul(S::Sub(code, scales.zero[part]), scales.scale[part]);
    return S::Mul(code, scales.scale[part]);
  }
};

// Codes of 4 or 8 bits.
template <class S, int bits, Zeros zeros>
struct Blocks {
  using Scales = BlockScales<S, zeros>;
  using Decoder = BlockDecoder<S, bits, zeros>;
  static constexpr bool kStoredDecoded = false;
  static constexpr int32_t kAheadBytes = 4096;
};

// bfloat16 (16 bits) or float (32 bits).
template <class S, int bits>
struct Dense {
  static constexpr int32_t kAheadBytes = 8192;
  static constexpr bool kStoredDecoded = bits == 32 || S::kOrder != CodeOrder::kColumns;
  struct Scales {
    inline void Load(const PackedLayout&, const uint8_t*, int32_t, int32_t) {}
  };
  struct Decoder {
    static constexpr int kStepBytes = kStoredDecoded ? S::kStepFloats * 4 : 64;  // of sixteen columns
    static constexpr int kLoadSteps = 1;
    static constexpr int kLoadBytes = 2 * kStepBytes;

    typename S::Weights weights;

    inline void Load(const uint8_t* unit, int step, int half) {
      const uint8_t* const from = unit + (half * S::kUnitSteps + step) * kStepBytes;
      if constexpr (kStoredDecoded) {
        weights = S::LoadWeights(reinterpret_cast<const float*>(from));
      } else {
        weights = S::WidenPairs(S::LoadCodes(from));
      }
    }
    inline typename S::Weights Get(int, const Scales&) const { return weights; }
  };
};

template <class S, int bits, class Choose>
auto ChooseZeros(const PackedLayout& layout, const Choose& choose) {
  if (layout.zero_kind == ZeroKind::kNone) return choose(Blocks<S, bits, Zeros::kNone>{});
  const bool is_exact = layout.zero_kind == ZeroKind::kUint8 && layout.half_scales;
  return is_exact ? choose(Blocks<S, bits, Zeros::kFolded>{}) : choose(Blocks<S, bits, Zeros::kSubtracted>{});
}

// What `choose` makes of the format that weights have; it takes a value of the format.
template <class S, class Choose>
auto ChooseFormat(const PackedLayout& layout, const Choose& choose) {
  if constexpr (S::kOrder == CodeOrder::kColumns) {
    if (layout.bits == 32) return choose(Dense<S, 32>{});
  }
  if (layout.bits == 16) return choose(Dense<S, 16>{});
  return layout.bits == 8 ? ChooseZeros<S, 8>(layout, choose) : ChooseZeros<S, 4>(layout, choose);
}

}  // namespace
}  // namespace oga::kernels
