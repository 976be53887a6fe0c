// The limits of the engine section.
#include <gtest/gtest.h>

#include "config/genai_config.h"
#include "native/config/config_refusals.h"
#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ExpectRefused;
using testing::Fingerprint;
using testing::SmallConfig;
using testing::WrongValue;

// C7: the peer takes an empty section for static batching.
TEST(EngineSection, MeansDynamicBatchingWithDefaultsWhenItIsEmpty) {
  const std::string without = Fingerprint(SmallConfig());
  for (const char* overlay : {R"({"engine": {}})", R"({"engine": {"dynamic_batching": {}}})", R"({"engine": null})",
                              R"({"engine": {"dynamic_batching": null, "static_batching": null}})"}) {
    EXPECT_EQ(Fingerprint(SmallConfig().WithOverlay(overlay)), without) << overlay;
  }
}

TEST(EngineSection, TakesTheBorderOfEachLimit) {
  const DynamicBatchingConfig batching = SmallConfig()
                                             .WithOverlay(R"({"engine": {"dynamic_batching": {"block_size": 65536,
      "num_blocks": 2147483647, "max_batch_size": 65536, "max_scheduled_tokens": 16777216,
      "max_resident_requests": 1048576, "max_wait_steps": 1000000, "gpu_utilization_factor": 1}}})")
                                             .dynamic_batching();
  EXPECT_EQ(batching.block_size, 65536u);
  EXPECT_EQ(batching.num_blocks, 2147483647u);
  EXPECT_EQ(batching.max_batch_size, 65536u);
  EXPECT_EQ(batching.max_scheduled_tokens, 16777216u);
  EXPECT_EQ(batching.max_resident_requests, 1048576u);
  EXPECT_EQ(batching.max_wait_steps, 1000000u);
  EXPECT_EQ(batching.gpu_utilization_factor, 1.0);
  EXPECT_NO_THROW(SmallConfig().WithOverlay(R"({"engine": {"dynamic_batching": {"block_size": 1, "num_blocks": 1,
      "max_batch_size": 1, "max_scheduled_tokens": 1, "max_resident_requests": 1, "max_wait_steps": 1}}})"));
}

TEST(EngineSection, TellsPrefixCachingThatIsOffFromOneThatIsLeftOut) {
  const auto prefix_caching = [](const char* value) {
    return SmallConfig()
        .WithOverlay(Message(R"({"engine": {"dynamic_batching": {"prefix_caching": )", value, "}}}"))
        .dynamic_batching()
        .prefix_caching;
  };
  EXPECT_EQ(prefix_caching("true"), true);
  EXPECT_EQ(prefix_caching("false"), false);
  EXPECT_EQ(prefix_caching("null"), std::nullopt);
}

TEST(EngineSection, RefusesLimitsBeyondTheirRanges) {
  const WrongValue rows[] = {
      {R"({"engine": []})", "engine", "is an empty list", "an object"},
      {R"({"engine": {"dynamic_batching": true}})", "engine.dynamic_batching", "is true", "an object"},
      {R"({"engine": {"static_batching": 4}})", "engine.static_batching", "is 4", "an object"},
      {R"({"engine": {"static_batching": {"max_batch_size": 0}}})", "engine.static_batching.max_batch_size", "is 0",
       "from 1 to 65536"},
      {R"({"engine": {"dynamic_batching": {"gpu_utilization_factor": 0}}})",
       "engine.dynamic_batching.gpu_utilization_factor", "is 0", "greater than 0 and not greater than 1"},
      {R"({"engine": {"dynamic_batching": {"gpu_utilization_factor": 1.5}}})",
       "engine.dynamic_batching.gpu_utilization_factor", "is 1.5", "greater than 0 and not greater than 1"},
      {R"({"engine": {"dynamic_batching": {"prefix_caching": "on"}}})", "engine.dynamic_batching.prefix_caching",
       "is the string 'on'", "true or false"},
  };
  for (const WrongValue& row : rows) ExpectRefused(row);
  const struct {
    const char* key;
    const char* max;
  } limits[] = {{"block_size", "65536"},
                {"num_blocks", "2147483647"},
                {"max_batch_size", "65536"},
                {"max_scheduled_tokens", "16777216"},
                {"max_resident_requests", "1048576"},
                {"max_wait_steps", "1000000"}};
  for (const auto& limit : limits) {
    const std::string path = Message("engine.dynamic_batching.", limit.key);
    const std::string wanted = Message("an integer from 1 to ", limit.max);
    for (const char* value : {"0", "-1", "1.5", "true", "4000000000", "18446744073709551616"}) {
      const std::string overlay = Message("{\"engine\": {\"dynamic_batching\": {\"", limit.key, "\": ", value, "}}}");
      const std::string found = Message("is ", value, ";");
      ExpectRefused({overlay.c_str(), path.c_str(), found.c_str(), wanted.c_str()});
    }
    const std::string overlay = Message("{\"engine\": {\"dynamic_batching\": {\"", limit.key, "\": \"8\"}}}");
    ExpectRefused({overlay.c_str(), path.c_str(), "is the string '8'", wanted.c_str()});
  }
}

}  // namespace
}  // namespace oga
