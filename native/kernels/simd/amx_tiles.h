// The tiles of AMX: the instructions, and the step that all products over them share. Products are written over
// `Tiles`, so that tests can run them on the arithmetic that Intel documents where the instructions do not exist.
//
// Compiled for the wide variants only; see simd_math.h for linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simd/bounds.h"

namespace oga::kernels {
namespace {

inline constexpr int32_t kTileRows = 16;
inline constexpr int32_t kTileStride = 64;  // bytes of a tile's row

// In assembly: compilers' intrinsics want literal tile numbers, and that of GCC 12 declares 8 of the 64 bytes that the
// configuration reads, so that stores to the others may vanish.
class HardwareTiles {
 public:
  // Tiles 0, 1 and 4 get `low_rows`, tiles 2, 3 and 5 `high_rows`, tiles 6 and 7 all sixteen.
  static inline void Configure(int32_t low_rows, int32_t high_rows) {
    const uint8_t rows[8] = {
        Byte(low_rows), Byte(low_rows), Byte(high_rows), Byte(high_rows), Byte(low_rows), Byte(high_rows), 16, 16};
    Configuration configuration = {};
    configuration.palette = 1;
    for (int tile = 0; tile < 8; ++tile) {
      configuration.row_bytes[tile] = kTileStride;
      configuration.rows[tile] = rows[tile];
    }
    asm volatile("ldtilecfg %0" : : "m"(configuration));
  }
  static inline void Release() { asm volatile("tilerelease" : : : "memory"); }

  template <int tile>
  static inline void Zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(tile));
  }
  template <int tile>
  static inline void Load(const void* from, ptrdiff_t stride_bytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride_bytes), "i"(tile) : "memory");
  }
  template <int tile>
  static inline void Store(void* to, ptrdiff_t stride_bytes) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride_bytes), "i"(tile) : "memory");
  }
  template <int sums, int left, int right>
  static inline void Multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(left), "i"(right));
  }

 private:
  struct alignas(64) Configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  };
  static_assert(sizeof(Configuration) == 64);

  static inline uint8_t Byte(int32_t value) { return static_cast<uint8_t>(value); }
};

// Adds one unit's products to the sums of two tiles of rows (0 and 1, 2 and 3), or of one. `unit` is two tiles of
// weights.
template <class Tiles, bool two>
inline void MultiplyTiles(const void* low, const void* high, const float* unit) {
  Tiles::template Load<4>(low, kTileStride);
  Tiles::template Load<6>(unit, kTileStride);
  Tiles::template Multiply<0, 4, 6>();
  if constexpr (two) {
    Tiles::template Load<5>(high, kTileStride);
    Tiles::template Multiply<2, 5, 6>();
  }
  Tiles::template Load<7>(unit + kTileRows * kTileRows, kTileStride);
  Tiles::template Multiply<1, 4, 7>();
  if constexpr (two) Tiles::template Multiply<3, 5, 7>();
}

// Where the sums of up to 32 rows and 32 columns lie, for tiles 0 to 3. Distances are in floats.
struct SumsPlace {
  float* first;
  ptrdiff_t right;  // to the other sixteen columns
  ptrdiff_t below;  // to the other sixteen rows
  ptrdiff_t stride;
};

// For products of so many rows, at most 32.
template <class Tiles>
inline void ConfigureRows(int32_t rows) {
  Tiles::Configure(Lower(kTileRows, rows), Lower(kTileRows, Higher(rows - kTileRows, 1)));
}

template <class Tiles, bool two>
inline void LoadSums(const SumsPlace& from) {
  const ptrdiff_t stride_bytes = from.stride * 4;
  Tiles::template Load<0>(from.first, stride_bytes);
  Tiles::template Load<1>(from.first + from.right, stride_bytes);
  if constexpr (two) {
    Tiles::template Load<2>(from.first + from.below, stride_bytes);
    Tiles::template Load<3>(from.first + from.below + from.right, stride_bytes);
  }
}

template <class Tiles, bool two>
inline void StoreSums(const SumsPlace& to) {
  const ptrdiff_t stride_bytes = to.stride * 4;
  Tiles::template Store<0>(to.first, stride_bytes);
  Tiles::template Store<1>(to.first + to.right, stride_bytes);
  if constexpr (two) {
    Tiles::template Store<2>(to.first + to.below, stride_bytes);
    Tiles::template Store<3>(to.first + to.below + to.right, stride_bytes);
  }
}

}  // namespace
}  // namespace oga::kernels
