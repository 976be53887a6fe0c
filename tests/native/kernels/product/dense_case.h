// Builds products with float and 16-bit weights for the tests, and computes what they must give.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/product/packed_matmul.h"
#include "kernels/product/packed_weights.h"
#include "kernels/simd/cpu_isa.h"
#include "native/kernels/product/nbits_case.h"

namespace oga::kernels {

struct DenseSpec {
  int64_t k = 96;
  int64_t n = 40;
  FloatType type = FloatType::kFloat;
  DensePrecision precision = DensePrecision::kBfloat16;
  bool transposed = false;
  bool bias = false;
  float outliers = 1.0f;  // every 97th position of K has activations this many times larger, every 89th weights
  uint32_t seed = 1;

  std::string Describe() const;
};

// Those of ProductWays that know products of this precision.
std::vector<ProductWay> DenseWays(DensePrecision precision);

// The operator's inputs, in memory of exactly their size.
class DenseCase {
 public:
  DenseCase(const DenseSpec& spec, int64_t rows);

  DenseSource Source() const;

  // The output of rows [first, first + count), as one call.
  std::vector<float> Run(const ProductWay& way, int64_t first, int64_t count, const ParallelFor& parallel_for) const;
  std::vector<float> Run(const ProductWay& way) const;

  // Fails the test where `output`, of all rows, is further from the product in double precision than the roundings of
  // activations, weights and sums allow.
  void ExpectNear(const std::vector<float>& output) const;
  // The arithmetic that packed_matmul.h promises, spelled out one number at a time.
  std::vector<float> Promised() const;

  const DenseSpec spec;
  const int64_t rows;
  std::vector<float> activations, bias;
  std::vector<float> weights;  // [k, n]: what `stored` holds, exactly
  std::vector<uint8_t> stored;

 private:
  float Weight(int64_t k, int64_t column) const { return weights[static_cast<size_t>(k * spec.n + column)]; }
  float Activation(int64_t row, int64_t k) const { return activations[static_cast<size_t>(row * spec.k + k)]; }
};

}  // namespace oga::kernels
