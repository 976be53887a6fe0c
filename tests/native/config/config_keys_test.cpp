#include "config/config_keys.h"

#include <gtest/gtest.h>

#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ErrorOf;
using testing::InfoLog;
using testing::SmallConfig;

TEST(ConfigKeys, FindsTheEngineKeyThatWasMeant) {
  const struct {
    const char* parent;
    const char* name;
    const char* nearest;
  } rows[] = {
      {"engine.dynamic_batching", "max_batch_sise", "engine.dynamic_batching.max_batch_size"},
      {"engine.dynamic_batching", "max_batch", "engine.dynamic_batching.max_batch_size"},
      {"engine.dynamic_batching", "blocksize", "engine.dynamic_batching.block_size"},
      {"engine.dynamic_batching", "number_blocks", "engine.dynamic_batching.num_blocks"},
      {"engine.dynamic_batching", "prefix_cache", "engine.dynamic_batching.prefix_caching"},
      {"engine.dynamic_batching", "MAX_WAIT_STEPS", "engine.dynamic_batching.max_wait_steps"},
      {"engine.static_batching", "max_batch_siez", "engine.static_batching.max_batch_size"},
      {"engine", "dynamic_batch", "engine.dynamic_batching"},
      {"engine", "block_size", "engine.dynamic_batching.block_size"},  // one level too high
  };
  for (const auto& row : rows) EXPECT_EQ(NearestEngineKey(row.parent, row.name), row.nearest) << row.name;
}

TEST(ConfigKeys, RefusesAnUnknownKeyAtEachLevelOfTheEngineSection) {
  const struct {
    const char* overlay;
    const char* message;
  } rows[] = {
      {R"({"engine": {"dynamic_batch": {}}})",
       "overlay, line 1: engine.dynamic_batch is not a known key; the nearest one is engine.dynamic_batching"},
      {"{\"engine\": {\"dynamic_batching\": {\n\"block_size\": 4,\n\"max_scheduled_token\": 7}}}",
       "overlay, line 3: engine.dynamic_batching.max_scheduled_token is not a known key; the nearest one is "
       "engine.dynamic_batching.max_scheduled_tokens"},
      {R"({"engine": {"static_batching": {"max_batchsize": 2}}})",
       "engine.static_batching.max_batchsize is not a known key; the nearest one is "
       "engine.static_batching.max_batch_size"},
      {R"({"engine": {"max_batch_size": 2}})",
       "engine.max_batch_size is not a known key; the nearest one is engine.dynamic_batching.max_batch_size"},
      {R"({"engine": {"dynamic_batching.block_size": 2}})", "engine['dynamic_batching.block_size'] is not a known key"},
      {R"({"engine": {"": null}})", "engine[''] is not a known key"},
      {R"({"engine": {"typo": null}})", "engine.typo is not a known key"},
  };
  for (const auto& row : rows) {
    const GenaiConfig config = SmallConfig();
    const Error error = ErrorOf([&] { config.WithOverlay(row.overlay); });
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
    EXPECT_CONTAINS(error.message(), row.message);
  }
}

TEST(ConfigKeys, AreComparedByteByByte) {
  const Error error =
      ErrorOf([] { SmallConfig().WithOverlay(R"({"engine": {"dynamic_batching": {"BLOCK_SIZE": 4}}})"); });
  EXPECT_CONTAINS(error.message(), "engine.dynamic_batching.BLOCK_SIZE is not a known key");
}

TEST(ConfigKeys, IgnoresUnknownKeysElsewhereWithOneLine) {
  InfoLog log;
  const GenaiConfig config = SmallConfig().WithOverlay(R"({
    "future": 1,
    "model": {"newer": {"deep": 1}, "decoder": {"ropes": [1], "inputs": {"extra": "x"}, "outputs": {"extra": 7},
              "session_options": {"odd": 1}, "sliding_window": {"odd": 1},
              "state_groups": [{"kind": "paged_kv", "layer_ids": [0, 1], "odd": 1}]}},
    "search": {"mirostat": 2}
  })");
  EXPECT_EQ(config.decoder().paged_layers, (std::vector<int32_t>{0, 1}));
  const auto lines = InfoLog::With("ignored unknown keys");
  ASSERT_EQ(lines.size(), 1u);
  for (const char* key : {"future (line 2)", "model.newer (line 3)", "model.decoder.ropes (line 3)",
                          "model.decoder.inputs.extra (line 3)", "model.decoder.outputs.extra (line 3)",
                          "model.decoder.session_options.odd (line 4)", "model.decoder.sliding_window.odd (line 4)",
                          "model.decoder.state_groups[0].odd (line 5)", "search.mirostat (line 6)"}) {
    EXPECT_CONTAINS(lines[0], key);
  }
  EXPECT_EQ(lines[0].find("deep"), std::string::npos) << "what is below an unknown key says nothing new";
}

TEST(ConfigKeys, SaysNothingAboutAConfigItKnowsWhole) {
  InfoLog log;
  SmallConfig();
  EXPECT_TRUE(InfoLog::lines().empty()) << InfoLog::lines().front();
}

TEST(ConfigKeys, AnOverlayDoesNotRepeatWhatTheFileSaid) {
  InfoLog log;
  const GenaiConfig config = GenaiConfig::FromText(
      R"({"later": 1, "model": {"type": "t", "vocab_size": 4, "context_length": 8, "decoder": {"filename": "m",
         "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1, "head_size": 1}},
         "engine": {"static_batching": {}}})",
      "/m");
  EXPECT_EQ(InfoLog::lines().size(), 2u);
  InfoLog::lines().clear();
  config.WithOverlay(R"({"search": {"top_k": 1}})");
  config.WithoutProviders();
  config.WithProvider("cpu");
  EXPECT_TRUE(InfoLog::lines().empty()) << InfoLog::lines().front();
}

}  // namespace
}  // namespace oga
