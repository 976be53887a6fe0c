// One piece of the quantised product on vectors: some panels times some rows. Included by the variant sources after
// their nbits_lanes_*.h; see simd_math.h for linkage.
//
// Few rows: the weights are decoded in registers and used at once, in one pass over the stream, whose later lines are
// asked for ahead. More rows: a unit is decoded to the first-level cache once and used by all of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/nbits_variant.h"
#include "kernels/simd_math.h"

namespace oga::kernels {
namespace {

inline constexpr int32_t kUnitPairs = kUnitK / 2;
inline constexpr int32_t kMostWideRows = 96;  // their sums stay in the first-level cache
inline constexpr int32_t kAheadBytes = 4096;

// Where a panel's stream has come to.
struct UnitStream {
  const uint8_t* header;
  const uint8_t* codes;
  int32_t unit = 0;

  UnitStream(const NBitsLayout& layout, const uint8_t* panel) : header(panel), codes(panel + layout.header_bytes) {}
  inline void Next(const NBitsLayout& layout) {
    codes += layout.unit_bytes;
    if (++unit % layout.units_per_group != 0) return;
    header = codes;
    codes += layout.header_bytes;
  }
};

// Scales and zero points of one block of sixteen columns, in the order of the decoded codes.
template <class S, bool has_zero>
struct BlockScales {
  static constexpr int kParts = S::kOrder == CodeOrder::kPairs ? 2 : 1;
  typename S::Vec scale[kParts];
  typename S::Vec zero[kParts];

  inline void Load(const NBitsLayout& layout, const uint8_t* header, int32_t block, int32_t first_column) {
    const int32_t index = block * kPanelColumns + first_column;
    const auto scales = layout.half_scales ? S::Mul(S::Load(reinterpret_cast<const Float16*>(header) + index),
                                                    S::Broadcast(layout.unscale))
                                           : S::Load(reinterpret_cast<const float*>(header) + index);
    Spread(scales, scale);
    if constexpr (has_zero) {
      const uint8_t* const zeros = header + layout.zeros_offset;
      Spread(layout.zero_kind == ZeroKind::kUint8 ? S::LoadBytes(zeros + index)
                                                  : S::Load(reinterpret_cast<const float*>(zeros) + index),
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

// Decodes the weights of sixteen columns, pair by pair.
template <class S, int bits, bool has_zero>
struct Decoder {
  static constexpr bool kByPairs = S::kOrder == CodeOrder::kPairs;
  static constexpr int kWordPairs = (kByPairs ? 32 : 16) / bits;  // pairs of one Load

  typename S::Codes codes[2];

  // `vector` counts sixteen columns of the panel.
  inline void Load(const uint8_t* unit, int32_t word, int32_t vector) {
    if constexpr (kByPairs) {
      codes[0] = S::LoadCodes(unit + (4 * word + 2 * vector) * 64);
      codes[1] = S::LoadCodes(unit + (4 * word + 2 * vector + 1) * 64);
    } else {
      codes[0] = S::LoadCodes(unit + (2 * word + vector) * 64);
    }
  }
  inline typename S::Pair Get(int pair, const BlockScales<S, has_zero>& scales) const {
    if constexpr (kByPairs) {
      return S::RoundPair(Scaled(codes[0], pair, scales, 0), Scaled(codes[1], pair, scales, 1));
    } else {
      return S::RoundPair(Scaled(codes[0], 2 * pair, scales, 0), Scaled(codes[0], 2 * pair + 1, scales, 0));
    }
  }

 private:
  static inline typename S::Vec Scaled(typename S::Codes words, int index, const BlockScales<S, has_zero>& scales,
                                       int part) {
    auto code = S::template Decode<bits, !has_zero>(words, index);
    if constexpr (has_zero) code = S::Sub(code, scales.zero[part]);
    return S::Mul(code, scales.scale[part]);
  }
};

template <class S>
inline void WriteVector(const NBitsCall& call, typename S::Vec sum, int64_t row, int64_t column) {
  float* const out = call.output + row * call.layout.n + column;
  if (column + 16 <= call.layout.n) {
    if (call.bias != nullptr) sum = S::Add(sum, S::Load(call.bias + column));
    S::Store(out, sum);
    return;
  }
  float values[16];
  S::Store(values, sum);
  for (int64_t i = 0; column + i < call.layout.n; ++i) {
    out[i] = call.bias == nullptr ? values[i] : values[i] + call.bias[column + i];
  }
}

// A whole panel for `rows` rows. `staged` has them alone.
template <class S, int bits, bool has_zero, int rows>
void ThinPanel(const NBitsCall& call, int32_t panel, int32_t first_row) {
  using Vec = typename S::Vec;
  using Unit = Decoder<S, bits, has_zero>;
  const NBitsLayout& layout = call.layout;
  UnitStream stream(layout, call.weights + panel * layout.panel_bytes);
  const float* staged = reinterpret_cast<const float*>(call.staged) + first_row * kUnitK;
  Vec total[rows][2];
  OGA_UNROLL
  for (int r = 0; r < rows; ++r) total[r][0] = total[r][1] = S::Zero();
  for (int32_t unit = 0; unit < layout.units; ++unit) {
    Vec even[rows][2], odd[rows][2];
    OGA_UNROLL
    for (int r = 0; r < rows; ++r) even[r][0] = even[r][1] = odd[r][0] = odd[r][1] = S::Zero();
    BlockScales<S, has_zero> scales[2];
    constexpr int kWords = kUnitPairs / Unit::kWordPairs;
    OGA_UNROLL
    for (int word = 0; word < kWords; ++word) {
      const int block = 2 * word / kWords;
      if (word == 0 || (2 * word == kWords && layout.blocks_per_group == 2)) {
        scales[0].Load(layout, stream.header, block, 0);
        scales[1].Load(layout, stream.header, block, 16);
      }
      constexpr int kWordBytes = kPanelColumns * kUnitK / 8 * bits / kWords;
      OGA_UNROLL
      for (int line = 0; line < kWordBytes; line += 64) {
        __builtin_prefetch(stream.codes + kAheadBytes + word * kWordBytes + line, 0, 3);
      }
      Unit codes[2];
      codes[0].Load(stream.codes, word, 0);
      codes[1].Load(stream.codes, word, 1);
      OGA_UNROLL
      for (int i = 0; i < Unit::kWordPairs; ++i) {
        const auto first = codes[0].Get(i, scales[0]);
        const auto second = codes[1].Get(i, scales[1]);
        OGA_UNROLL
        for (int r = 0; r < rows; ++r) {
          const float* const pair = staged + r * kUnitK + 2 * (word * Unit::kWordPairs + i);
          const Vec a = S::Broadcast(pair[0]), b = S::Broadcast(pair[1]);
          even[r][0] = S::MulAddEven(first, a, even[r][0]);
          odd[r][0] = S::MulAddOdd(first, b, odd[r][0]);
          even[r][1] = S::MulAddEven(second, a, even[r][1]);
          odd[r][1] = S::MulAddOdd(second, b, odd[r][1]);
        }
      }
    }
    OGA_UNROLL
    for (int r = 0; r < rows; ++r) {
      total[r][0] = S::Add(total[r][0], S::Add(even[r][0], odd[r][0]));
      total[r][1] = S::Add(total[r][1], S::Add(even[r][1], odd[r][1]));
    }
    staged += int64_t{call.rows} * kUnitK;
    stream.Next(layout);
  }
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < 2; ++v) {
      const int64_t column = int64_t{panel} * kPanelColumns + 16 * v;
      if (column < layout.n) WriteVector<S>(call, total[r][v], first_row + r, column);
    }
  }
}

// Decodes a unit to [vector][pair], in the form of S::LoadPair.
template <class S, int bits, bool has_zero>
void DecodeUnit(const NBitsLayout& layout, const UnitStream& stream, float* decoded) {
  using Unit = Decoder<S, bits, has_zero>;
  constexpr int kWords = kUnitPairs / Unit::kWordPairs;
  for (int32_t vector = 0; vector < 2; ++vector) {
    BlockScales<S, has_zero> scales;
    for (int word = 0; word < kWords; ++word) {
      const int block = 2 * word / kWords;
      if (word == 0 || (2 * word == kWords && layout.blocks_per_group == 2)) {
        scales.Load(layout, stream.header, block, 16 * vector);
      }
      Unit codes;
      codes.Load(stream.codes, word, vector);
      constexpr int kPartBytes = kPanelColumns * kUnitK / 16 * bits / kWords;
      OGA_UNROLL
      for (int line = 0; line < kPartBytes; line += 64) {
        __builtin_prefetch(stream.codes + kAheadBytes + (vector * kWords + word) * kPartBytes + line, 0, 3);
      }
      OGA_UNROLL
      for (int i = 0; i < Unit::kWordPairs; ++i) {
        S::StorePair(decoded, codes.Get(i, scales));
        decoded += S::kPairFloats;
      }
    }
  }
}

// Adds the products of one decoded unit to the sums of `rows` rows, kPanelColumns apart.
template <class S, int rows>
inline void MultiplyUnit(const float* decoded, const float* staged, float* sums) {
  using Vec = typename S::Vec;
  constexpr int kVectors = S::kWideVectors;
  for (int vector = 0; vector < 2; vector += kVectors) {
    Vec even[rows][kVectors], odd[rows][kVectors];
    OGA_UNROLL
    for (int r = 0; r < rows; ++r) {
      OGA_UNROLL
      for (int v = 0; v < kVectors; ++v) even[r][v] = odd[r][v] = S::Zero();
    }
    for (int pair = 0; pair < kUnitPairs; ++pair) {
      typename S::Pair weights[kVectors];
      OGA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        weights[v] = S::LoadPair(decoded + ((vector + v) * kUnitPairs + pair) * S::kPairFloats);
      }
      OGA_UNROLL
      for (int r = 0; r < rows; ++r) {
        const Vec a = S::Broadcast(staged[r * kUnitK + 2 * pair]), b = S::Broadcast(staged[r * kUnitK + 2 * pair + 1]);
        OGA_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          even[r][v] = S::MulAddEven(weights[v], a, even[r][v]);
          odd[r][v] = S::MulAddOdd(weights[v], b, odd[r][v]);
        }
      }
    }
    OGA_UNROLL
    for (int r = 0; r < rows; ++r) {
      OGA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        float* const sum = sums + r * kPanelColumns + 16 * (vector + v);
        S::Store(sum, S::Add(S::Load(sum), S::Add(even[r][v], odd[r][v])));
      }
    }
  }
}

// The same for any number of rows, in register tiles of nearly equal heights.
template <class S>
void MultiplyRows(int32_t rows, const float* decoded, const float* staged, float* sums) {
  constexpr int kMost = S::kWideRows;
  for (int32_t tiles = (rows + kMost - 1) / kMost; tiles > 0; --tiles) {
    const int32_t take = (rows + tiles - 1) / tiles;
    if constexpr (kMost >= 6) {
      if (take == 6) MultiplyUnit<S, 6>(decoded, staged, sums);
      if (take == 5) MultiplyUnit<S, 5>(decoded, staged, sums);
      if (take == 4) MultiplyUnit<S, 4>(decoded, staged, sums);
    }
    if constexpr (kMost >= 3) {
      if (take == 3) MultiplyUnit<S, 3>(decoded, staged, sums);
      if (take == 2) MultiplyUnit<S, 2>(decoded, staged, sums);
    }
    if (take == 1) MultiplyUnit<S, 1>(decoded, staged, sums);
    rows -= take;
    staged += take * kUnitK;
    sums += take * kPanelColumns;
  }
}

template <class S, int bits, bool has_zero>
void WidePanel(const NBitsCall& call, int32_t panel, RowRange rows) {
  const NBitsLayout& layout = call.layout;
  const int32_t count = rows.end - rows.begin;
  alignas(64) float sums[kMostWideRows * kPanelColumns];
  alignas(64) float decoded[2 * kUnitPairs * S::kPairFloats];
  for (int32_t i = 0; i < count * kPanelColumns; i += 16) S::Store(sums + i, S::Zero());
  UnitStream stream(layout, call.weights + panel * layout.panel_bytes);
  for (int32_t unit = 0; unit < layout.units; ++unit) {
    DecodeUnit<S, bits, has_zero>(layout, stream, decoded);
    const float* const staged =
        reinterpret_cast<const float*>(call.staged) + (int64_t{unit} * call.rows + rows.begin) * kUnitK;
    MultiplyRows<S>(count, decoded, staged, sums);
    stream.Next(layout);
  }
  for (int32_t row = 0; row < count; ++row) {
    for (int v = 0; v < 2; ++v) {
      const int64_t column = int64_t{panel} * kPanelColumns + 16 * v;
      if (column >= layout.n) break;
      WriteVector<S>(call, S::Load(sums + row * kPanelColumns + 16 * v), rows.begin + row, column);
    }
  }
}

}  // namespace
}  // namespace oga::kernels
