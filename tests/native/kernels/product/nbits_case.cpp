#include "native/kernels/product/nbits_case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "kernels/simd/float16.h"
#include "native/kernels/attention/paged_attention_case.h"

namespace oga::kernels {

#if defined(__x86_64__)
extern const PackedVariant kPackedEmulatedTiles;
extern const PackedVariant kPackedEmulatedEverywhere;
#endif

namespace {

float RoundToBfloat16(float value) {
  const uint32_t bits = BitsFromFloat(value);
  return FloatFromBits((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}

}  // namespace

std::string NBitsSpec::Describe() const {
  const char* const kinds[] = {"no zeros", "packed zeros", "float zeros"};
  return "K " + std::to_string(k) + ", N " + std::to_string(n) + ", " + std::to_string(bits) + " bits, blocks of " +
         std::to_string(block_size) + ", " + kinds[static_cast<int>(zeros)] + (bias ? ", bias" : "");
}

std::vector<CpuIsa> NBitsIsas() {
  std::vector<CpuIsa> isas;
  for (const CpuIsa isa : {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512, CpuIsa::kAvx512Bf16, CpuIsa::kAmx}) {
    if (isa <= BestCpuIsa()) isas.push_back(isa);
  }
  return isas;
}

void ProductWay::Multiply(const PackedWeights& weights, const PackedMatMulArgs& args,
                          const ParallelFor& parallel_for) const {
  if (variant == nullptr) return PackedMatMul(weights, args, parallel_for);
  PackedMatMul(*variant, weights, args, parallel_for);
}

std::vector<ProductWay> EmulatedProducts() {
  std::vector<ProductWay> ways;
#if defined(__x86_64__)
  ways.emplace_back("tiles in plain arithmetic", CpuIsa::kAmx, &kPackedEmulatedEverywhere);
  if (BestCpuIsa() >= CpuIsa::kAvx512Bf16) {
    ways.emplace_back("tiles in plain arithmetic under avx512_bf16", CpuIsa::kAmx, &kPackedEmulatedTiles);
  }
#endif
  return ways;
}

std::vector<ProductWay> ProductWays() {
  std::vector<ProductWay> ways = EmulatedProducts();
  for (const CpuIsa isa : NBitsIsas()) ways.emplace_back(isa);
  return ways;
}

NBitsCase::NBitsCase(const NBitsSpec& spec, int64_t rows)
    : spec(spec), rows(rows), blocks((spec.k + spec.block_size - 1) / spec.block_size) {
  std::mt19937 random(spec.seed);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::normal_distribution<float> normal;
  activations.resize(static_cast<size_t>(rows * spec.k));
  for (size_t i = 0; i < activations.size(); ++i) {
    activations[i] = normal(random) * (i % static_cast<size_t>(spec.k) % 97 == 5 ? spec.outliers : 1.0f);
  }
  float_zeros.reserve(1);  // zeros of no blocks are given too
  packed_zeros.reserve(1);
  codes.resize(static_cast<size_t>(spec.n * blocks * spec.block_size * spec.bits / 8));
  for (uint8_t& code : codes) code = static_cast<uint8_t>(random());
  for (int64_t column = 0; column < spec.n; ++column) {
    const float column_scale = std::pow(spec.scale_spread, uniform(random)) * 0.01f;
    for (int64_t block = 0; block < blocks; ++block) {
      scales.push_back(ToFloat(ToFloat16(column_scale * (1.2f + uniform(random)))));
      if (spec.zeros == Zeros::kFloat) float_zeros.push_back((1.0f + uniform(random)) * (spec.bits == 4 ? 8 : 128));
    }
  }
  if (spec.zeros == Zeros::kPacked) {
    packed_zeros.resize(static_cast<size_t>(spec.n * ((blocks * spec.bits + 7) / 8)));
    for (uint8_t& zero : packed_zeros) zero = static_cast<uint8_t>(random());
  }
  for (int64_t column = 0; spec.bias && column < spec.n; ++column) bias.push_back(uniform(random));
}

NBitsSource NBitsCase::Source() const {
  NBitsSource source;
  source.k = spec.k;
  source.n = spec.n;
  source.bits = spec.bits;
  source.block_size = spec.block_size;
  source.codes = codes.data();
  source.scales = scales.data();
  if (spec.zeros == Zeros::kPacked) source.packed_zeros = packed_zeros.data();
  if (spec.zeros == Zeros::kFloat) source.float_zeros = float_zeros.data();
  return source;
}

std::vector<float> RunPacked(const ProductWay& way, const PackedWeights& weights, const float* activations,
                             int64_t rows, const float* bias, const ParallelFor& parallel_for) {
  const AlignedBytes scratch(PackedScratchBytes(weights, rows));
  std::vector<float> output(static_cast<size_t>(rows * weights.layout().n), std::numeric_limits<float>::quiet_NaN());
  PackedMatMulArgs args;
  args.activations = activations;
  args.rows = rows;
  args.bias = bias;
  args.output = output.data();
  args.scratch = scratch.data();
  PoisonStack();
  way.Multiply(weights, args, parallel_for);
  return output;
}

std::vector<float> NBitsCase::Run(const ProductWay& way, int64_t first, int64_t count,
                                  const ParallelFor& parallel_for) const {
  WeightArena arena;
  const PackedWeights weights(way.isa, Source(), &arena, OnFourThreads);
  return RunPacked(way, weights, activations.data() + first * spec.k, count, spec.bias ? bias.data() : nullptr,
                   parallel_for);
}

std::vector<float> NBitsCase::Run(const ProductWay& way) const { return Run(way, 0, rows, Serially); }

int32_t NBitsCase::Code(int64_t column, int64_t k) const {
  const int64_t index = column * blocks * spec.block_size + k;
  if (spec.bits == 8) return codes[static_cast<size_t>(index)];
  return codes[static_cast<size_t>(index / 2)] >> (index % 2 * 4) & 15;
}

double NBitsCase::Zero(int64_t column, int64_t block) const {
  if (spec.zeros == Zeros::kNone) return spec.bits == 4 ? 8 : 128;
  if (spec.zeros == Zeros::kFloat) return float_zeros[static_cast<size_t>(column * blocks + block)];
  const int64_t row = column * ((blocks * spec.bits + 7) / 8);
  if (spec.bits == 8) return packed_zeros[static_cast<size_t>(row + block)];
  return packed_zeros[static_cast<size_t>(row + block / 2)] >> (block % 2 * 4) & 15;
}

void NBitsCase::ExpectNear(const std::vector<float>& output) const {
  ASSERT_EQ(output.size(), static_cast<size_t>(rows * spec.n));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < spec.n; ++column) {
      double sum = spec.bias ? bias[static_cast<size_t>(column)] : 0.0, size = std::fabs(sum);
      for (int64_t k = 0; k < spec.k; ++k) {
        const int64_t block = k / spec.block_size;
        const double product = (Code(column, k) - Zero(column, block)) *
                               scales[static_cast<size_t>(column * blocks + block)] *
                               static_cast<double>(activations[static_cast<size_t>(row * spec.k + k)]);
        sum += product;
        size += std::fabs(product);
      }
      // Two roundings to 8 bits, a scale's to 11, and those of the sums.
      const double slack = size * (2 * 0x1.01p-8 + 0x1p-11 + static_cast<double>(spec.k + 4) * 0x1p-24) + 1e-30;
      const float found = output[static_cast<size_t>(row * spec.n + column)];
      ASSERT_NEAR(found, sum, slack) << "row " << row << ", column " << column;
    }
  }
}

double NBitsCase::RelativeError(const std::vector<float>& output) const {
  double wrong = 0, right = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < spec.n; ++column) {
      double sum = spec.bias ? bias[static_cast<size_t>(column)] : 0.0;
      for (int64_t k = 0; k < spec.k; ++k) {
        const int64_t block = k / spec.block_size;
        sum += (Code(column, k) - Zero(column, block)) * scales[static_cast<size_t>(column * blocks + block)] *
               static_cast<double>(activations[static_cast<size_t>(row * spec.k + k)]);
      }
      const double difference = output[static_cast<size_t>(row * spec.n + column)] - sum;
      wrong += difference * difference;
      right += sum * sum;
    }
  }
  return std::sqrt(wrong / right);
}

std::vector<float> NBitsCase::Promised() const {
  std::vector<float> output;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < spec.n; ++column) {
      float total = 0.0f;
      for (int64_t unit = 0; unit < spec.k; unit += 32) {
        float chains[2] = {0.0f, 0.0f};
        for (int64_t k = unit; k < std::min(unit + 32, spec.k); ++k) {
          const int64_t block = k / spec.block_size;
          const float code = static_cast<float>(Code(column, k)) - static_cast<float>(Zero(column, block));
          const float weight = RoundToBfloat16(code * scales[static_cast<size_t>(column * blocks + block)]);
          const float activation = RoundToBfloat16(activations[static_cast<size_t>(row * spec.k + k)]);
          chains[k % 2] = std::fma(activation, weight, chains[k % 2]);
        }
        total += chains[0] + chains[1];
      }
      output.push_back(spec.bias ? total + bias[static_cast<size_t>(column)] : total);
    }
  }
  return output;
}

void ExpectBiasInEveryRow(const std::vector<float>& output, int64_t rows, int64_t n, const std::vector<float>& bias) {
  const std::vector<float> zeros(static_cast<size_t>(n));
  std::vector<float> wanted;
  for (int64_t row = 0; row < rows; ++row) {
    const std::vector<float>& values = bias.empty() ? zeros : bias;
    wanted.insert(wanted.end(), values.begin(), values.end());
  }
  ExpectSameBits(output, wanted);
}

void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(BitsFromFloat(a[i]), BitsFromFloat(b[i])) << "element " << i << ": " << a[i] << " and " << b[i];
  }
}

}  // namespace oga::kernels
