#include "operators/cpu/paged_attention_op.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "operators/cpu/cpu_operators.h"
#include "ort/library.h"
#include "ort/session.h"
#include "support/test_data.h"

namespace oga::operators {
namespace {

std::string Case(const std::string& name) { return test::DataPath("models/operators/" + name + ".onnx"); }

using PagedAttentionOps = test::WithRuntime;

// The runtime would read behind the end of the list of outputs.
TEST_F(PagedAttentionOps, WithoutOutputsForTheCachesNeverReachShapeInference) {
  if (!ort::LoadedLibrary().IsAtLeast(1, 24)) {
    EXPECT_NO_THROW(ort::Session(Case("no_cache_outputs"), CpuSessionOptions({})));  // that release runs without it
    return;
  }
  try {
    ort::Session(Case("no_cache_outputs"), CpuSessionOptions({}));
    FAIL() << "a node of one output was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kModelError);
    EXPECT_NE(error.message().find("/attn"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace oga::operators
