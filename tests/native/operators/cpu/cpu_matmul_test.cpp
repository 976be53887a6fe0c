#include "operators/cpu/cpu_matmul.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace oga::operators {
namespace {

TEST(CpuMatMulChoice, IsTheEnvironmentsOrElseTheConfigs) {
  EXPECT_EQ(ResolveCpuMatMul(nullptr, CpuMatMul::kFloat), CpuMatMul::kFloat);
  EXPECT_EQ(ResolveCpuMatMul("", CpuMatMul::kBfloat16), CpuMatMul::kBfloat16);
  EXPECT_EQ(ResolveCpuMatMul("auto", CpuMatMul::kBfloat16), CpuMatMul::kAuto);
  EXPECT_EQ(ResolveCpuMatMul("fp32", CpuMatMul::kAuto), CpuMatMul::kFloat);
  EXPECT_EQ(ResolveCpuMatMul("bf16", CpuMatMul::kAuto), CpuMatMul::kBfloat16);
  EXPECT_EQ(ResolveCpuMatMul("runtime", CpuMatMul::kAuto), CpuMatMul::kRuntime);
  EXPECT_EQ(ParseCpuMatMul("runtime"), std::nullopt);
  try {
    ResolveCpuMatMul("mkl", CpuMatMul::kAuto);
    FAIL() << "an unknown name was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(error.message(),
              "OGA_CPU_MATMUL is \"mkl\", which is not one of: auto, fp32, bf16, runtime; unset it to use what the "
              "model's config says");
  }
}

}  // namespace
}  // namespace oga::operators
