// Builds products with quantised weights for the tests, and computes what they must give.
#pragma once

#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "kernels/product/packed_matmul.h"
#include "kernels/product/packed_variant.h"
#include "kernels/product/packed_weights.h"
#include "kernels/simd/cpu_isa.h"

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

// The operator's inputs, in memory of exactly their size.
class NBitsCase {
 public:
  NBitsCase(const NBitsSpec& spec, int64_t rows);

  NBitsSource Source() const;

  // The output of rows [first, first + count), as one call.
  std::vector<float> Run(CpuIsa isa, int64_t first, int64_t count, const ParallelFor& parallel_for) const;
  std::vector<float> Run(CpuIsa isa) const;
  // By a variant of the test's own, over weights packed for `isa`.
  std::vector<float> Run(const PackedVariant& variant, CpuIsa isa, int64_t first, int64_t count,
                         const ParallelFor& parallel_for) const;

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

// Memory at a multiple of 64, of exactly the size asked for, so that a sanitizer sees what lies behind it.
class AlignedBytes {
 public:
  explicit AlignedBytes(size_t bytes) : data_(::operator new (bytes, std::align_val_t{64})) {}
  ~AlignedBytes() { ::operator delete (data_, std::align_val_t{64}); }
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  void* data() const { return data_; }

 private:
  void* data_;
};

// The output of `rows` rows, as one call of `matmul`. `bias` may be null.
std::vector<float> RunPacked(const PackedWeights& weights, const float* activations, int64_t rows, const float* bias,
                             const std::function<void(const PackedMatMulArgs& args)>& matmul);

#if defined(__x86_64__)
// The product for AMX over tiles in plain arithmetic; for CPUs with AVX512_BF16.
extern const PackedVariant kPackedEmulatedTiles;
#endif

// Fails the test at the first element whose bits differ.
void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace oga::kernels
