// Packs float and 16-bit matrices; the layout is that of packed_weights.h.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/product/packed_weights.h"
#include "kernels/simd/bfloat16.h"
#include "kernels/simd/float16.h"

namespace oga::kernels {

namespace {

inline float ToFloat(float value) { return value; }

// A denormal becomes zero here, as it would whenever the product reads it.
inline uint16_t RoundedBits(float value) {
  return (BitsFromFloat(value) & 0x7f800000u) == 0 ? uint16_t{0} : ToBfloat16(value).bits;
}

template <typename To, typename From>
inline To Convert(From value) {
  if constexpr (sizeof(To) == sizeof(float)) {
    return ToFloat(value);
  } else {
    return RoundedBits(ToFloat(value));
  }
}

// `To` is float, or uint16_t for the bits of a bfloat16.
template <typename From, typename To>
class DensePacker {
 public:
  DensePacker(const DenseSource& source, const PackedLayout& layout)
      : source_(source), layout_(layout), data_(static_cast<const From*>(source.data)) {}

  void PackPanel(int64_t panel, uint8_t* out) const {
    for (int64_t unit = 0; unit < layout_.units; ++unit, out += layout_.unit_bytes) {
      Tile tile;
      Read(unit * kUnitK, panel * kPanelColumns, &tile);
      for (int half = 0; half < 2; ++half) Write(tile, 16 * half, out + half * layout_.unit_bytes / 2);
    }
  }

 private:
  struct Tile {
    To values[kUnitK][kPanelColumns];
  };

  // Zero outside of the matrix.
  void Read(int64_t k, int64_t column, Tile* tile) const {
    const int64_t height = std::min<int64_t>(kUnitK, source_.k - k);
    const int64_t width = std::min<int64_t>(kPanelColumns, source_.n - column);
    if (height < kUnitK || width < kPanelColumns) *tile = {};
    if (source_.transposed) {
      for (int64_t c = 0; c < width; ++c) {
        const From* const from = data_ + (column + c) * source_.k + k;
        for (int64_t i = 0; i < height; ++i) tile->values[i][c] = Convert<To>(from[i]);
      }
      return;
    }
    for (int64_t i = 0; i < height; ++i) {
      const From* const from = data_ + (k + i) * source_.n + column;
      for (int64_t c = 0; c < width; ++c) tile->values[i][c] = Convert<To>(from[c]);
    }
  }

  void Write(const Tile& tile, int column, uint8_t* out) const {
    if constexpr (sizeof(To) == sizeof(float)) {
      for (const auto& row : tile.values) out = Append(out, row + column, 16 * sizeof(float));
    } else if (layout_.order == CodeOrder::kChains) {
      for (int k = 0; k < kUnitK; k += 4) {
        out = AppendWords(tile, k + 2, k, column, out);
        out = AppendWords(tile, k + 3, k + 1, column, out);
      }
    } else {
      for (int k = 0; k < kUnitK; k += 2) out = AppendWords(tile, k, k + 1, column, out);
    }
  }

  static uint8_t* AppendWords(const Tile& tile, int lower, int upper, int column, uint8_t* out) {
    uint32_t words[16];
    for (int c = 0; c < 16; ++c) {
      words[c] = uint32_t{tile.values[lower][column + c]} | uint32_t{tile.values[upper][column + c]} << 16;
    }
    return Append(out, words, sizeof(words));
  }
  static uint8_t* Append(uint8_t* out, const void* from, size_t bytes) {
    std::memcpy(out, from, bytes);
    return out + bytes;
  }

  const DenseSource& source_;
  const PackedLayout& layout_;
  const From* const data_;
};

// Calls use(packer) with the one that converts `source` to `To`.
template <typename To, typename Use>
void WithPacker(const DenseSource& source, const PackedLayout& layout, const Use& use) {
  switch (source.type) {
    case FloatType::kFloat: return use(DensePacker<float, To>(source, layout));
    case FloatType::kFloat16: return use(DensePacker<Float16, To>(source, layout));
    case FloatType::kBfloat16: return use(DensePacker<Bfloat16, To>(source, layout));
  }
}

}  // namespace

PackedWeights::PackedWeights(CpuIsa isa, const DenseSource& source, DensePrecision precision, WeightArena* arena,
                             const ParallelFor& parallel_for)
    : isa_(precision == DensePrecision::kFloat ? std::min(isa, CpuIsa::kAvx512) : isa), k_(source.k) {
  OGA_CHECK(source.k >= 0 && source.n >= 0);
  layout_.bits = precision == DensePrecision::kFloat ? 32 : 16;
  layout_.order = OrderOf(isa_);
  layout_.n = source.n;
  layout_.units = static_cast<int32_t>(DivideUp(source.k, kUnitK));
  layout_.panels = static_cast<int32_t>(DivideUp(source.n, kPanelColumns));
  layout_.unit_bytes = kUnitK * kPanelColumns * layout_.bits / 8;
  layout_.panel_bytes = int64_t{layout_.units} * layout_.unit_bytes;
  const auto fill = [&](const auto& packer) {
    Fill(arena, parallel_for, [&packer](int64_t panel, uint8_t* memory) { packer.PackPanel(panel, memory); });
  };
  precision == DensePrecision::kFloat ? WithPacker<float>(source, layout_, fill)
                                      : WithPacker<uint16_t>(source, layout_, fill);
}

}  // namespace oga::kernels
