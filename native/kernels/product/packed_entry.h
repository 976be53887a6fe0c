// Fills in a PackedVariant from the templates. Included last by each variant source.
#pragma once

#include <cstdint>

#include "kernels/product/packed_product.h"
#include "kernels/product/packed_variant.h"

namespace oga::kernels {
namespace {

inline constexpr int32_t kFirstBytes = 4096;  // of a stream, asked for before any is read

template <class S>
struct PackedEntry {
  // Chunk after chunk, so that the product of one reads a stream: [units][rows of the chunk][kWords], behind K zero.
  static constexpr int kWords = 2 * S::kUnitSteps;
  // Whether activations stay as they are, for weights that do.
  static constexpr bool kKnowsFloats = S::kOrder == CodeOrder::kColumns;
  template <bool as_floats>
  static inline void StageVector(typename S::Vec v, float* to) {
    if constexpr (as_floats) {
      S::Store(to, v);
    } else {
      S::StageActivations(v, to);
    }
  }

  template <bool as_floats>
  static void StageRow(const PackedCall& call, int32_t row) {
    const float* const from = call.activations + row * call.k;
    const int32_t begin = row / call.chunk_rows * call.chunk_rows;
    const int32_t left = call.rows - begin, rows = left < call.chunk_rows ? left : call.chunk_rows;
    float* to = StagedChunk<S>(call, begin) + (row - begin) * kWords;
    const int64_t step = int64_t{rows} * kWords;
    int64_t k = 0;
    for (; k + kUnitK <= call.k; k += kUnitK, to += step) {
      StageVector<as_floats>(S::Load(from + k), to);
      StageVector<as_floats>(S::Load(from + k + 16), to + kWords / 2);
    }
    if (k == call.k) return;
    float last[kUnitK] = {};
    for (int64_t i = 0; k + i < call.k; ++i) last[i] = from[k + i];
    StageVector<as_floats>(S::Load(last), to);
    StageVector<as_floats>(S::Load(last + 16), to + kWords / 2);
  }

  static void Stage(const PackedCall& call, RowRange rows) {
    [[maybe_unused]] const typename S::FlushDenormals flush;
    auto stage = StageRow<false>;
    if constexpr (kKnowsFloats) stage = call.layout.bits == 32 ? StageRow<true> : StageRow<false>;
    for (int32_t row = rows.begin; row < rows.end; ++row) stage(call, row);
  }

  template <class Format>
  static void MultiplyPanel(const PackedCall& call, int32_t panel, RowRange rows) {
    // Where nothing is to decode, more rows gain nothing from decoding in registers.
    constexpr int kThinRows = Format::kStoredDecoded && S::kThinRows > 2 ? 2 : S::kThinRows;
    const int32_t count = rows.end - rows.begin;
    if (count == 1) return ThinPanel<S, Format, 1>(call, panel, rows.begin);
    if constexpr (kThinRows >= 2) {
      if (count == 2) return ThinPanel<S, Format, 2>(call, panel, rows.begin);
    }
    if constexpr (kThinRows >= 4) {
      if (count == 3) return ThinPanel<S, Format, 3>(call, panel, rows.begin);
      if (count == 4) return ThinPanel<S, Format, 4>(call, panel, rows.begin);
    }
    WidePanel<S, Format>(call, panel, rows);
  }

  static void Multiply(const PackedCall& call, PanelRange panels, RowRange rows) {
    [[maybe_unused]] const typename S::FlushDenormals flush;
    const auto multiply = ChooseFormat<S>(call.layout, [](auto format) { return &MultiplyPanel<decltype(format)>; });
    const uint8_t* const first = call.weights + panels.begin * call.layout.panel_bytes;
    for (int32_t line = 0; line < kFirstBytes; line += 64) __builtin_prefetch(first + line, 0, 3);
    // Through a pointer, so that no arithmetic moves out of the denormal mode.
    for (int32_t panel = panels.begin; panel < panels.end; ++panel) multiply(call, panel, rows);
  }

  static_assert(kMostWideRows % S::kWideRows == 0);
  static constexpr PackedVariant kTable = {kWords * 4, S::kWideRows, kMostWideRows, Stage, Multiply};
};

}  // namespace
}  // namespace oga::kernels
