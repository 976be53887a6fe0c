#include "operators/cpu/matmul_op.h"

#include <gtest/gtest.h>

#include "operators/cpu/cpu_operators.h"
#include "ort/session.h"
#include "support/test_data.h"

namespace oga::operators {
namespace {

using MatMulOps = test::WithRuntime;

TEST_F(MatMulOps, TellTheRuntimeTheShapeOfTheirOutput) {
  const auto shape = [](const char* name) {
    const ort::Session session(test::DataPath(std::string("models/matmul/") + name + ".onnx"),
                               CpuSessionOptions({.matmul = CpuMatMul::kBfloat16, .has_half_products = true}));
    return ort::ShapeText(session.outputs()[0].dims);
  };
  EXPECT_EQ(shape("matmul"), "[batch, rows, 72]");
  EXPECT_EQ(shape("one_column"), "[batch, 1, rows, 1]");
  EXPECT_EQ(shape("gemm"), "[rows, 37]");
  EXPECT_EQ(shape("own_fp16"), "[rows, 72]");
}

}  // namespace
}  // namespace oga::operators
