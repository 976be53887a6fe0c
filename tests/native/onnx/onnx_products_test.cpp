#include "onnx/onnx_products.h"

#include <gtest/gtest.h>

#include "native/config/config_samples.h"
#include "support/test_data.h"

namespace oga {
namespace {

bool IsFound(const std::string& graph) { return HasHalfProducts(test::DataPath("models/" + graph + ".onnx")); }

TEST(HalfProducts, AreFoundInMatMulAndGemm) {
  EXPECT_TRUE(IsFound("matmul/bf16"));
  EXPECT_TRUE(IsFound("matmul/fp16"));
}

TEST(HalfProducts, AreNotFloatWeightsNorThoseOfOtherOperators) {
  for (const char* graph : {"matmul/matmul", "matmul/gemm", "matmul/computed", "matmul/own_bf16", "matmul_nbits/plain",
                            "packed_float16/model", "external/model"}) {
    EXPECT_FALSE(IsFound(graph)) << graph;
  }
}

TEST(HalfProducts, NameAGraphThatCannotBeRead) {
  const Error error = testing::ErrorOf([] { HasHalfProducts("/nowhere/model.onnx"); });
  EXPECT_EQ(error.code(), StatusCode::kNotFound);
  EXPECT_CONTAINS(error.message(), "/nowhere/model.onnx");
}

}  // namespace
}  // namespace oga
