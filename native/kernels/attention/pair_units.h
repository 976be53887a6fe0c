// Products of bfloat16 in units of 32 positions by 32 columns, as attention needs them: right operands are packed from
// rows of a cache just before their use. The arithmetic is rule 3 of packed_matmul.h; both forms below give its bits.
//
// A unit is [2 halves][16 words][16 columns]: a word holds two positions of a column. A staged row holds 32 positions.
//
// ChainUnits (pair_units_avx512.h) and TileUnits are the `Units` that attention is written over. Each says which of a
// unit's positions share a word (UpperRow, LowerRow), puts those of a row into the same order (Arrange), multiplies
// (MultiplyAdd), and names the most units over positions that are packed before it does (kRunUnits). What they do with
// thirty-two numbers at a time is their PairOps, which pair_units_avx512.h describes.
//
// Included by the variant sources only; see simd_math.h for linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/product/unit_product.h"
#include "kernels/simd/amx_tiles.h"
#include "kernels/simd/bounds.h"

namespace oga::kernels {
namespace {

inline constexpr int32_t kStagedRowFloats = kUnitK / 2;

// A run of units of the same 32 columns, and the rows that it multiplies. Strides are in floats.
struct UnitRun {
  const float* units;
  ptrdiff_t unit_stride;
  int32_t num_units;
  const float* staged;  // [units][rows][kStagedRowFloats]
  ptrdiff_t staged_stride;
  int32_t num_rows;
};

// By AMX tiles: 0 to 3 hold the sums of 32 rows and 32 columns, 4 and 5 rows, 6 and 7 the halves of a unit.
template <class Tiles, class Ops>
class TileUnits : public Ops {
 public:
  static constexpr int32_t kRunUnits = 8;
  TileUnits() = default;
  TileUnits(const TileUnits&) = delete;
  TileUnits& operator=(const TileUnits&) = delete;
  ~TileUnits() { Tiles::Release(); }

  static constexpr int UpperRow(int word) { return 2 * word + 1; }
  static constexpr int LowerRow(int word) { return 2 * word; }
  static inline typename Ops::Halves Arrange(typename Ops::Halves halves) { return halves; }

  void MultiplyAdd(const UnitRun& run, float* sums) {
    for (int32_t row = 0; row < run.num_rows; row += 2 * kTileRows) {
      const int32_t rows = Lower(2 * kTileRows, run.num_rows - row);
      Configure(rows);
      float* const to = sums + row * kPanelColumns;
      rows > kTileRows ? AddRows<true>(run, row, to) : AddRows<false>(run, row, to);
    }
  }

 private:
  void Configure(int32_t rows) {
    if (rows == configured_rows_) return;
    ConfigureRows<Tiles>(rows);
    configured_rows_ = rows;
  }

  template <bool two>
  void AddRows(const UnitRun& run, int32_t row, float* sums) {
    const SumsPlace place = {sums, kTileRows, kTileRows * kPanelColumns, kPanelColumns};
    LoadSums<Tiles, two>(place);
    for (int32_t i = 0; i < run.num_units; ++i) {
      const float* const low = run.staged + i * run.staged_stride + row * kStagedRowFloats;
      const float* const high = two ? low + kTileRows * kStagedRowFloats : nullptr;
      MultiplyTiles<Tiles, two>(low, high, run.units + i * run.unit_stride);
    }
    StoreSums<Tiles, two>(place);
  }

  int32_t configured_rows_ = 0;
};

}  // namespace
}  // namespace oga::kernels
