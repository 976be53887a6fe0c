// What a product with float or 16-bit weights gives, for every type, layout and variant.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/simd/bfloat16.h"
#include "native/kernels/attention/paged_attention_case.h"
#include "native/kernels/product/dense_case.h"
#include "native/kernels/product/nbits_case.h"

namespace oga::kernels {
namespace {

// Every type in either precision and layout, by turns over shapes that no width divides.
std::vector<DenseSpec> EveryForm() {
  const std::pair<int64_t, int64_t> shapes[] = {{96, 40}, {1, 1}, {200, 77}, {41, 1}, {33, 33}, {301, 64}, {256, 16}};
  std::vector<DenseSpec> specs;
  size_t turn = 0;
  for (const FloatType type : {FloatType::kFloat, FloatType::kFloat16, FloatType::kBfloat16}) {
    for (const DensePrecision precision : {DensePrecision::kFloat, DensePrecision::kBfloat16}) {
      for (const bool transposed : {false, true}) {
        for (int i = 0; i < 4; ++i) {
          DenseSpec spec;
          std::tie(spec.k, spec.n) = shapes[turn++ % std::size(shapes)];
          spec.type = type;
          spec.precision = precision;
          spec.transposed = transposed;
          spec.bias = i % 2 == 1;
          spec.outliers = i < 2 ? 1.0f : 100.0f;
          spec.seed = static_cast<uint32_t>(turn);
          specs.push_back(spec);
        }
      }
    }
  }
  return specs;
}

std::vector<float> RowsOf(const DenseCase& matmul, const std::vector<float>& output, int64_t first, int64_t count) {
  const auto begin = output.begin() + first * matmul.spec.n;
  return {begin, begin + count * matmul.spec.n};
}

TEST(DenseMatMul, IsTheProductWithinItsRoundings) {
  for (const CpuIsa isa : NBitsIsas()) {
    for (const DenseSpec& spec : EveryForm()) {
      for (const int64_t rows : {1, 3, 9}) {
        SCOPED_TRACE(std::string(CpuIsaName(isa)) + ", " + std::to_string(rows) + " rows: " + spec.Describe());
        const DenseCase matmul(spec, rows);
        matmul.ExpectNear(matmul.Run(isa));
        if (HasFailure()) return;
      }
    }
  }
}

TEST(DenseMatMul, IsTheArithmeticItPromisesBitForBit) {
  for (const DenseSpec& spec : EveryForm()) {
    for (const ProductWay& way : DenseWays(spec.precision)) {
      if (way.isa == CpuIsa::kPortable) continue;
      for (const int64_t rows : {1, 2, 4, 11, 40}) {
        SCOPED_TRACE(way.name + ", " + std::to_string(rows) + " rows: " + spec.Describe());
        const DenseCase matmul(spec, rows);
        ExpectSameBits(matmul.Run(way), matmul.Promised());
        if (HasFailure()) return;
      }
    }
  }
}

TEST(DenseMatMul, GivesARowTheBitsOfTheRowAloneOnAnyThreads) {
  constexpr int64_t kRows = 70;
  for (const CpuIsa isa : NBitsIsas()) {
    for (const DenseSpec& spec : EveryForm()) {
      if (spec.k < 100) continue;
      SCOPED_TRACE(std::string(CpuIsaName(isa)) + ": " + spec.Describe());
      const DenseCase matmul(spec, kRows);
      std::vector<float> alone;
      for (int64_t row = 0; row < kRows; ++row) {
        const std::vector<float> output = matmul.Run(isa, row, 1, Serially);
        alone.insert(alone.end(), output.begin(), output.end());
      }
      for (int64_t count = 1; count <= kRows; count += 3) {
        const int64_t first = (count * 37) % (kRows - count + 1);
        ExpectSameBits(matmul.Run(isa, first, count, Serially), RowsOf(matmul, alone, first, count));
        if (HasFailure()) FAIL() << count << " rows from row " << first;
      }
      ExpectSameBits(matmul.Run(isa, 0, kRows, Reversed), alone);
      ExpectSameBits(matmul.Run(isa, 0, kRows, OnFourThreads), alone);
    }
  }
}

// More rows than one pass stages.
TEST(DenseMatMul, DoesNotDependOnPasses) {
  DenseSpec spec;
  spec.k = 40;
  spec.n = 35;
  for (const DensePrecision precision : {DensePrecision::kFloat, DensePrecision::kBfloat16}) {
    spec.precision = precision;
    for (const CpuIsa isa : NBitsIsas()) {
      SCOPED_TRACE(std::string(CpuIsaName(isa)) + ": " + spec.Describe());
      const DenseCase matmul(spec, 1100);
      const std::vector<float> together = matmul.Run(isa);
      for (const int64_t first : {0, 511, 700, 1023}) {
        ExpectSameBits(matmul.Run(isa, first, 77, Serially), RowsOf(matmul, together, first, 77));
      }
    }
  }
}

TEST(DenseMatMul, TakesDenormalsForZeroOnEveryVectorVariant) {
  if (BestCpuIsa() < CpuIsa::kAvx2) return;
  DenseSpec spec;
  spec.k = 75;
  for (const DensePrecision precision : {DensePrecision::kFloat, DensePrecision::kBfloat16}) {
    spec.precision = precision;
    for (const float size : {1e-19f, 1e-38f}) {  // products, then weights and activations are denormal
      DenseCase matmul(spec, 13);
      for (float& activation : matmul.activations) activation *= size;
      auto* const weights = reinterpret_cast<float*>(matmul.stored.data());
      for (size_t i = 0; i < matmul.weights.size(); ++i) weights[i] *= size;
      const std::vector<float> wanted = matmul.Run(CpuIsa::kAvx2);
      for (const CpuIsa isa : NBitsIsas()) {
        if (isa > CpuIsa::kAvx2) ExpectSameBits(matmul.Run(isa), wanted);
      }
    }
  }
}

TEST(DenseMatMul, TakesNoRowsAndNoDepth) {
  for (const DenseSpec& spec : EveryForm()) {
    for (const ProductWay& way : DenseWays(spec.precision)) {
      EXPECT_TRUE(DenseCase(spec, 5).Run(way, 0, 0, Serially).empty());
      DenseSpec without_depth = spec;
      without_depth.k = 0;
      for (const int64_t rows : kRowsOfEveryPath) {
        SCOPED_TRACE(way.name + ", " + std::to_string(rows) + " rows: " + without_depth.Describe());
        const DenseCase matmul(without_depth, rows);
        ExpectBiasInEveryRow(matmul.Run(way), rows, spec.n, matmul.bias);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(DenseMatMul, ReadsAndWritesNothingForNoRowsOrNoColumns) {
  for (const DensePrecision precision : {DensePrecision::kFloat, DensePrecision::kBfloat16}) {
    for (const ProductWay& way : DenseWays(precision)) {
      for (const int64_t k : {0, 96}) {
        for (const auto& [n, rows] : {std::pair<int64_t, int64_t>{40, 0}, {0, 0}, {0, 1}, {0, 600}}) {
          DenseSpec spec;
          spec.k = k;
          spec.n = n;
          spec.precision = precision;
          WeightArena arena;
          const PackedWeights weights(way.isa, DenseCase(spec, 0).Source(), precision, &arena, Serially);
          PackedMatMulArgs args;
          args.rows = rows;
          way.Multiply(weights, args, Serially);
        }
      }
    }
  }
}

TEST(DenseMatMul, KeepsNansAndInfinitiesOfWeightsInTheirColumn) {
  for (const CpuIsa isa : NBitsIsas()) {
    SCOPED_TRACE(CpuIsaName(isa));
    for (const int64_t rows : {3, 9}) {
      DenseCase clean(DenseSpec{}, rows), matmul(DenseSpec{}, rows);
      auto* const weights = reinterpret_cast<float*>(matmul.stored.data());
      weights[7 * matmul.spec.n + 1] = FloatFromBits(0x7f800001u);
      weights[8 * matmul.spec.n + 2] = std::numeric_limits<float>::infinity();
      const std::vector<float> output = matmul.Run(isa), wanted = clean.Run(isa);
      for (size_t i = 0; i < output.size(); ++i) {
        const size_t column = i % static_cast<size_t>(matmul.spec.n);
        const bool as_wanted = column == 1   ? std::isnan(output[i])
                               : column == 2 ? !std::isfinite(output[i])
                                             : output[i] == wanted[i];
        ASSERT_TRUE(as_wanted) << "column " << column << ": " << output[i];
      }
    }
  }
}

TEST(DenseTiles, GiveTheBitsThatArePromisedForAnyNumberOfRows) {
  for (const auto& [k, n] : {std::pair<int64_t, int64_t>{600, 33}, {75, 64}}) {
    DenseSpec spec;
    spec.k = k;
    spec.n = n;
    spec.bias = n == 64;
    const DenseCase matmul(spec, 600);
    const std::vector<float> wanted = matmul.Promised();
    for (const ProductWay& way : EmulatedProducts()) {
      for (const int64_t count : {1, 2, 15, 16, 17, 31, 32, 33, 48, 49, 65, 256, 257, 513, 600}) {
        const int64_t first = 600 - count;
        ExpectSameBits(matmul.Run(way, first, count, OnFourThreads), RowsOf(matmul, wanted, first, count));
        if (HasFailure()) FAIL() << way.name << ", " << count << " rows: " << spec.Describe();
      }
    }
  }
}

}  // namespace
}  // namespace oga::kernels
