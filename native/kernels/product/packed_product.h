// One piece of the product on vectors: some panels times some rows. Included by the variant sources after their
// packed_lanes_*.h and packed_formats.h; see simd_math.h for linkage.
//
// Few rows: the weights are decoded in registers and used at once, in one pass over the stream, whose later lines are
// asked for ahead. More rows: a unit is decoded to the first-level cache once and used by all of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/product/packed_formats.h"
#include "kernels/product/swiglu.h"
#include "kernels/product/unit_product.h"

namespace oga::kernels {
namespace {

inline constexpr int32_t kMostWideRows = 126;  // their sums stay in the first-level cache

template <class S>
inline void WriteVector(const PackedCall& call, typename S::Vec sum, int64_t row, int64_t column) {
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

// A panel's columns of one row, or what becomes of its gates and ups.
template <class S>
inline void WriteRow(const PackedCall& call, typename S::Vec low, typename S::Vec high, int64_t row, int32_t panel) {
  if (call.layout.gated) return WriteVector<S>(call, SwiGlu<Simd>(low, high), row, int64_t{panel} * kPanelColumns / 2);
  const int64_t column = int64_t{panel} * kPanelColumns;
  WriteVector<S>(call, low, row, column);
  if (column + 16 < call.layout.n) WriteVector<S>(call, high, row, column + 16);
}

// The staged activations of the chunk that begins with a row.
template <class S>
inline float* StagedChunk(const PackedCall& call, int32_t first_row) {
  return reinterpret_cast<float*>(call.staged) + int64_t{first_row} * call.layout.units * 2 * S::kUnitSteps;
}

// Whether a step is the first of a block.
template <class S>
inline bool BeginsBlock(const PackedLayout& layout, int step) {
  return step == 0 || (2 * step == S::kUnitSteps && layout.blocks_per_group == 2);
}

// A whole panel for the chunk of `rows` rows from `first_row`.
template <class S, class Format, int rows>
void ThinPanel(const PackedCall& call, int32_t panel, int32_t first_row) {
  using Vec = typename S::Vec;
  using Unit = typename Format::Decoder;
  constexpr int kStaged = 2 * S::kUnitSteps;
  const PackedLayout& layout = call.layout;
  UnitStream stream(layout, call.weights + panel * layout.panel_bytes);
  const float* staged = StagedChunk<S>(call, first_row);
  Vec total[rows][2];
  OGA_UNROLL
  for (int r = 0; r < rows; ++r) total[r][0] = total[r][1] = S::Zero();
  while (stream.unit < layout.units) {
    Vec even[rows][2], odd[rows][2];
    OGA_UNROLL
    for (int r = 0; r < rows; ++r) even[r][0] = even[r][1] = odd[r][0] = odd[r][1] = S::Zero();
    typename Format::Scales scales[2];
    Unit codes[2];
    OGA_UNROLL
    for (int step = 0; step < S::kUnitSteps; ++step) {
      if (step % Unit::kLoadSteps == 0) {
        codes[0].Load(stream.codes, step, 0);
        codes[1].Load(stream.codes, step, 1);
        PrefetchAhead<Format::kAheadBytes, Unit::kLoadBytes>(stream.codes + step / Unit::kLoadSteps * Unit::kLoadBytes);
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
    staged += rows * kStaged;
    stream.Next<Format::kAheadBytes>(layout);
  }
  for (int r = 0; r < rows; ++r) WriteRow<S>(call, total[r][0], total[r][1], first_row + r, panel);
}

// Decodes a unit to [half][step], in the form of S::LoadWeights.
template <class S, class Format>
void DecodeUnit(const PackedLayout& layout, const UnitStream& stream, float* decoded) {
  using Unit = typename Format::Decoder;
  for (int half = 0; half < 2; ++half) {
    typename Format::Scales scales;
    Unit codes;
    OGA_UNROLL
    for (int step = 0; step < S::kUnitSteps; ++step) {
      if (step % Unit::kLoadSteps == 0) {
        codes.Load(stream.codes, step, half);
        constexpr int kBytes = Unit::kLoadBytes / 2;
        PrefetchAhead<Format::kAheadBytes, kBytes>(stream.codes + half * layout.unit_bytes / 2 +
                                                   step / Unit::kLoadSteps * kBytes);
      }
      if (BeginsBlock<S>(layout, step)) scales.Load(layout, stream.header, 2 * step / S::kUnitSteps, 16 * half);
      S::StoreWeights(decoded, codes.Get(step, scales));
      decoded += S::kStepFloats;
    }
  }
}

// The same where nothing is to decode: the unit as it is stored. `room` is for the others.
template <class S, class Format>
inline const float* DecodedUnit(const PackedLayout& layout, const UnitStream& stream, float* room) {
  if constexpr (Format::kStoredDecoded) {
    return reinterpret_cast<const float*>(stream.codes);
  } else {
    DecodeUnit<S, Format>(layout, stream, room);
    return room;
  }
}

template <class S, class Format>
void WidePanel(const PackedCall& call, int32_t panel, RowRange rows) {
  const PackedLayout& layout = call.layout;
  const int32_t count = rows.end - rows.begin;
  alignas(64) float sums[kMostWideRows * kPanelColumns];
  alignas(64) float decoded[2 * S::kUnitSteps * S::kStepFloats];
  for (int32_t i = 0; i < count * kPanelColumns; i += 16) S::Store(sums + i, S::Zero());
  UnitStream stream(layout, call.weights + panel * layout.panel_bytes);
  for (const float* staged = StagedChunk<S>(call, rows.begin); stream.unit < layout.units;
       staged += count * 2 * S::kUnitSteps) {
    const float* const weights = DecodedUnit<S, Format>(layout, stream, decoded);
    MultiplyRows<S, Format::kStoredDecoded ? Format::kAheadBytes : 0>(count, weights, staged, sums);
    stream.Next<Format::kAheadBytes>(layout);
  }
  for (int32_t row = 0; row < count; ++row) {
    const float* const values = sums + row * kPanelColumns;
    WriteRow<S>(call, S::Load(values), S::Load(values + 16), rows.begin + row, panel);
  }
}

}  // namespace
}  // namespace oga::kernels
