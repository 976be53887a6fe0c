// The product for AMX, over tiles in plain arithmetic: the bits that every variant with fused multiply-add gives.
#include <gtest/gtest.h>

#include "native/kernels/attention/paged_attention_case.h"
#include "native/kernels/product/nbits_case.h"

namespace oga::kernels {
namespace {

std::vector<NBitsSpec> Specs() {
  std::vector<NBitsSpec> specs;
  for (const int32_t bits : {4, 8}) {
    for (const Zeros zeros : {Zeros::kNone, Zeros::kPacked, Zeros::kFloat}) {
      NBitsSpec spec;
      spec.bits = bits;
      spec.zeros = zeros;
      spec.bias = bits == 8;
      spec.k = zeros == Zeros::kNone ? 600 : 75;  // several runs of units, or one that is cut
      spec.n = zeros == Zeros::kNone ? 33 : 64;
      spec.block_size = zeros == Zeros::kFloat ? 16 : zeros == Zeros::kPacked ? 32 : 128;
      specs.push_back(spec);
    }
  }
  return specs;
}

TEST(NBitsTiles, GiveTheBitsThatArePromisedForAnyNumberOfRows) {
  for (const NBitsSpec& spec : Specs()) {
    SCOPED_TRACE(spec.Describe());
    const NBitsCase matmul(spec, 600);
    const std::vector<float> wanted = matmul.Promised();
    for (const ProductWay& way : EmulatedProducts()) {
      for (const int64_t count : {1, 2, 15, 16, 17, 31, 32, 33, 48, 49, 65, 256, 257, 513, 600}) {
        const int64_t first = 600 - count;
        const std::vector<float> found = matmul.Run(way, first, count, OnFourThreads);
        ExpectSameBits(found, {wanted.begin() + first * spec.n, wanted.end()});
        if (HasFailure()) FAIL() << way.name << ", " << count << " rows";
      }
    }
  }
}

}  // namespace
}  // namespace oga::kernels
