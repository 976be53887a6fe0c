// Fills in an NBitsVariant from the templates. Included last by each variant source.
#pragma once

#include <cstdint>

#include "kernels/nbits_product.h"
#include "kernels/nbits_variant.h"

namespace oga::kernels {
namespace {

template <class S>
struct NBitsEntry {
  // Words of row r and unit u start at staged + (u * rows + r) * kWords; behind K they are zero.
  static constexpr int kWords = 2 * S::kUnitSteps;
  static void StageRow(const NBitsCall& call, int32_t row) {
    const float* const from = call.activations + row * call.k;
    float* to = reinterpret_cast<float*>(call.staged) + row * kWords;
    const int64_t step = int64_t{call.rows} * kWords;
    int64_t k = 0;
    for (; k + kUnitK <= call.k; k += kUnitK, to += step) {
      S::StageActivations(S::Load(from + k), to);
      S::StageActivations(S::Load(from + k + 16), to + kWords / 2);
    }
    if (k == call.k) return;
    float last[kUnitK] = {};
    for (int64_t i = 0; k + i < call.k; ++i) last[i] = from[k + i];
    S::StageActivations(S::Load(last), to);
    S::StageActivations(S::Load(last + 16), to + kWords / 2);
  }

  static void Stage(const NBitsCall& call, RowRange rows) {
    [[maybe_unused]] const typename S::FlushDenormals flush;
    for (int32_t row = rows.begin; row < rows.end; ++row) StageRow(call, row);
  }

  template <int bits, bool has_zero>
  static void MultiplyPanel(const NBitsCall& call, int32_t panel, RowRange rows) {
    const int32_t count = rows.end - rows.begin;
    if (count == 1) return ThinPanel<S, bits, has_zero, 1>(call, panel, rows.begin);
    if constexpr (S::kThinRows >= 4) {
      if (count == 2) return ThinPanel<S, bits, has_zero, 2>(call, panel, rows.begin);
      if (count == 3) return ThinPanel<S, bits, has_zero, 3>(call, panel, rows.begin);
      if (count == 4) return ThinPanel<S, bits, has_zero, 4>(call, panel, rows.begin);
    }
    WidePanel<S, bits, has_zero>(call, panel, rows);
  }

  static void Multiply(const NBitsCall& call, PanelRange panels, RowRange rows) {
    [[maybe_unused]] const typename S::FlushDenormals flush;
    const bool has_zero = call.layout.zero_kind != ZeroKind::kNone;
    const auto multiply = call.layout.bits == 4 ? (has_zero ? MultiplyPanel<4, true> : MultiplyPanel<4, false>)
                                                : (has_zero ? MultiplyPanel<8, true> : MultiplyPanel<8, false>);
    const uint8_t* const first = call.weights + panels.begin * call.layout.panel_bytes;
    for (int32_t line = 0; line < kAheadBytes; line += 64) __builtin_prefetch(first + line, 0, 3);
    // Through a pointer, so that no arithmetic moves out of the denormal mode.
    for (int32_t panel = panels.begin; panel < panels.end; ++panel) multiply(call, panel, rows);
  }

  static_assert(kMostWideRows % S::kWideRows == 0);
  static constexpr NBitsVariant kTable = {kWords * 4, S::kWideRows, kMostWideRows, Stage, Multiply};
};

}  // namespace
}  // namespace oga::kernels
