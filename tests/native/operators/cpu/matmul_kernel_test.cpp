#include "operators/cpu/matmul_kernel.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/error.h"
#include "native/operators/cpu/product_case.h"
#include "operators/cpu/cpu_operators.h"

namespace oga::operators {
namespace {

CpuSettings In(CpuMatMul matmul, int threads = 2) {
  CpuSettings options;
  options.intra_op_threads = threads;
  options.matmul = matmul;
  options.has_half_products = true;
  return options;
}

ProductCase Case(const std::string& name) { return ProductCase("models/matmul/" + name); }

class MatMulNodes : public test::WithRuntime {
 protected:
  void TearDown() override { unsetenv("OGA_CPU_MATMUL"); }
};

class MatMulForms : public MatMulNodes, public testing::WithParamInterface<const char*> {
 protected:
  // The output and the activations are rounded too where they have 16 bits.
  bool IsNarrow() const { return std::set<std::string>{"bf16", "fp16"}.count(GetParam()) != 0; }
};

TEST_P(MatMulForms, AreTheProductInFloatAndInBfloat16) {
  const ProductCase product = Case(GetParam());
  EXPECT_LT(product.ErrorOf(product.Run(In(CpuMatMul::kFloat))), IsNarrow() ? 3e-3 : 1e-6);
  EXPECT_LT(product.ErrorOf(product.Run(In(CpuMatMul::kBfloat16))), 4e-3);
  EXPECT_LT(product.ErrorOf(product.Run(In(CpuMatMul::kAuto))), 4e-3);
}

TEST_P(MatMulForms, GiveARowTheSameBitsInAnyCompanyAndOnAnyThreads) {
  const ProductCase product = Case(GetParam());
  for (const CpuMatMul matmul : {CpuMatMul::kFloat, CpuMatMul::kBfloat16}) {
    const std::vector<float> together = product.Run(In(matmul));
    for (const int threads : {1, 3, 4}) {
      const ort::Session session(product.path(), CpuSessionOptions(In(matmul, threads)));
      for (int64_t count = 1; count <= ProductCase::kRows; ++count) {
        const std::vector<float> some = product.Run(session, ProductCase::kRows - count, count);
        EXPECT_TRUE(std::equal(some.begin(), some.end(), together.end() - count * product.n())) << count << " rows";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, MatMulForms,
                         testing::Values("matmul", "gemm", "added", "outliers", "one_column", "opaque", "own_bf16",
                                         "own_fp16", "bf16", "fp16"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(MatMulNodes, KeepBfloat16WeightsWholeInFloatAndRoundTheActivationsOtherwise) {
  const ProductCase product = Case("own_bf16");
  EXPECT_LT(product.ErrorOf(product.Run(In(CpuMatMul::kFloat))), 1e-6);
  const std::vector<float> automatic = product.Run(In(CpuMatMul::kAuto));
  EXPECT_GT(product.ErrorOf(automatic), 1e-4);
  EXPECT_EQ(automatic, product.Run(In(CpuMatMul::kBfloat16)));
  EXPECT_EQ(automatic, product.Run(In(CpuMatMul::kRuntime)));  // which has no kernel for it
}

TEST_F(MatMulNodes, AreNoWorseThanTheRuntimesQuantisedProductOfAccuracyLevel4) {
  const ProductCase product = Case("outliers"), quantised("models/matmul_nbits/eight_bit_outliers");
  setenv("OGA_CPU_MATMUL", "runtime", 1);
  const double runtime = quantised.ErrorOf(quantised.Run(CpuSettings{}));
  unsetenv("OGA_CPU_MATMUL");
  EXPECT_LE(product.ErrorOf(product.Run(In(CpuMatMul::kBfloat16))), runtime / 2);
}

class RuntimeForms : public MatMulNodes, public testing::WithParamInterface<const char*> {};

TEST_P(RuntimeForms, GoOnToTheRuntimesKernel) {
  const ProductCase product = Case(GetParam());
  const std::vector<float> wanted = product.Run(In(CpuMatMul::kRuntime));
  const std::vector<float> found = product.Run(In(CpuMatMul::kBfloat16));
  EXPECT_LT(product.ErrorOf(found), 1e-6);
  EXPECT_EQ(found.size(), wanted.size());
}

INSTANTIATE_TEST_SUITE_P(Every, RuntimeForms, testing::Values("computed", "scaled", "stacked", "vector"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(MatMulNodes, AcceptNoRows) {
  const ProductCase product = Case("gemm");
  EXPECT_TRUE(product.Run(ort::Session(product.path(), CpuSessionOptions(In(CpuMatMul::kBfloat16))), 0, 0).empty());
}

TEST_F(MatMulNodes, RefuseWhatNobodyComputes) {
  for (const auto& [name, part] :
       {std::pair{"computed", "input B is not a constant"}, std::pair{"scaled", "attribute alpha is 0.5"},
        std::pair{"bias", "input C has shape [1, 1]"}}) {
    try {
      const ort::Session session(test::DataPath(std::string("models/matmul/refused/") + name + ".onnx"),
                                 CpuSessionOptions({}));
      ADD_FAILURE() << name << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), StatusCode::kUnsupported) << error.message();
      EXPECT_EQ(error.message().rfind("Gemm node /mlp: ", 0), 0u) << error.message();
      EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
    }
  }
}

}  // namespace
}  // namespace oga::operators
