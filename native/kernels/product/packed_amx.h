// The product on AMX tiles of bfloat16. A tile multiplication is the arithmetic of packed_matmul.h by
// definition, so the bits are those of the vector variants; weights are decoded to bfloat16 by their code.
//
// Tiles 0 to 3 hold the sums of up to 32 rows times 32 columns, 4 and 5 activations of 16 rows each, 6 and 7 weights of
// 16 columns each. Included after the lanes of one instruction set, whose PairLanes are its lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "kernels/product/packed_product.h"
#include "kernels/product/packed_variant.h"
#include "kernels/simd/amx_tiles.h"
#include "kernels/simd/bounds.h"

namespace oga::kernels {
namespace {

inline constexpr int32_t kTileHalves = 32;             // bfloat16 numbers of a tile's row
inline constexpr int32_t kMostTiledRows = 256;         // whose sums stay in the caches
inline constexpr int32_t kChunkUnits = 16;             // decoded at once, for all rows
inline constexpr int32_t kRing = 4, kDecodeAhead = 2;  // units, when rows are few

// Staged: [tiles of 16 rows][units][rows of the tile][32] in bfloat16.
inline int32_t RowsOfTile(const PackedCall& call, int32_t tile) {
  return Lower(kTileRows, call.rows - tile * kTileRows);
}
inline const uint16_t* StagedTile(const PackedCall& call, int32_t tile, int32_t unit) {
  return reinterpret_cast<const uint16_t*>(call.staged) +
         (int64_t{tile} * kTileRows * call.layout.units + int64_t{unit} * RowsOfTile(call, tile)) * kTileHalves;
}

// The sums of a pair of row tiles, in the order of the tiles.
struct TileSums {
  alignas(64) float values[4][kTileRows * kTileRows];
  SumsPlace place() { return {values[0], kTileRows * kTileRows, 2 * kTileRows * kTileRows, kTileRows}; }
};

template <class S, class Tiles>
struct AmxEntry {
  static void StageRow(const PackedCall& call, int32_t row) {
    const float* const from = call.activations + row * call.k;
    const int32_t tile = row / kTileRows;
    for (int32_t unit = 0; unit < call.layout.units; ++unit) {
      const int64_t first = int64_t{unit} * kUnitK;
      uint16_t* const to = const_cast<uint16_t*>(StagedTile(call, tile, unit)) + row % kTileRows * kTileHalves;
      if (first + kUnitK <= call.k) {
        S::StageHalves(S::Load(from + first), to);
        S::StageHalves(S::Load(from + first + 16), to + 16);
        continue;
      }
      float last[kUnitK] = {};
      for (int64_t i = 0; first + i < call.k; ++i) last[i] = from[first + i];
      S::StageHalves(S::Load(last), to);
      S::StageHalves(S::Load(last + 16), to + 16);
    }
  }

  static void Stage(const PackedCall& call, RowRange rows) {
    const typename S::FlushDenormals flush;
    for (int32_t row = rows.begin; row < rows.end; ++row) StageRow(call, row);
  }

  template <bool two>
  static inline void ZeroTiles() {
    Tiles::template Zero<0>();
    Tiles::template Zero<1>();
    if constexpr (two) {
      Tiles::template Zero<2>();
      Tiles::template Zero<3>();
    }
  }
  static void WriteSums(const PackedCall& call, int32_t panel, int32_t first_row, int32_t rows, const TileSums& sums) {
    for (int32_t row = 0; row < rows; ++row) {
      const int32_t tile = row / kTileRows * 2, in_tile = row % kTileRows * kTileRows;
      WriteRow<S>(call, S::Load(sums.values[tile] + in_tile), S::Load(sums.values[tile + 1] + in_tile), first_row + row,
                  panel);
    }
  }

  // The units of a panel in order, each decoded a little before it is asked for.
  template <class Format>
  class DecodedAhead {
   public:
    DecodedAhead(const PackedLayout& layout, const uint8_t* panel) : layout_(layout), stream_(layout, panel) {
      for (int32_t i = 0; i < kDecodeAhead; ++i) Decode();
    }
    inline const float* Next() {
      Decode();
      return units_[next_++ % kRing];
    }

   private:
    inline void Decode() {
      if (stream_.unit == layout_.units) return;
      if constexpr (Format::kStoredDecoded) PrefetchAhead<Format::kAheadBytes, kUnitFloats * 4>(stream_.codes);
      units_[stream_.unit % kRing] = DecodedUnit<S, Format>(layout_, stream_, ring_[stream_.unit % std::size(ring_)]);
      stream_.Next<Format::kAheadBytes>(layout_);
    }

    const PackedLayout& layout_;
    UnitStream stream_;
    int32_t next_ = 0;
    const float* units_[kRing];
    alignas(64) float ring_[Format::kStoredDecoded ? 1 : kRing][kUnitFloats];
  };

  // Up to 32 rows: sums stay in the tiles all along K, units are decoded a little ahead of their use.
  template <class Format, bool two>
  static void ThinTiles(const PackedCall& call, int32_t panel, RowRange rows) {
    const PackedLayout& layout = call.layout;
    const int32_t tile = rows.begin / kTileRows;
    DecodedAhead<Format> units(layout, call.weights + panel * layout.panel_bytes);
    ZeroTiles<two>();
    for (int32_t unit = 0; unit < layout.units; ++unit) {
      const float* const decoded = units.Next();
      MultiplyTiles<Tiles, two>(StagedTile(call, tile, unit), two ? StagedTile(call, tile + 1, unit) : nullptr,
                                decoded);
    }
    TileSums sums;
    StoreSums<Tiles, two>(sums.place());
    WriteSums(call, panel, rows.begin, rows.end - rows.begin, sums);
  }

  // A run of decoded units for a pair of row tiles. `first_unit` of 0 begins the sums.
  template <bool two>
  static void MultiplyChunk(const PackedCall& call, int32_t tile, int32_t first_unit, int32_t units,
                            const float* decoded, TileSums* sums) {
    first_unit == 0 ? ZeroTiles<two>() : LoadSums<Tiles, two>(sums->place());
    for (int32_t i = 0; i < units; ++i) {
      MultiplyTiles<Tiles, two>(StagedTile(call, tile, first_unit + i),
                                two ? StagedTile(call, tile + 1, first_unit + i) : nullptr, decoded + i * kUnitFloats);
    }
    StoreSums<Tiles, two>(sums->place());
  }

  // The stream's next units, as many as are asked for, one after another. Stored ones that need no decoding lie so.
  template <class Format>
  static const float* DecodeRun(const PackedLayout& layout, int32_t units, UnitStream* stream, float* room) {
    const float* const first = Format::kStoredDecoded ? reinterpret_cast<const float*>(stream->codes) : room;
    for (int32_t i = 0; i < units; ++i, stream->template Next<Format::kAheadBytes>(layout)) {
      if constexpr (Format::kStoredDecoded) PrefetchAhead<Format::kAheadBytes, kUnitFloats * 4>(stream->codes);
      DecodedUnit<S, Format>(layout, *stream, room + (Format::kStoredDecoded ? 0 : i * kUnitFloats));
    }
    return first;
  }

  // More rows: a run of units is decoded once and used by all of them.
  template <class Format>
  static void WideTiles(const PackedCall& call, int32_t panel, RowRange rows) {
    const PackedLayout& layout = call.layout;
    alignas(64) float room[Format::kStoredDecoded ? 1 : kChunkUnits * kUnitFloats];
    TileSums sums[kMostTiledRows / (2 * kTileRows)];
    UnitStream stream(layout, call.weights + panel * layout.panel_bytes);
    int32_t first_unit = 0;
    do {  // the first run begins the sums, so there is one even where K is 0
      const int32_t units = Lower(kChunkUnits, layout.units - first_unit);
      const float* const decoded = DecodeRun<Format>(layout, units, &stream, room);
      for (int32_t row = rows.begin; row < rows.end; row += 2 * kTileRows) {
        TileSums* const pair = &sums[(row - rows.begin) / (2 * kTileRows)];
        const bool two = rows.end - row > kTileRows;
        ConfigureRows<Tiles>(Lower(2 * kTileRows, rows.end - row));
        (two ? MultiplyChunk<true> : MultiplyChunk<false>)(call, row / kTileRows, first_unit, units, decoded, pair);
      }
      first_unit += units;
    } while (first_unit < layout.units);
    for (int32_t row = rows.begin; row < rows.end; row += 2 * kTileRows) {
      WriteSums(call, panel, row, Lower(2 * kTileRows, rows.end - row), sums[(row - rows.begin) / (2 * kTileRows)]);
    }
  }

  template <class Format>
  static void MultiplyPanels(const PackedCall& call, PanelRange panels, RowRange rows) {
    const int32_t count = rows.end - rows.begin;
    ConfigureRows<Tiles>(Lower(2 * kTileRows, count));
    for (int32_t panel = panels.begin; panel < panels.end; ++panel) {
      if (count <= kTileRows) {
        ThinTiles<Format, false>(call, panel, rows);
      } else if (count <= 2 * kTileRows) {
        ThinTiles<Format, true>(call, panel, rows);
      } else {
        WideTiles<Format>(call, panel, rows);
      }
    }
    Tiles::Release();
  }

  static void Multiply(const PackedCall& call, PanelRange panels, RowRange rows) {
    const typename S::FlushDenormals flush;
    const auto multiply = ChooseFormat<S>(call.layout, [](auto format) { return &MultiplyPanels<decltype(format)>; });
    multiply(call, panels, rows);
  }

  static constexpr PackedVariant kTable = {kTileStride, 2 * kTileRows, kMostTiledRows, Stage, Multiply};
};

}  // namespace
}  // namespace oga::kernels
