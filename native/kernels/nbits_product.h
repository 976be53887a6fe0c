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

inline constexpr int32_t kMostWideRows = 126;  // their sums stay in the first-level cache
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
  static constexpr int kParts = S::kOrder == CodeOrder::kColumns ? 1 : 2;
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

// Decodes the weights of sixteen columns, step by step. A load serves several steps.
template <class S, int bits, bool has_zero>
struct Decoder {
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
  inline typename S::Weights Get(int step, const BlockScales<S, has_zero>& scales) const {
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

// A panel's columns of one row.
template <class S>
inline void WriteRow(const NBitsCall& call, typename S::Vec low, typename S::Vec high, int64_t row, int32_t panel) {
  const int64_t column = int64_t{panel} * kPanelColumns;
  WriteVector<S>(call, low, row, column);
  if (column + 16 < call.layout.n) WriteVector<S>(call, high, row, column + 16);
}

template <int bytes>
inline void PrefetchAhead(const uint8_t* codes) {
  OGA_UNROLL
  for (int line = 0; line < bytes; line += 64) __builtin_prefetch(codes + kAheadBytes + line, 0, 3);
}

// Whether a step is the first of a block.
template <class S>
inline bool BeginsBlock(const NBitsLayout& layout, int step) {
  return step == 0 || (2 * step == S::kUnitSteps && layout.blocks_per_group == 2);
}

// A whole panel for `rows` rows from `first_row`.
template <class S, int bits, bool has_zero, int rows>
void ThinPanel(const NBitsCall& call, int32_t panel, int32_t first_row) {
  using Vec = typename S::Vec;
  using Unit = Decoder<S, bits, has_zero>;
  constexpr int kStaged = 2 * S::kUnitSteps;
  const NBitsLayout& layout = call.layout;
  UnitStream stream(layout, call.weights + panel * layout.panel_bytes);
  const float* staged = reinterpret_cast<const float*>(call.staged) + first_row * kStaged;
  Vec total[rows][2];
  OGA_UNROLL
  for (int r = 0; r < rows; ++r) total[r][0] = total[r][1] = S::Zero();
  while (stream.unit < layout.units) {
    Vec even[rows][2], odd[rows][2];
    OGA_UNROLL
    for (int r = 0; r < rows; ++r) even[r][0] = even[r][1] = odd[r][0] = odd[r][1] = S::Zero();
    BlockScales<S, has_zero> scales[2];
    Unit codes[2];
    OGA_UNROLL
    for (int step = 0; step < S::kUnitSteps; ++step) {
      if (step % Unit::kLoadSteps == 0) {
        codes[0].Load(stream.codes, step, 0);
        codes[1].Load(stream.codes, step, 1);
        PrefetchAhead<Unit::kLoadBytes>(stream.codes + step / Unit::kLoadSteps * Unit::kLoadBytes);
      }
      OGA_UNROLL
      for (int half = 0; half < 2; ++half) {
        if (BeginsBlock<S>(layout, step)) scales[half].Load(layout, stream.header, 2 * step / S::kUnitSteps, 16 * half);
        const auto weights = codes[half].Get(step, scales[half]);
        OGA_UNROLL
        for (int r = 0; r < rows; ++r) {
          const float* const activations = staged + r * kStaged + 2 * step;
          even[r][half] = S::MulAdd(weights.even, S::Broadcast(activations[0]), even[r][half]);
          odd[r][half] = S::MulAdd(weights.odd, S::Broadcast(activations[1]), odd[r][half]);
        }
      }
    }
    OGA_UNROLL
    for (int r = 0; r < rows; ++r) {
      total[r][0] = S::Add(total[r][0], S::Add(even[r][0], odd[r][0]));
      total[r][1] = S::Add(total[r][1], S::Add(even[r][1], odd[r][1]));
    }
    staged += int64_t{call.rows} * kStaged;
    stream.Next(layout);
  }
  for (int r = 0; r < rows; ++r) WriteRow<S>(call, total[r][0], total[r][1], first_row + r, panel);
}

// Decodes a unit to [half][step], in the form of S::LoadWeights.
template <class S, int bits, bool has_zero>
void DecodeUnit(const NBitsLayout& layout, const UnitStream& stream, float* decoded) {
  using Unit = Decoder<S, bits, has_zero>;
  for (int half = 0; half < 2; ++half) {
    BlockScales<S, has_zero> scales;
    Unit codes;
    OGA_UNROLL
    for (int step = 0; step < S::kUnitSteps; ++step) {
      if (step % Unit::kLoadSteps == 0) {
        codes.Load(stream.codes, step, half);
        constexpr int kBytes = Unit::kLoadBytes / 2;
        PrefetchAhead<kBytes>(stream.codes + half * layout.unit_bytes / 2 + step / Unit::kLoadSteps * kBytes);
      }
      if (BeginsBlock<S>(layout, step)) scales.Load(layout, stream.header, 2 * step / S::kUnitSteps, 16 * half);
      S::StoreWeights(decoded, codes.Get(step, scales));
      decoded += S::kStepFloats;
    }
  }
}

// Adds the products of one decoded unit to the sums of `rows` rows, kPanelColumns apart.
template <class S, int rows>
inline void MultiplyUnit(const float* decoded, const float* staged, float* sums) {
  using Vec = typename S::Vec;
  constexpr int kVectors = S::kWideVectors, kStaged = 2 * S::kUnitSteps;
  for (int vector = 0; vector < 2; vector += kVectors) {
    Vec even[rows][kVectors], odd[rows][kVectors];
    OGA_UNROLL
    for (int r = 0; r < rows; ++r) {
      OGA_UNROLL
      for (int v = 0; v < kVectors; ++v) even[r][v] = odd[r][v] = S::Zero();
    }
    for (int step = 0; step < S::kUnitSteps; ++step) {
      typename S::Weights weights[kVectors];
      OGA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        weights[v] = S::LoadWeights(decoded + ((vector + v) * S::kUnitSteps + step) * S::kStepFloats);
      }
      OGA_UNROLL
      for (int r = 0; r < rows; ++r) {
        const Vec a = S::Broadcast(staged[r * kStaged + 2 * step]),
                  b = S::Broadcast(staged[r * kStaged + 2 * step + 1]);
        OGA_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          even[r][v] = S::MulAdd(weights[v].even, a, even[r][v]);
          odd[r][v] = S::MulAdd(weights[v].odd, b, odd[r][v]);
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
    staged += take * 2 * S::kUnitSteps;
    sums += take * kPanelColumns;
  }
}

template <class S, int bits, bool has_zero>
void WidePanel(const NBitsCall& call, int32_t panel, RowRange rows) {
  const NBitsLayout& layout = call.layout;
  const int32_t count = rows.end - rows.begin;
  alignas(64) float sums[kMostWideRows * kPanelColumns];
  alignas(64) float decoded[2 * S::kUnitSteps * S::kStepFloats];
  for (int32_t i = 0; i < count * kPanelColumns; i += 16) S::Store(sums + i, S::Zero());
  UnitStream stream(layout, call.weights + panel * layout.panel_bytes);
  while (stream.unit < layout.units) {
    DecodeUnit<S, bits, has_zero>(layout, stream, decoded);
    const float* const staged = reinterpret_cast<const float*>(call.staged) +
                                (int64_t{stream.unit} * call.rows + rows.begin) * 2 * S::kUnitSteps;
    MultiplyRows<S>(count, decoded, staged, sums);
    stream.Next(layout);
  }
  for (int32_t row = 0; row < count; ++row) {
    const float* const values = sums + row * kPanelColumns;
    WriteRow<S>(call, S::Load(values), S::Load(values + 16), rows.begin + row, panel);
  }
}

}  // namespace
}  // namespace oga::kernels
