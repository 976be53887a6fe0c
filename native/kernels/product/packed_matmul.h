// The product of float activations with packed weights: of 4 or 8 bits as com.microsoft::MatMulNBits has them, or in
// bfloat16 or float as MatMul and Gemm have them.
//
// One arithmetic for every instruction set, number of rows, thread and blocking, so that a row's bits never tell who
// shared the call:
//   1. An activation is rounded to bfloat16 (nearest, ties to even; a denormal is zero).
//   2. A weight is (code - zero) * scale in float, the product rounded once, then rounded to bfloat16 likewise; or the
//      bfloat16 that it is.
//   3. Over each 32 positions of K, the products of the even positions are summed by fused multiply-adds in order,
//      starting from zero, and those of the odd ones; then the two sums are added to one another and to the output.
//      With weights in float nothing is rounded to bfloat16, and the rest is the same.
//   4. Denormals are zero wherever they would be read or arise. The bias is added last.
// For bfloat16 that is what an AMX tile computes, by Intel's manual. The AVX-512 and AVX2 variants spell it out, with
// AVX512_BF16 two positions of a chain at a time; the portable one rounds products and sums separately and keeps
// denormals, so it agrees to a tolerance only. Which NaN a NaN is, is left open.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/parallel_for.h"
#include "kernels/product/packed_weights.h"
#include "kernels/simd/cpu_isa.h"

namespace oga::kernels {

struct PackedMatMulArgs {
  const float* activations = nullptr;  // [rows, k]
  int64_t rows = 0;
  const float* bias = nullptr;  // [n], or null
  float* output = nullptr;      // [rows, n]
  void* scratch = nullptr;      // PackedScratchBytes of it, at a multiple of 64
};

// How much memory a product of `rows` rows needs besides its arguments; bounded, however many the rows are.
size_t PackedScratchBytes(const PackedWeights& weights, int64_t rows);

// Computes the output by the variant that the weights were packed for, which this machine must be able to run. Work
// items use about 64 KiB of the stack of the thread that runs them; nothing is allocated.
void PackedMatMul(const PackedWeights& weights, const PackedMatMulArgs& args, const ParallelFor& parallel_for);

// The same by the pieces of `variant`, which reads weights in the order of codes that these have.
struct PackedVariant;
void PackedMatMul(const PackedVariant& variant, const PackedWeights& weights, const PackedMatMulArgs& args,
                  const ParallelFor& parallel_for);

}  // namespace oga::kernels
