// What a product with quantised weights gives, for every form of weights and every variant.
#include "kernels/product/packed_matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/simd/float16.h"
#include "native/kernels/attention/paged_attention_case.h"
#include "native/kernels/product/nbits_case.h"

namespace oga::kernels {
namespace {

// Every form of weights, by turns over shapes that no width divides.
std::vector<NBitsSpec> EveryForm() {
  const std::pair<int64_t, int64_t> shapes[] = {{96, 40}, {1, 1}, {200, 77}, {40, 1}, {33, 33}, {301, 64}, {256, 16}};
  std::vector<NBitsSpec> specs;
  size_t turn = 0;
  for (const int32_t bits : {4, 8}) {
    for (const int32_t block_size : {16, 32, 64, 128, 256}) {
      for (const Zeros zeros : {Zeros::kNone, Zeros::kPacked, Zeros::kFloat}) {
        for (const bool bias : {false, true}) {
          for (int i = 0; i < 2; ++i) {
            NBitsSpec spec;
            std::tie(spec.k, spec.n) = shapes[turn++ % std::size(shapes)];
            spec.bits = bits;
            spec.block_size = block_size;
            spec.zeros = zeros;
            spec.bias = bias;
            spec.seed = static_cast<uint32_t>(turn);
            specs.push_back(spec);
          }
        }
      }
    }
  }
  return specs;
}

TEST(PackedMatMul, IsTheProductWithinItsRoundings) {
  for (const CpuIsa isa : NBitsIsas()) {
    for (const NBitsSpec& spec : EveryForm()) {
      for (const int64_t rows : {1, 3, 9}) {
        SCOPED_TRACE(std::string(CpuIsaName(isa)) + ", " + std::to_string(rows) + " rows: " + spec.Describe());
        const NBitsCase matmul(spec, rows);
        matmul.ExpectNear(matmul.Run(isa));
        if (HasFailure()) return;
      }
    }
  }
}

TEST(PackedMatMul, IsTheArithmeticItPromisesBitForBit) {
  for (const ProductWay& way : ProductWays()) {
    if (way.isa == CpuIsa::kPortable) continue;
    for (const NBitsSpec& spec : EveryForm()) {
      for (const int64_t rows : {1, 2, 4, 11}) {
        SCOPED_TRACE(way.name + ", " + std::to_string(rows) + " rows: " + spec.Describe());
        const NBitsCase matmul(spec, rows);
        ExpectSameBits(matmul.Run(way), matmul.Promised());
        if (HasFailure()) return;
      }
    }
  }
}

TEST(PackedMatMul, ReadsAndWritesNothingForNoRowsOrNoColumns) {
  for (const ProductWay& way : ProductWays()) {
    for (const int64_t k : {0, 96}) {
      for (const auto& [n, rows] : {std::pair<int64_t, int64_t>{40, 0}, {0, 0}, {0, 1}, {0, 600}}) {
        NBitsSpec spec;
        spec.k = k;
        spec.n = n;
        WeightArena arena;
        const PackedWeights weights(way.isa, NBitsCase(spec, 0).Source(), &arena, Serially);
        EXPECT_EQ(PackedScratchBytes(weights, 0), 0u);
        PackedMatMulArgs args;
        args.rows = rows;
        way.Multiply(weights, args, Serially);
      }
    }
  }
}

TEST(PackedMatMul, IsTheBiasAloneWithoutDepth) {
  for (NBitsSpec spec : EveryForm()) {
    spec.k = 0;
    for (const ProductWay& way : ProductWays()) {
      for (const int64_t rows : kRowsOfEveryPath) {
        SCOPED_TRACE(way.name + ", " + std::to_string(rows) + " rows: " + spec.Describe());
        const NBitsCase matmul(spec, rows);
        ExpectBiasInEveryRow(matmul.Run(way), rows, spec.n, matmul.bias);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(PackedMatMul, KeepsScalesThatHalvesCannotHold) {
  for (const CpuIsa isa : NBitsIsas()) {
    NBitsSpec spec;
    spec.n = 70;
    spec.bias = true;
    NBitsCase matmul(spec, 5);
    // Columns 2^60 apart: each keeps its own precision.
    for (size_t i = 0; i < matmul.scales.size(); ++i) {
      matmul.scales[i] *= std::ldexp(1.0f, static_cast<int>(i / static_cast<size_t>(matmul.blocks) % 3) * 30 - 30);
    }
    SCOPED_TRACE(CpuIsaName(isa));
    matmul.ExpectNear(matmul.Run(isa));
    // Tiny and huge tensors keep halves, by a power of two for all.
    for (const int shift : {-80, 80}) {
      NBitsCase far(NBitsSpec{}, 5);
      for (float& scale : far.scales) scale = std::ldexp(scale, shift);
      far.ExpectNear(far.Run(isa));
    }
  }
}

TEST(PackedMatMul, AcceptsScalesOfZeroAndOfEitherSign) {
  for (const CpuIsa isa : NBitsIsas()) {
    SCOPED_TRACE(CpuIsaName(isa));
    NBitsCase matmul(NBitsSpec{}, 3);
    for (size_t i = 0; i < matmul.scales.size(); ++i) matmul.scales[i] *= i % 3 == 0 ? 0.0f : i % 3 == 1 ? -1.0f : 1.0f;
    matmul.ExpectNear(matmul.Run(isa));
    std::fill(matmul.scales.begin(), matmul.scales.end(), 0.0f);
    for (const float value : matmul.Run(isa)) ASSERT_EQ(value, 0.0f);
  }
}

// A row that went wrong must be seen to have gone wrong, and must not touch another.
TEST(PackedMatMul, KeepsNansAndInfinitiesInTheirRow) {
  const float nan = FloatFromBits(0x7fffffffu), infinity = std::numeric_limits<float>::infinity();
  for (const CpuIsa isa : NBitsIsas()) {
    SCOPED_TRACE(CpuIsaName(isa));
    for (const int64_t rows : {3, 9}) {
      NBitsCase clean(NBitsSpec{}, rows), matmul(NBitsSpec{}, rows);
      matmul.activations[static_cast<size_t>(matmul.spec.k) + 7] = nan;
      matmul.activations[static_cast<size_t>(2 * matmul.spec.k) + 8] = infinity;
      const std::vector<float> output = matmul.Run(isa), wanted = clean.Run(isa);
      for (size_t i = 0; i < output.size(); ++i) {
        const size_t row = i / static_cast<size_t>(matmul.spec.n);
        const bool as_wanted = row == 1   ? std::isnan(output[i])
                               : row == 2 ? !std::isfinite(output[i])
                                          : output[i] == wanted[i];
        ASSERT_TRUE(as_wanted) << "row " << row << ": " << output[i] << ", without the others' trouble " << wanted[i];
      }
    }
  }
}

TEST(PackedMatMul, LeavesTheThreadsDenormalModeAlone) {
  volatile float tiny = 0x1p-140f;
  for (const CpuIsa isa : NBitsIsas()) {
    const NBitsCase matmul(NBitsSpec{}, 2);
    matmul.Run(isa);
    EXPECT_NE(tiny * 0.5f, 0.0f) << CpuIsaName(isa);
  }
}

}  // namespace
}  // namespace oga::kernels
