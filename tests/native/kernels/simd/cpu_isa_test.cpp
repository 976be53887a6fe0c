#include "kernels/simd/cpu_isa.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/error.h"

namespace oga::kernels {
namespace {

Error Refusal(const char* requested, CpuIsa best) {
  try {
    ResolveCpuIsa(requested, best);
  } catch (const Error& error) {
    return error;
  }
  return Error(StatusCode::kOk, "nothing was thrown");
}

TEST(CpuIsa, TakesTheBestWhenNothingIsAsked) {
  EXPECT_EQ(ResolveCpuIsa(nullptr, CpuIsa::kAvx2), CpuIsa::kAvx2);
  EXPECT_EQ(ResolveCpuIsa("", CpuIsa::kAvx512), CpuIsa::kAvx512);
}

TEST(CpuIsa, TakesWhatIsAskedWhenTheMachineRunsIt) {
  EXPECT_EQ(ResolveCpuIsa("portable", CpuIsa::kAvx512), CpuIsa::kPortable);
  EXPECT_EQ(ResolveCpuIsa("avx2", CpuIsa::kAvx512), CpuIsa::kAvx2);
  EXPECT_EQ(ResolveCpuIsa("avx512", CpuIsa::kAmx), CpuIsa::kAvx512);
  EXPECT_EQ(ResolveCpuIsa("avx512_bf16", CpuIsa::kAmx), CpuIsa::kAvx512Bf16);
  EXPECT_EQ(ResolveCpuIsa("amx", CpuIsa::kAmx), CpuIsa::kAmx);
}

TEST(CpuIsa, RefusesAnUnknownNameAndListsTheChoices) {
  const Error error = Refusal("AVX2", CpuIsa::kAvx2);
  EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(
      error.message(),
      "OGA_CPU_ISA is \"AVX2\", which is not one of: portable, avx2, avx512, avx512_bf16, amx; unset it to use the "
      "best this machine runs (avx2)");
}

TEST(CpuIsa, RefusesAVariantTheMachineLacksAndListsWhatItHas) {
  const Error error = Refusal("avx512", CpuIsa::kAvx2);
  EXPECT_EQ(error.code(), StatusCode::kUnsupported);
  EXPECT_EQ(error.message(),
            "OGA_CPU_ISA is avx512, but this machine runs only: portable, avx2; name one of these or unset it");
}

TEST(CpuIsa, SelectsWhatTheEnvironmentAsksOfThisMachine) {
  EXPECT_EQ(SelectedCpuIsa(), ResolveCpuIsa(std::getenv("OGA_CPU_ISA"), BestCpuIsa()));
}

}  // namespace
}  // namespace oga::kernels
