// Gated weights: silu of the one product times the other, whatever computes it.
#include <gtest/gtest.h>

#include <cmath>

#include "native/kernels/attention/paged_attention_case.h"
#include "native/kernels/product/nbits_case.h"

namespace oga::kernels {
namespace {

// Two matrices of one form under the same activations.
struct GatedCase {
  GatedCase(NBitsSpec spec, int64_t rows) : gate(spec, rows), up(Other(spec), rows) {
    up.activations = gate.activations;
  }
  static NBitsSpec Other(NBitsSpec spec) {
    spec.seed += 1000;
    return spec;
  }

  std::vector<float> Run(const ProductWay& way, int64_t first, int64_t count, const ParallelFor& parallel_for) const {
    WeightArena arena;
    const NBitsSource of_up = up.Source();
    const PackedWeights weights(way.isa, gate.Source(), &arena, OnFourThreads, &of_up);
    return RunPacked(way, weights, gate.activations.data() + first * gate.spec.k, count, nullptr, parallel_for);
  }
  std::vector<float> Run(const ProductWay& way) const { return Run(way, 0, gate.rows, Serially); }

  NBitsCase gate, up;
};

std::vector<NBitsSpec> Specs() {
  std::vector<NBitsSpec> specs;
  for (const int32_t bits : {4, 8}) {
    for (const Zeros zeros : {Zeros::kNone, Zeros::kPacked, Zeros::kFloat}) {
      for (const auto& [k, n] : {std::pair<int64_t, int64_t>{200, 77}, {96, 16}, {33, 1}, {64, 17}, {301, 130}}) {
        NBitsSpec spec;
        spec.k = k;
        spec.n = n;
        spec.bits = bits;
        spec.zeros = zeros;
        spec.block_size = n == 17 ? 16 : 64;
        spec.scale_spread = 100.0f;
        specs.push_back(spec);
      }
    }
  }
  return specs;
}

TEST(PackedGated, IsSiluOfTheOneProductTimesTheOther) {
  for (const ProductWay& way : ProductWays()) {
    for (const NBitsSpec& spec : Specs()) {
      for (const int64_t rows : {1, 3, 40}) {
        SCOPED_TRACE(way.name + ", " + std::to_string(rows) + " rows: " + spec.Describe());
        const GatedCase gated(spec, rows);
        const std::vector<float> gate = gated.gate.Run(way), up = gated.up.Run(way), output = gated.Run(way);
        ASSERT_EQ(output.size(), gate.size());
        for (size_t i = 0; i < output.size(); ++i) {
          const double wanted = gate[i] / (1.0 + std::exp(-double{gate[i]})) * up[i];
          // The power is exact to some units in the last place of its exponent, which count where it is tiny.
          const double bound = std::fabs(wanted) * 0x1p-22 * (2.0 + std::max(0.0, -double{gate[i]})) + 1e-30;
          ASSERT_NEAR(output[i], wanted, bound) << "element " << i << ", gate " << gate[i] << ", up " << up[i];
        }
      }
    }
  }
}

TEST(PackedGated, BitsTellNeitherTheInstructionsNorWhoSharedTheCall) {
  for (const NBitsSpec& spec : Specs()) {
    SCOPED_TRACE(spec.Describe());
    constexpr int64_t kRows = 41;
    const GatedCase gated(spec, kRows);
    std::vector<float> first_of_all;
    for (const CpuIsa isa : NBitsIsas()) {
      SCOPED_TRACE(CpuIsaName(isa));
      const std::vector<float> together = gated.Run(isa);
      ExpectSameBits(together, gated.Run(isa, 0, kRows, Reversed));
      ExpectSameBits(together, gated.Run(isa, 0, kRows, OnFourThreads));
      for (const int64_t row : {0, 7, 40}) {
        const auto begin = together.begin() + row * spec.n;
        ExpectSameBits(gated.Run(isa, row, 1, Serially), {begin, begin + spec.n});
      }
      if (isa == CpuIsa::kPortable) continue;
      if (first_of_all.empty()) first_of_all = together;
      ExpectSameBits(together, first_of_all);
    }
    if (BestCpuIsa() >= CpuIsa::kAvx512Bf16) {
      for (const int64_t rows : {int64_t{1}, int64_t{20}, kRows}) {
        const std::vector<float> on_tiles = gated.Run(EmulatedProducts().back(), 0, rows, Serially);
        ExpectSameBits(on_tiles, {first_of_all.begin(), first_of_all.begin() + rows * spec.n});
      }
    }
    if (HasFailure()) return;
  }
}

TEST(PackedGated, IsZeroWithoutDepth) {
  for (NBitsSpec spec : Specs()) {
    spec.k = 0;
    for (const ProductWay& way : ProductWays()) {
      for (const int64_t rows : kRowsOfEveryPath) {
        SCOPED_TRACE(way.name + ", " + std::to_string(rows) + " rows: " + spec.Describe());
        ExpectBiasInEveryRow(GatedCase(spec, rows).Run(way), rows, spec.n, {});
        if (HasFailure()) return;
      }
    }
  }
}

TEST(PackedGated, ReadsAndWritesNothingForNoRowsOrNoColumns) {
  for (const ProductWay& way : ProductWays()) {
    for (const int64_t k : {0, 96}) {
      for (const auto& [n, rows] : {std::pair<int64_t, int64_t>{40, 0}, {0, 0}, {0, 600}}) {
        NBitsSpec spec;
        spec.k = k;
        spec.n = n;
        EXPECT_TRUE(GatedCase(spec, rows).Run(way).empty());
      }
    }
  }
}

TEST(PackedGated, ExtremesStayWhatTheyAre) {
  for (const CpuIsa isa : NBitsIsas()) {
    SCOPED_TRACE(CpuIsaName(isa));
    for (const float factor : {1e4f, -1e4f}) {
      GatedCase gated(NBitsSpec{}, 2);
      for (float& activation : gated.gate.activations) activation *= factor;
      gated.up.activations = gated.gate.activations;
      const std::vector<float> gate = gated.gate.Run(isa), up = gated.up.Run(isa), output = gated.Run(isa);
      for (size_t i = 0; i < output.size(); ++i) {
        // Far from zero the gate is open or shut.
        if (std::fabs(gate[i]) < 200) continue;
        EXPECT_EQ(output[i], gate[i] > 0 ? gate[i] * up[i] : 0.0f * up[i]);
      }
    }
    GatedCase broken(NBitsSpec{}, 2);
    broken.gate.activations[3] = std::nanf("");
    const std::vector<float> output = broken.Run(isa);
    for (int64_t i = 0; i < broken.gate.spec.n; ++i) {
      EXPECT_TRUE(std::isnan(output[static_cast<size_t>(i)]));
      EXPECT_FALSE(std::isnan(output[static_cast<size_t>(broken.gate.spec.n + i)]));
    }
  }
}

}  // namespace
}  // namespace oga::kernels
