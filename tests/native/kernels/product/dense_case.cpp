#include "native/kernels/product/dense_case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernels/simd/bfloat16.h"
#include "native/kernels/attention/paged_attention_case.h"
#include "native/kernels/product/nbits_case.h"

namespace oga::kernels {

std::string DenseSpec::Describe() const {
  const char* const types[] = {"float", "float16", "bfloat16"};
  return "K " + std::to_string(k) + ", N " + std::to_string(n) + ", " + types[static_cast<int>(type)] +
         (precision == DensePrecision::kFloat ? " in float" : " in bfloat16") + (transposed ? ", transposed" : "") +
         (bias ? ", bias" : "");
}

DenseCase::DenseCase(const DenseSpec& spec, int64_t rows) : spec(spec), rows(rows) {
  std::mt19937 random(spec.seed);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < rows * spec.k; ++i) {
    activations.push_back(normal(random) * (i % spec.k % 97 == 5 ? spec.outliers : 1.0f));
  }
  std::vector<float> drawn;
  for (int64_t i = 0; i < spec.k * spec.n; ++i) {
    drawn.push_back(0.05f * normal(random) * (i / spec.n % 89 == 7 ? spec.outliers : 1.0f));
  }
  const int64_t bytes = BytesOf(spec.type);
  std::vector<uint8_t> narrow(drawn.size() * static_cast<size_t>(bytes));
  Narrow(spec.type, drawn.data(), spec.k * spec.n, narrow.data());
  weights.resize(drawn.size());
  Widen(spec.type, narrow.data(), spec.k * spec.n, weights.data());
  stored = narrow;
  for (int64_t k = 0; spec.transposed && k < spec.k; ++k) {
    for (int64_t column = 0; column < spec.n; ++column) {
      std::copy_n(narrow.begin() + (k * spec.n + column) * bytes, bytes,
                  stored.begin() + (column * spec.k + k) * bytes);
    }
  }
  for (int64_t column = 0; spec.bias && column < spec.n; ++column) bias.push_back(normal(random));
}

DenseSource DenseCase::Source() const {
  DenseSource source;
  source.k = spec.k;
  source.n = spec.n;
  source.type = spec.type;
  source.data = stored.data();
  source.transposed = spec.transposed;
  return source;
}

std::vector<float> DenseCase::Run(const ProductWay& way, int64_t first, int64_t count,
                                  const ParallelFor& parallel_for) const {
  WeightArena arena;
  const PackedWeights packed(way.isa, Source(), spec.precision, &arena, OnFourThreads);
  return RunPacked(way, packed, activations.data() + first * spec.k, count, spec.bias ? bias.data() : nullptr,
                   parallel_for);
}

std::vector<float> DenseCase::Run(const ProductWay& way) const { return Run(way, 0, rows, Serially); }

std::vector<ProductWay> DenseWays(DensePrecision precision) {
  std::vector<ProductWay> ways = ProductWays();
  if (precision == DensePrecision::kFloat) std::erase_if(ways, [](const ProductWay& way) { return way.variant; });
  return ways;
}

void DenseCase::ExpectNear(const std::vector<float>& output) const {
  ASSERT_EQ(output.size(), static_cast<size_t>(rows * spec.n));
  const double rounding = spec.precision == DensePrecision::kFloat ? 0.0 : 2 * 0x1.01p-8;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < spec.n; ++column) {
      double sum = spec.bias ? bias[static_cast<size_t>(column)] : 0.0, size = std::fabs(sum);
      for (int64_t k = 0; k < spec.k; ++k) {
        const double product = static_cast<double>(Weight(k, column)) * static_cast<double>(Activation(row, k));
        sum += product;
        size += std::fabs(product);
      }
      const double slack = size * (rounding + static_cast<double>(spec.k + 4) * 0x1p-24) + 1e-30;
      ASSERT_NEAR(output[static_cast<size_t>(row * spec.n + column)], sum, slack) << "row " << row << ", " << column;
    }
  }
}

std::vector<float> DenseCase::Promised() const {
  const auto kept = [&](float value) {
    return spec.precision == DensePrecision::kFloat ? value : ToFloat(ToBfloat16(value));
  };
  std::vector<float> output;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < spec.n; ++column) {
      float total = 0.0f;
      for (int64_t unit = 0; unit < spec.k; unit += 32) {
        float chains[2] = {0.0f, 0.0f};
        for (int64_t k = unit; k < std::min(unit + 32, spec.k); ++k) {
          chains[k % 2] = std::fma(kept(Activation(row, k)), kept(Weight(k, column)), chains[k % 2]);
        }
        total += chains[0] + chains[1];
      }
      output.push_back(spec.bias ? total + bias[static_cast<size_t>(column)] : total);
    }
  }
  return output;
}

}  // namespace oga::kernels
