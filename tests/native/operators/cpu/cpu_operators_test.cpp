// Whose kernel computes a product, as the config and the environment say.
#include "operators/cpu/cpu_operators.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "native/operators/cpu/product_case.h"
#include "ort/session.h"
#include "support/test_data.h"

namespace oga::operators {
namespace {

CpuSettings In(CpuMatMul matmul) {
  CpuSettings settings;
  settings.intra_op_threads = 2;
  settings.matmul = matmul;
  settings.has_half_products = true;
  return settings;
}

class OperatorsOfASession : public test::WithRuntime {
 protected:
  void TearDown() override { unsetenv("OGA_CPU_MATMUL"); }
};

TEST_F(OperatorsOfASession, MultiplyAsTheConfigAndTheEnvironmentSay) {
  const ProductCase product("models/matmul/gemm");
  const auto error = [&](CpuMatMul matmul) { return product.ErrorOf(product.Run(In(matmul))); };
  for (const CpuMatMul matmul : {CpuMatMul::kAuto, CpuMatMul::kFloat, CpuMatMul::kRuntime})
    EXPECT_LT(error(matmul), 1e-6);
  EXPECT_GT(error(CpuMatMul::kBfloat16), 1e-4);
  setenv("OGA_CPU_MATMUL", "fp32", 1);
  EXPECT_LT(error(CpuMatMul::kBfloat16), 1e-6);
  setenv("OGA_CPU_MATMUL", "bf16", 1);
  EXPECT_GT(error(CpuMatMul::kFloat), 1e-4);
}

TEST_F(OperatorsOfASession, LeaveProductsOfFloatsToTheRuntimeUnlessTheyAreToBeNarrower) {
  const ProductCase product("models/matmul/gemm");
  const auto run = [&](CpuMatMul matmul) { return product.Run({.intra_op_threads = 2, .matmul = matmul}); };
  const std::vector<float> runtime = run(CpuMatMul::kRuntime);
  EXPECT_EQ(run(CpuMatMul::kAuto), runtime);
  EXPECT_EQ(run(CpuMatMul::kFloat), runtime);
  EXPECT_GT(product.ErrorOf(run(CpuMatMul::kBfloat16)), 1e-4);
}

class GatedProducts : public OperatorsOfASession, public testing::WithParamInterface<const char*> {};

TEST_P(GatedProducts, StayOursWhereTheRuntimesProductsAreAskedFor) {
  const ProductCase product(std::string("models/matmul_nbits/") + GetParam());
  const std::vector<float> ours = product.Run({.intra_op_threads = 2});
  setenv("OGA_CPU_MATMUL", "runtime", 1);
  EXPECT_EQ(product.Run({.intra_op_threads = 2}), ours);
}

INSTANTIATE_TEST_SUITE_P(Every, GatedProducts, testing::Values("gated", "gated_eight_bits", "gated_computed"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(OperatorsOfASession, AreNotMadeForAChoiceThatNobodyKnows) {
  setenv("OGA_CPU_MATMUL", "mkl", 1);
  try {
    CpuSessionOptions({});
    FAIL() << "an unknown choice was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(error.field(), "OGA_CPU_MATMUL");
  }
}

TEST_F(OperatorsOfASession, HaveTheThreadsThatAreAskedFor) {
  EXPECT_EQ(CpuSessionOptions({.intra_op_threads = 3}).threads, 3);
}

}  // namespace
}  // namespace oga::operators
