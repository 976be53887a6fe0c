// Builds products with quantised weights for the tests, and computes what they must give.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "kernels/parallel_for.h"
#include "kernels/product/packed_matmul.h"
#include "kernels/product/packed_variant.h"
#include "kernels/product/packed_weights.h"
#include "kernels/simd/cpu_isa.h"
#include "native/kernels/poison.h"

namespace oga::kernels {

enum class Zeros { kNone, kPacked, kFloat };

struct NBitsSpec {
  int64_t k = 96;
  int64_t n = 40;
  int32_t bits = 4;
  int32_t block_size = 32;
  Zeros zeros = Zeros::kNone;
  bool bias = false;
  float scale_spread = 4.0f;  // columns' scales differ by up to this factor
  float outliers = 1.0f;      // every 97th position of K has activations this many times larger
  uint32_t seed = 1;

  std::string Describe() const;
};

// Every variant this machine runs.
std::vector<CpuIsa> NBitsIsas();

// A way to compute a product: by the variant for an instruction set, or by one of the test's own.
struct ProductWay {
  ProductWay(CpuIsa isa) : name(CpuIsaName(isa)), isa(isa) {}
  ProductWay(std::string name, CpuIsa isa, const PackedVariant* variant)
      : name(std::move(name)), isa(isa), variant(variant) {}
  void Multiply(const PackedWeights& weights, const PackedMatMulArgs& args, const ParallelFor& parallel_for) const;

  std::string name;
  CpuIsa isa;                              // that weights are packed for
  const PackedVariant* variant = nullptr;  // null is the one for `isa`
};

// The product for AMX over tiles in plain arithmetic: with instructions of AVX512_BF16 around them where the CPU has
// these, and without on every CPU. Not for weights in float, whose products know no tiles.
std::vector<ProductWay> EmulatedProducts();
// These, and every variant this machine runs.
std::vector<ProductWay> ProductWays();

// The operator's inputs, in memory of exactly their size.
class NBitsCase {
 public:
  NBitsCase(const NBitsSpec& spec, int64_t rows);

  NBitsSource Source() const;

  // The output of rows [first, first + count), as one call.
  std::vector<float> Run(const ProductWay& way, int64_t first, int64_t count, const ParallelFor& parallel_for) const;
  std::vector<float> Run(const ProductWay& way) const;

  // Fails the test where `output`, of all rows, is further from the product in double precision than the roundings of
  // activations, scales, weights and sums allow.
  void ExpectNear(const std::vector<float>& output) const;
  // |output - product| / |product| over everything.
  double RelativeError(const std::vector<float>& output) const;
  // The arithmetic that packed_matmul.h promises, spelled out one number at a time. For scales that are halves, and for
  // numbers and products far from denormals.
  std::vector<float> Promised() const;

  const NBitsSpec spec;
  const int64_t rows;
  const int64_t blocks;
  std::vector<float> activations, scales, float_zeros, bias;
  std::vector<uint8_t> codes, packed_zeros;

 private:
  double Zero(int64_t column, int64_t block) const;
  int32_t Code(int64_t column, int64_t k) const;
};

// Memory at a multiple of 64, of exactly the size asked for, so that a sanitizer sees what lies behind it. Poisoned.
class AlignedBytes {
 public:
  explicit AlignedBytes(size_t bytes) : data_(::operator new (bytes, std::align_val_t{64})) {
    std::memset(data_, kPoison, bytes);
  }
  ~AlignedBytes() { ::operator delete (data_, std::align_val_t{64}); }
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  void* data() const { return data_; }

 private:
  void* data_;
};

// The output of `rows` rows, as one call. `bias` may be null. Output, scratch and stack begin as NaNs.
std::vector<float> RunPacked(const ProductWay& way, const PackedWeights& weights, const float* activations,
                             int64_t rows, const float* bias, const ParallelFor& parallel_for);

// All paths of the variants: few rows and more, up to one and two tiles and more, pieces of a pass and passes.
inline constexpr int64_t kRowsOfEveryPath[] = {1, 2, 3, 4, 5, 7, 16, 17, 32, 33, 40, 64, 65, 127, 257, 513};

// Fails the test unless every row is the bias, or zeros where that is empty: the product of no depth.
void ExpectBiasInEveryRow(const std::vector<float>& output, int64_t rows, int64_t n, const std::vector<float>& bias);

// Fails the test at the first element whose bits differ.
void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace oga::kernels
