#include "kernels/product/packed_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "kernels/simd/float16.h"

namespace oga::kernels {

namespace {

constexpr float kLeastNormalHalf = 0x1p-14f;
constexpr int kLargestHalfExponent = 15;         // the greatest scale lies in [2^14, 2^15)
constexpr int64_t kBytesForThreads = 256 << 10;  // fewer are packed sooner than threads wake
constexpr int kMostShift = 100;                  // both powers of two, of scaling and of undoing it, are normal floats

constexpr int32_t kHalfColumns = kPanelColumns / 2;

// One matrix, or the gates and the ups.
struct Sources {
  const NBitsSource* matrices[2];
  int count;
};

// Chooses how scales are stored. `scale` is what they are multiplied by.
void ChooseScales(const Sources& sources, PackedLayout* layout, float* scale) {
  float least = std::numeric_limits<float>::infinity(), most = 0.0f;
  bool finite = true;
  for (int matrix = 0; matrix < sources.count; ++matrix) {
    const NBitsSource& source = *sources.matrices[matrix];
    const int64_t count = source.n * DivideUp(source.k, source.block_size);
    for (int64_t i = 0; i < count; ++i) {
      const float size = std::fabs(source.scales[i]);
      finite = finite && std::isfinite(size);
      most = std::max(most, size);
      if (size != 0.0f) least = std::min(least, size);
    }
  }
  int exponent = 0;
  if (finite && most > 0.0f) std::frexp(most, &exponent);
  const int shift = kLargestHalfExponent - exponent;
  layout->half_scales = finite && std::abs(shift) <= kMostShift;
  if (layout->half_scales && most > 0.0f) layout->half_scales = std::ldexp(least, shift) >= kLeastNormalHalf;
  if (!layout->half_scales) return;
  *scale = std::ldexp(1.0f, shift);
  layout->unscale = std::ldexp(1.0f, -shift);
}

void Arrange(const NBitsSource& source, PackedLayout* layout) {
  layout->bits = source.bits;
  layout->n = source.n;
  layout->units = static_cast<int32_t>(DivideUp(source.k, kUnitK));
  layout->panels = static_cast<int32_t>(DivideUp(source.n, layout->gated ? kHalfColumns : kPanelColumns));
  layout->zero_kind = source.packed_zeros != nullptr  ? ZeroKind::kUint8
                      : source.float_zeros != nullptr ? ZeroKind::kFloat
                                                      : ZeroKind::kNone;
  layout->blocks_per_group = source.block_size < kUnitK ? 2 : 1;
  layout->units_per_group = std::max(source.block_size / kUnitK, 1);
  const int32_t scale_bytes = layout->half_scales ? 2 : 4;
  const int32_t zero_bytes = layout->zero_kind == ZeroKind::kNone ? 0 : layout->zero_kind == ZeroKind::kUint8 ? 1 : 4;
  layout->zeros_offset = layout->blocks_per_group * kPanelColumns * scale_bytes;
  layout->header_bytes = layout->zeros_offset + layout->blocks_per_group * kPanelColumns * zero_bytes;
  layout->unit_bytes = kUnitK * kPanelColumns * source.bits / 8;
  layout->panel_bytes = DivideUp(layout->units, layout->units_per_group) * layout->header_bytes +
                        int64_t{layout->units} * layout->unit_bytes;
}

bool IsOfOneForm(const NBitsSource& a, const NBitsSource& b) {
  return a.k == b.k && a.n == b.n && a.bits == b.bits && a.block_size == b.block_size &&
         (a.packed_zeros == nullptr) == (b.packed_zeros == nullptr) &&
         (a.float_zeros == nullptr) == (b.float_zeros == nullptr);
}

float Canonical(float value) { return std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value; }

class BlockPacker {
 public:
  BlockPacker(const Sources& sources, const PackedLayout& layout, float scale)
      : sources_(sources),
        layout_(layout),
        scale_(scale),
        block_size_(sources.matrices[0]->block_size),
        blocks_(DivideUp(sources.matrices[0]->k, block_size_)),
        row_bytes_(blocks_ * block_size_ * layout.bits / 8),
        zero_row_bytes_(DivideUp(blocks_ * layout.bits, 8)),
        middle_(layout.zero_kind == ZeroKind::kNone ? (layout.bits == 4 ? 0x88888888u : 0x80808080u) : 0u) {}

  void PackPanel(int64_t panel, uint8_t* out) const {
    const Halves halves = {HalfOf(panel, 0), HalfOf(panel, 1)};
    for (int32_t unit = 0; unit < layout_.units; ++unit) {
      if (unit % layout_.units_per_group == 0) {
        for (const Half& half : halves) PackHeader(half, unit, out);
        out += layout_.header_bytes;
      }
      layout_.bits == 4 ? PackCodes<4>(halves, unit, out) : PackCodes<8>(halves, unit, out);
      out += layout_.unit_bytes;
    }
  }

 private:
  // Half of a panel: columns of one matrix.
  struct Half {
    const NBitsSource* source;
    int64_t first_column;
    int32_t columns;  // that the matrix has
    int32_t first_lane;
  };
  using Halves = std::array<Half, 2>;

  Half HalfOf(int64_t panel, int half) const {
    const NBitsSource* const source = sources_.matrices[layout_.gated ? half : 0];
    const int64_t first = layout_.gated ? panel * kHalfColumns : panel * kPanelColumns + half * kHalfColumns;
    const int64_t columns = std::clamp<int64_t>(source->n - first, 0, kHalfColumns);
    return {source, first, static_cast<int32_t>(columns), half * kHalfColumns};
  }

  void PackHeader(const Half& half, int32_t unit, uint8_t* header) const {
    for (int32_t block = 0; block < layout_.blocks_per_group; ++block) {
      const int64_t index = int64_t{unit} * kUnitK / block_size_ + block;
      if (index >= blocks_) return;
      for (int32_t column = 0; column < half.columns; ++column) {
        const int32_t to = block * kPanelColumns + half.first_lane + column;
        PackScale(*half.source, half.first_column + column, index, header, to);
      }
    }
  }

  // The scale and zero point of a column's block.
  void PackScale(const NBitsSource& source, int64_t column, int64_t block, uint8_t* header, int32_t to) const {
    const int64_t from = column * blocks_ + block;
    const float scale = source.scales[from];
    if (layout_.half_scales) {
      const Float16 half = ToFloat16(scale * scale_);
      std::memcpy(header + to * 2, &half, 2);
    } else {
      const float kept = Canonical(scale);
      std::memcpy(header + to * 4, &kept, 4);
    }
    uint8_t* const zeros = header + layout_.zeros_offset;
    if (layout_.zero_kind == ZeroKind::kUint8) zeros[to] = PackedZero(source, column, block);
    if (layout_.zero_kind != ZeroKind::kFloat) return;
    const float zero = Canonical(source.float_zeros[from]);
    std::memcpy(zeros + to * 4, &zero, 4);
  }

  uint8_t PackedZero(const NBitsSource& source, int64_t column, int64_t block) const {
    const uint8_t* const row = source.packed_zeros + column * zero_row_bytes_;
    return source.bits == 8 ? row[block] : static_cast<uint8_t>(row[block / 2] >> (block % 2 * 4) & 15);
  }

  using Row = uint32_t[kPanelColumns];  // a word of each column

  // In steps over all columns, which compilers make vectors of.
  template <int bits>
  void PackCodes(const Halves& halves, int32_t unit, uint8_t* out) const {
    const int64_t begin = int64_t{unit} * kUnitK * bits / 8;
    const auto bytes = static_cast<size_t>(std::min<int64_t>(kUnitK * bits / 8, row_bytes_ - begin));
    Row words[bits] = {};
    for (const Half& half : halves) {
      for (int32_t column = 0; column < half.columns; ++column) {
        uint32_t codes[bits] = {};
        std::memcpy(codes, half.source->codes + (half.first_column + column) * row_bytes_ + begin, bytes);
        for (int word = 0; word < bits; ++word) words[word][half.first_lane + column] = codes[word] ^ middle_;
      }
    }
    if (layout_.order == CodeOrder::kColumns) {
      std::memcpy(out, words, sizeof(words));
      return;
    }
    for (int word = 0; word < bits; word += 2) Split<bits>(words[word], words[word + 1], 0);
    if (layout_.order == CodeOrder::kPairs) {
      for (int word = 0; word < bits; word += 2) Interleave(words[word], words[word + 1], out + word * sizeof(Row));
      return;
    }
    for (int word = 0; word < bits; word += 4) {
      Split<bits>(words[word], words[word + 2], 1);
      Split<bits>(words[word + 1], words[word + 3], 1);
      Interleave(words[word], words[word + 2], out + word * sizeof(Row));
      Interleave(words[word + 1], words[word + 3], out + (word + 2) * sizeof(Row));
    }
  }

  // Turns words with the codes of successive positions into ones with every other code, beginning with `lead`, and ones
  // with the others.
  template <int bits>
  static void Split(Row& first, Row& second, int lead) {
    for (int32_t column = 0; column < kPanelColumns; ++column) {
      const uint32_t a = first[column], b = second[column];
      first[column] = Squeeze<bits>(a >> (lead * bits)) | Squeeze<bits>(b >> (lead * bits)) << 16;
      second[column] = Squeeze<bits>(a >> ((1 - lead) * bits)) | Squeeze<bits>(b >> ((1 - lead) * bits)) << 16;
    }
  }

  // Every other code, beginning with the lowest, in the lower half.
  template <int bits>
  static uint32_t Squeeze(uint32_t codes) {
    if (bits == 4) {
      codes &= 0x0f0f0f0fu;
      codes |= codes >> 4;
    }
    codes &= 0x00ff00ffu;
    return (codes | codes >> 8) & 0xffffu;
  }

  static void Interleave(const Row& first, const Row& second, uint8_t* out) {
    uint32_t words[2 * kPanelColumns];
    for (int32_t column = 0; column < kPanelColumns; ++column) {
      words[2 * column] = first[column];
      words[2 * column + 1] = second[column];
    }
    std::memcpy(out, words, sizeof(words));
  }

  const Sources& sources_;
  const PackedLayout& layout_;
  const float scale_;
  const int32_t block_size_;
  const int64_t blocks_;
  const int64_t row_bytes_;
  const int64_t zero_row_bytes_;
  const uint32_t middle_;
};

}  // namespace

CodeOrder OrderOf(CpuIsa isa) {
  return isa == CpuIsa::kAmx          ? CodeOrder::kPairs
         : isa == CpuIsa::kAvx512Bf16 ? CodeOrder::kChains
                                      : CodeOrder::kColumns;
}

PackedWeights::PackedWeights(CpuIsa isa, const NBitsSource& source, WeightArena* arena, const ParallelFor& parallel_for,
                             const NBitsSource* up)
    : isa_(isa), k_(source.k) {
  OGA_CHECK(source.bits == 4 || source.bits == 8);
  OGA_CHECK(source.block_size >= 16 && source.block_size <= 256 && (source.block_size & (source.block_size - 1)) == 0);
  OGA_CHECK(up == nullptr || IsOfOneForm(source, *up));
  const Sources sources = {{&source, up}, up == nullptr ? 1 : 2};
  layout_.order = OrderOf(isa);
  layout_.gated = up != nullptr;
  float scale = 1.0f;
  ChooseScales(sources, &layout_, &scale);
  Arrange(source, &layout_);
  const BlockPacker packer(sources, layout_, scale);
  Fill(arena, parallel_for, [&packer](int64_t panel, uint8_t* memory) { packer.PackPanel(panel, memory); });
}

void PackedWeights::Fill(WeightArena* arena, const ParallelFor& parallel_for,
                         const std::function<void(int64_t panel, uint8_t* memory)>& pack_panel) {
  const int64_t bytes = layout_.panel_bytes * layout_.panels;
  uint8_t* const data = arena->Allocate(static_cast<size_t>(bytes));
  const auto pack = [&](size_t i) {
    const auto panel = static_cast<int64_t>(i);
    pack_panel(panel, data + panel * layout_.panel_bytes);
  };
  const auto panels = static_cast<size_t>(layout_.panels);
  if (bytes >= kBytesForThreads) {
    parallel_for(panels, pack);
  } else {
    for (size_t i = 0; i < panels; ++i) pack(i);
  }
  data_ = data;
}

}  // namespace oga::kernels
