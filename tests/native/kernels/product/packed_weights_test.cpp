// How weights lie once they are packed, as packed_weights.h has it.
#include "kernels/product/packed_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/simd/float16.h"
#include "native/kernels/attention/paged_attention_case.h"
#include "native/kernels/product/dense_case.h"
#include "native/kernels/product/nbits_case.h"

namespace oga::kernels {
namespace {

template <typename T>
T At(const uint8_t* data) {
  T value;
  std::memcpy(&value, data, sizeof(value));
  return value;
}

// Two columns of one unit, whose codes are their positions.
struct SmallMatrix {
  NBitsSource Source() const {
    return {.k = 32, .n = 2, .bits = 4, .block_size = 32, .codes = codes.data(), .scales = scales.data()};
  }
  // The eight codes from position 8 * word on, as the source has them.
  uint32_t Word(int column, int word) const { return At<uint32_t>(codes.data() + column * 16 + word * 4); }

  explicit SmallMatrix(uint8_t first = 0) {
    for (int i = 0; i < 32; ++i) codes.push_back(static_cast<uint8_t>(first + 7 * i));
  }

  std::vector<uint8_t> codes;
  std::vector<float> scales = {0.75f, 3.0f};
};

PackedWeights Packed(const NBitsSource& source, WeightArena* arena, CpuIsa isa = CpuIsa::kPortable,
                     const NBitsSource* up = nullptr) {
  return PackedWeights(isa, source, arena, Serially, up);
}

TEST(PackedWeights, HaveTheOrderOfTheInstructionsThatReadThem) {
  EXPECT_EQ(OrderOf(CpuIsa::kPortable), CodeOrder::kColumns);
  EXPECT_EQ(OrderOf(CpuIsa::kAvx2), CodeOrder::kColumns);
  EXPECT_EQ(OrderOf(CpuIsa::kAvx512), CodeOrder::kColumns);
  EXPECT_EQ(OrderOf(CpuIsa::kAvx512Bf16), CodeOrder::kChains);
  EXPECT_EQ(OrderOf(CpuIsa::kAmx), CodeOrder::kPairs);
}

// Without zero points a code is signed, so that its highest bit is turned.
TEST(PackedWeights, AreScalesAndThenWordsOfEveryColumn) {
  WeightArena arena;
  const SmallMatrix matrix;
  const PackedWeights weights = Packed(matrix.Source(), &arena);
  const PackedLayout& layout = weights.layout();
  ASSERT_TRUE(layout.half_scales);
  EXPECT_EQ(layout.header_bytes, kPanelColumns * 2);
  EXPECT_EQ(layout.unit_bytes, kPanelColumns * 16);
  EXPECT_EQ(layout.panel_bytes, layout.header_bytes + layout.unit_bytes);
  for (int column = 0; column < 2; ++column) {
    const auto half = At<Float16>(weights.data() + column * 2);
    EXPECT_EQ(ToFloat(half) * layout.unscale, matrix.scales[static_cast<size_t>(column)]);
    for (int word = 0; word < 4; ++word) {
      const uint8_t* const place = weights.data() + layout.header_bytes + (word * kPanelColumns + column) * 4;
      EXPECT_EQ(At<uint32_t>(place), matrix.Word(column, word) ^ 0x88888888u) << column << ", " << word;
    }
  }
}

// kPairs: a word has the codes of even positions, its neighbour those of odd ones.
TEST(PackedWeights, PartEvenFromOddPositionsForTiles) {
  WeightArena arena;
  const SmallMatrix matrix;
  const PackedWeights weights = Packed(matrix.Source(), &arena, CpuIsa::kAmx);
  const uint8_t* const unit = weights.data() + weights.layout().header_bytes;
  for (int column = 0; column < 2; ++column) {
    for (int position = 0; position < 32; ++position) {
      const uint32_t code = (matrix.Word(column, position / 8) >> (position % 8 * 4) & 15) ^ 8;
      const int step = position / 2;  // of the half words
      const uint32_t word = At<uint32_t>(unit + (step / 8 * kPanelColumns * 2 + column * 2 + position % 2) * 4);
      EXPECT_EQ(word >> (step % 8 * 4) & 15, code) << "column " << column << ", position " << position;
    }
  }
}

TEST(PackedWeights, KeepFloatsWhereHalvesCannotHoldTheScales) {
  WeightArena arena;
  SmallMatrix matrix;
  matrix.scales = {1.0f, 0x1p-40f};
  const PackedWeights weights = Packed(matrix.Source(), &arena);
  ASSERT_FALSE(weights.layout().half_scales);
  EXPECT_EQ(weights.layout().header_bytes, kPanelColumns * 4);
  EXPECT_EQ(At<float>(weights.data()), 1.0f);
  EXPECT_EQ(At<float>(weights.data() + 4), 0x1p-40f);
}

TEST(PackedWeights, OfGatesTakeHalfOfAPanelEach) {
  WeightArena arena;
  const SmallMatrix gate(1), up(2);
  const NBitsSource up_source = up.Source();
  const PackedWeights weights = Packed(gate.Source(), &arena, CpuIsa::kPortable, &up_source);
  ASSERT_TRUE(weights.layout().gated);
  const uint8_t* const unit = weights.data() + weights.layout().header_bytes;
  for (int column = 0; column < 2; ++column) {
    EXPECT_EQ(At<uint32_t>(unit + column * 4), gate.Word(column, 0) ^ 0x88888888u);
    EXPECT_EQ(At<uint32_t>(unit + (kPanelColumns / 2 + column) * 4), up.Word(column, 0) ^ 0x88888888u);
  }
}

TEST(PackedWeights, AreNotMadeOfFormsThatTheProductDoesNotKnow) {
  WeightArena arena;
  const SmallMatrix matrix;
  NBitsSource bits = matrix.Source(), block = bits, up = bits;
  bits.bits = 3;
  block.block_size = 48;
  up.block_size = 16;
  EXPECT_THROW(Packed(bits, &arena), ContractError);
  EXPECT_THROW(Packed(block, &arena), ContractError);
  EXPECT_THROW(Packed(matrix.Source(), &arena, CpuIsa::kPortable, &up), ContractError);
}

// Large enough that threads share the work.
TEST(PackedWeights, AreTheSameBytesOnAnyThreads) {
  NBitsSpec blocks;
  blocks.k = 1000;
  blocks.n = 810;
  DenseSpec dense;
  dense.k = 500;
  dense.n = 450;
  const NBitsCase matmul(blocks, 1);
  const DenseCase product(dense, 1);
  const auto bytes_of = [](const PackedWeights& weights) {
    const size_t size = static_cast<size_t>(weights.layout().panel_bytes * weights.layout().panels);
    return std::vector<uint8_t>(weights.data(), weights.data() + size);
  };
  for (const CpuIsa isa : NBitsIsas()) {
    WeightArena arena;
    const auto pack = [&](const ParallelFor& parallel_for) {
      return std::pair(bytes_of(PackedWeights(isa, matmul.Source(), &arena, parallel_for)),
                       bytes_of(PackedWeights(isa, product.Source(), DensePrecision::kBfloat16, &arena, parallel_for)));
    };
    const auto alone = pack(Serially);
    EXPECT_GT(std::min(alone.first.size(), alone.second.size()), size_t{256} << 10);
    EXPECT_TRUE(pack(OnFourThreads) == alone) << CpuIsaName(isa);
    EXPECT_TRUE(pack(Reversed) == alone) << CpuIsaName(isa);
  }
}

}  // namespace
}  // namespace oga::kernels
