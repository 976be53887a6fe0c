#include "operators/cpu/matmul_nbits_op.h"

#include <gtest/gtest.h>

#include "operators/cpu/cpu_operators.h"
#include "ort/session.h"
#include "support/test_data.h"

namespace oga::operators {
namespace {

using MatMulNBitsOps = test::WithRuntime;

TEST_F(MatMulNBitsOps, TellTheRuntimeTheShapeOfTheirOutput) {
  const ort::Session session(test::DataPath("models/matmul_nbits/plain.onnx"), CpuSessionOptions({}));
  EXPECT_EQ(ort::ShapeText(session.outputs()[0].dims), "[batch, rows, 72]");
}

}  // namespace
}  // namespace oga::operators
