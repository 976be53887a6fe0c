#include "model/onnx_model.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "model/onnx_executor.h"
#include "native/config/config_samples.h"
#include "support/test_data.h"

namespace oga {
namespace {

namespace fs = std::filesystem;
using testing::ErrorOf;

GenaiConfig Config(const std::string& model) { return GenaiConfig::FromFolder(test::DataPath("models/" + model)); }

using OnnxModels = test::WithRuntime;

TEST_F(OnnxModels, TellWhatAnEngineNeedsToKnow) {
  const auto model = LoadOnnxModel(Config("separate"));
  EXPECT_EQ(model->type(), "llama");
  EXPECT_EQ(model->device_type(), test::DefaultDevice());
  EXPECT_EQ(model->traits().vocab_size, 61);
  EXPECT_EQ(model->traits().eos_token_ids, std::vector<TokenId>{2});
  const EngineLimits limits = model->ResolveLimits().limits;
  EXPECT_EQ(limits.num_blocks, 24u);
  EXPECT_EQ(limits.block_size_slots, 4u);
  EXPECT_EQ(limits.max_batch_size, 4u);
  EXPECT_EQ(limits.context_length_tokens, 64u);
}

TEST_F(OnnxModels, SizeTheirCacheByTheMemoryThatIsThere) {
  const auto model =
      LoadOnnxModel(Config("separate").WithOverlay(R"({"engine": {"dynamic_batching": {"num_blocks": null}}})"));
  SizedLimits sized = model->ResolveLimits();
  // 16 resident requests of 63 stored tokens each, in blocks of 4.
  EXPECT_EQ(sized.limits.num_blocks, 16u * 16);
  EXPECT_NO_THROW(model->CreateExecutor(std::move(sized)));
}

TEST_F(OnnxModels, RefuseAPlainExport) {
  const Error error = ErrorOf([] { LoadOnnxModel(Config("plain")); });
  EXPECT_EQ(error.code(), StatusCode::kUnsupported);
  EXPECT_CONTAINS(error.message(), "models/plain/model.onnx is a plain export");
  EXPECT_CONTAINS(error.message(), "oga convert");
}

TEST_F(OnnxModels, RefuseInputsThisBuildDoesNotFill) {
  const Error windowed = ErrorOf([] { LoadOnnxModel(Config("block_table_windowed")); });
  EXPECT_EQ(windowed.code(), StatusCode::kUnsupported);
  EXPECT_CONTAINS(windowed.message(), "'block_table_windowed'");
  const Error mystery = ErrorOf([] { LoadOnnxModel(Config("mystery")); });
  EXPECT_EQ(mystery.code(), StatusCode::kModelError);
  EXPECT_CONTAINS(mystery.message(), "'mystery'");
}

TEST_F(OnnxModels, NameTheGraphThatIsNotThere) {
  const GenaiConfig config = Config("separate").WithOverlay(R"({"model": {"decoder": {"filename": "gone.onnx"}}})");
  const Error error = ErrorOf([&] { LoadOnnxModel(config); });
  EXPECT_EQ(error.code(), StatusCode::kNotFound);
  EXPECT_CONTAINS(error.message(), "models/separate/gone.onnx");
}

TEST_F(OnnxModels, NameANumberOfThreadsThatMakesNoSense) {
  ASSERT_EQ(setenv("OGA_NUM_THREADS", "many", 1), 0);
  const Error error = ErrorOf([] { LoadOnnxModel(Config("separate")); });
  ASSERT_EQ(unsetenv("OGA_NUM_THREADS"), 0);
  EXPECT_EQ(error.code(), StatusCode::kInvalidArgument) << error.message();
  EXPECT_CONTAINS(error.message(), "OGA_NUM_THREADS is \"many\"");
}

TEST_F(OnnxModels, RefuseAPoolThatTheGraphFixesOtherwise) {
  DecoderManifest manifest;
  manifest.fixed_block_size = 8;
  EngineLimits limits;
  limits.block_size_slots = 16;
  const Error error = ErrorOf([&] { OnnxExecutor(nullptr, manifest, {limits, {}}, Ledger::Cpu()); });
  EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
  EXPECT_CONTAINS(error.message(), "block size of 8");
  EXPECT_CONTAINS(error.message(), "set engine.dynamic_batching.block_size to 8");
}

// The whole folder moves with its name, whatever the bytes.
TEST_F(OnnxModels, LoadFromAnyFolder) {
  const fs::path root = fs::path(::testing::TempDir()) / "oga_model_paths";
  for (const char* name : {"a b", "mod\xC3\xA8le", "\xF0\x9F\x99\x82", "#%&';$()", "latin\xE9"}) {
    fs::remove_all(root);
    fs::create_directories(root);
    fs::copy(test::DataPath("models/external"), root / name, fs::copy_options::recursive);
    EXPECT_NO_THROW(LoadOnnxModel(GenaiConfig::FromFolder((root / name).string()))) << name;
    EXPECT_NO_THROW(LoadOnnxModel(GenaiConfig::FromFolder((root / name).string() + "/"))) << name;
  }
  fs::remove_all(root);
}

}  // namespace
}  // namespace oga
