// One arithmetic: the bits of a row's output tell neither who shared the call nor which instructions computed it.
#include <gtest/gtest.h>

#include "native/kernels/attention/paged_attention_case.h"
#include "native/kernels/product/nbits_case.h"

namespace oga::kernels {
namespace {

std::vector<NBitsSpec> Specs() {
  std::vector<NBitsSpec> specs;
  for (const int32_t bits : {4, 8}) {
    for (const Zeros zeros : {Zeros::kNone, Zeros::kPacked}) {
      for (const auto& [k, n] : {std::pair<int64_t, int64_t>{200, 77}, {1000, 33}, {64, 200}}) {
        NBitsSpec spec;
        spec.k = k;
        spec.n = n;
        spec.bits = bits;
        spec.zeros = zeros;
        spec.bias = bits == 4;
        spec.scale_spread = 1000.0f;
        spec.outliers = 50.0f;
        specs.push_back(spec);
      }
    }
  }
  return specs;
}

std::vector<float> RowsOf(const NBitsCase& matmul, const std::vector<float>& output, int64_t first, int64_t count) {
  const auto begin = output.begin() + first * matmul.spec.n;
  return {begin, begin + count * matmul.spec.n};
}

TEST(NBitsMatMulBits, OfARowAreThoseOfTheRowAlone) {
  constexpr int64_t kRows = 70;
  for (const CpuIsa isa : NBitsIsas()) {
    for (const NBitsSpec& spec : Specs()) {
      SCOPED_TRACE(std::string(CpuIsaName(isa)) + ": " + spec.Describe());
      const NBitsCase matmul(spec, kRows);
      std::vector<float> alone;
      for (int64_t row = 0; row < kRows; ++row) {
        const std::vector<float> output = matmul.Run(isa, row, 1, Serially);
        alone.insert(alone.end(), output.begin(), output.end());
      }
      for (int64_t count = 1; count <= kRows; ++count) {
        const int64_t first = (count * 37) % (kRows - count + 1);
        ExpectSameBits(matmul.Run(isa, first, count, Serially), RowsOf(matmul, alone, first, count));
        if (HasFailure()) FAIL() << count << " rows from row " << first;
      }
    }
  }
}

TEST(NBitsMatMulBits, DoNotDependOnThreadsOrOrder) {
  for (const CpuIsa isa : NBitsIsas()) {
    for (const NBitsSpec& spec : Specs()) {
      for (const int64_t rows : {1, 3, 20, 200}) {
        SCOPED_TRACE(std::string(CpuIsaName(isa)) + ", " + std::to_string(rows) + " rows: " + spec.Describe());
        const NBitsCase matmul(spec, rows);
        const std::vector<float> serial = matmul.Run(isa);
        ExpectSameBits(serial, matmul.Run(isa, 0, rows, Reversed));
        ExpectSameBits(serial, matmul.Run(isa, 0, rows, OnFourThreads));
      }
    }
  }
}

// More rows than one pass stages.
TEST(NBitsMatMulBits, DoNotDependOnPasses) {
  NBitsSpec spec;
  spec.k = 40;
  spec.n = 35;
  for (const CpuIsa isa : NBitsIsas()) {
    SCOPED_TRACE(CpuIsaName(isa));
    const NBitsCase matmul(spec, 1100);
    const std::vector<float> together = matmul.Run(isa);
    for (const int64_t first : {0, 511, 512, 700, 1023}) {
      ExpectSameBits(matmul.Run(isa, first, 77, Serially), RowsOf(matmul, together, first, 77));
    }
  }
}

TEST(NBitsMatMulBits, AreEqualForAllWideVariantsAndCloseForThePortableOne) {
  for (NBitsSpec spec : Specs()) {
    for (const float size : {1.0f, 1e-18f}) {  // the latter makes products and sums denormal
      SCOPED_TRACE(spec.Describe());
      NBitsCase matmul(spec, 13);
      for (float& activation : matmul.activations) activation *= size;
      for (float& scale : matmul.scales) scale *= size * (size < 1 ? 0.1f : 1.0f);
      matmul.activations[3] = 0x1p-130f;
      if (size == 1.0f) matmul.ExpectNear(matmul.Run(CpuIsa::kPortable));
      if (BestCpuIsa() < CpuIsa::kAvx2) continue;
      const std::vector<float> wanted = matmul.Run(CpuIsa::kAvx2);
      for (const CpuIsa isa : NBitsIsas()) {
        if (isa <= CpuIsa::kAvx2) continue;
        for (int64_t row = 0; row < matmul.rows; row += 4) {
          SCOPED_TRACE(CpuIsaName(isa));
          ExpectSameBits(matmul.Run(isa, row, std::min<int64_t>(4, matmul.rows - row), Serially),
                         RowsOf(matmul, wanted, row, std::min<int64_t>(4, matmul.rows - row)));
        }
        ExpectSameBits(matmul.Run(isa), wanted);
      }
    }
  }
}

}  // namespace
}  // namespace oga::kernels
