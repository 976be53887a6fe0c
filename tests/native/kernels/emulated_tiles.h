// Tiles as Intel's manual describes TDPBF16PS: per output, one chain of fused multiply-adds over the even positions and
// one over the odd ones, both from zero, then their sum is added; denormals are zero. That the instruction does what the
// manual says must be seen on a CPU that has it.
//
// What the instructions refuse ends the program here too. Where they leave zeros that no product may lean on, in tiles
// that were only configured, there are NaNs.
//
// Included after one of the packed_lanes_*.h headers; see simd_math.h for linkage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/simd/float16.h"

namespace oga::kernels {
namespace {

class EmulatedTiles {
 public:
  static void Configure(int32_t low_rows, int32_t high_rows) {
    const int32_t rows[8] = {low_rows, low_rows, high_rows, high_rows, low_rows, high_rows, 16, 16};
    for (int tile = 0; tile < 8; ++tile) {
      Require(rows[tile] >= 1 && rows[tile] <= 16);
      tiles_[tile].rows = rows[tile];
      std::memset(tiles_[tile].bytes, 0xff, sizeof(tiles_[tile].bytes));
    }
  }
  static void Release() {
    for (Tile& tile : tiles_) tile.rows = 0;
  }
  template <int tile>
  static void Zero() {
    Require(tiles_[tile].rows > 0);
    std::memset(tiles_[tile].bytes, 0, sizeof(tiles_[tile].bytes));
  }
  template <int tile>
  static void Load(const void* from, ptrdiff_t stride_bytes) {
    Zero<tile>();
    for (int32_t row = 0; row < tiles_[tile].rows; ++row) {
      std::memcpy(tiles_[tile].bytes[row], static_cast<const uint8_t*>(from) + row * stride_bytes, 64);
    }
  }
  template <int tile>
  static void Store(void* to, ptrdiff_t stride_bytes) {
    Require(tiles_[tile].rows > 0);
    for (int32_t row = 0; row < tiles_[tile].rows; ++row) {
      std::memcpy(static_cast<uint8_t*>(to) + row * stride_bytes, tiles_[tile].bytes[row], 64);
    }
  }
  template <int sums, int left, int right>
  static void Multiply() {
    Require(tiles_[sums].rows > 0 && tiles_[left].rows == tiles_[sums].rows && tiles_[right].rows == 16);
    for (int32_t row = 0; row < tiles_[sums].rows; ++row) {
      for (int32_t column = 0; column < 16; ++column) {
        float chains[2] = {0.0f, 0.0f};
        for (int32_t k = 0; k < 32; ++k) {
          const float a = Number(tiles_[left].bytes[row], k);
          const float b = Number(tiles_[right].bytes[k / 2], 2 * column + k % 2);
          chains[k % 2] = __builtin_fmaf(a, b, chains[k % 2]);
        }
        float sum;
        std::memcpy(&sum, tiles_[sums].bytes[row] + 4 * column, 4);
        sum += chains[0] + chains[1];
        std::memcpy(tiles_[sums].bytes[row] + 4 * column, &sum, 4);
      }
    }
  }

 private:
  struct Tile {
    int32_t rows = 0;
    uint8_t bytes[16][64] = {};
  };

  static void Require(bool holds) {
    if (!holds) __builtin_trap();
  }
  static float Number(const uint8_t* row, int32_t index) {
    uint16_t half;
    std::memcpy(&half, row + 2 * index, 2);
    return FloatFromBits(static_cast<uint32_t>(half) << 16);
  }

  static thread_local Tile tiles_[8];
};

thread_local EmulatedTiles::Tile EmulatedTiles::tiles_[8];

}  // namespace
}  // namespace oga::kernels
