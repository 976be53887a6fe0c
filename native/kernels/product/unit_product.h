// The product of some rows with one unit, kUnitK positions by kPanelColumns columns, on vectors: the inner loop of the
// packed product and of attention in bfloat16. The arithmetic is that of packed_matmul.h, rule 3. Included by the
// variant sources after their packed_lanes_*.h; see simd_math.h for linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/product/packed_weights.h"
#include "kernels/simd/prefetch.h"
#include "kernels/simd/simd_math.h"

namespace oga::kernels {
namespace {

inline constexpr int32_t kUnitFloats = kUnitK * kPanelColumns / 2;  // in bfloat16

// Adds the products of one decoded unit to the sums of `rows` rows, kPanelColumns apart. A unit that
// lies in the panel's stream has `ahead_bytes`: so far ahead later lines are asked for. Others have 0.
template <class S, int rows, int ahead_bytes>
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
        const float* const from = decoded + ((vector + v) * S::kUnitSteps + step) * S::kStepFloats;
        weights[v] = S::LoadWeights(from);
        if constexpr (ahead_bytes > 0)
          PrefetchAhead<ahead_bytes, S::kStepFloats * 4>(reinterpret_cast<const uint8_t*>(from));
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

template <class S, int ahead_bytes>
inline void MultiplyRowTile(int32_t rows, const float* decoded, const float* staged, float* sums) {
  if constexpr (S::kWideRows >= 6) {
    if (rows == 6) MultiplyUnit<S, 6, ahead_bytes>(decoded, staged, sums);
    if (rows == 5) MultiplyUnit<S, 5, ahead_bytes>(decoded, staged, sums);
    if (rows == 4) MultiplyUnit<S, 4, ahead_bytes>(decoded, staged, sums);
  }
  if constexpr (S::kWideRows >= 3) {
    if (rows == 3) MultiplyUnit<S, 3, ahead_bytes>(decoded, staged, sums);
    if (rows == 2) MultiplyUnit<S, 2, ahead_bytes>(decoded, staged, sums);
  }
  if (rows == 1) MultiplyUnit<S, 1, ahead_bytes>(decoded, staged, sums);
}

// The same for any number of rows, in register tiles of nearly equal heights.
template <class S, int ahead_bytes>
void MultiplyRows(int32_t rows, const float* decoded, const float* staged, float* sums) {
  const int32_t tiles = (rows + S::kWideRows - 1) / S::kWideRows;
  if (tiles == 0) return;
  const int32_t least = rows / tiles, taller = rows % tiles;
  for (int32_t tile = 0; tile < tiles; ++tile) {
    const int32_t take = least + (tile < taller ? 1 : 0);
    tile == 0 ? MultiplyRowTile<S, ahead_bytes>(take, decoded, staged, sums)
              : MultiplyRowTile<S, 0>(take, decoded, staged, sums);
    staged += take * 2 * S::kUnitSteps;
    sums += take * kPanelColumns;
  }
}

}  // namespace
}  // namespace oga::kernels
