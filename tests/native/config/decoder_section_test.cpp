// The sizes and the graph of the decoder section.
#include <gtest/gtest.h>

#include "config/genai_config.h"
#include "native/config/config_refusals.h"
#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ErrorOf;
using testing::ExpectRefused;
using testing::SmallConfig;
using testing::WrongValue;

TEST(DecoderSection, TakesTheBorderOfEachSize) {
  const DecoderConfig decoder = SmallConfig()
                                    .WithOverlay(R"({"model": {"decoder": {"num_hidden_layers": 65536,
      "num_attention_heads": 65536, "num_key_value_heads": 65536, "head_size": 65536, "hidden_size": null}}})")
                                    .decoder();
  EXPECT_EQ(decoder.num_hidden_layers, 65536);
  EXPECT_EQ(decoder.num_attention_heads, 65536);
  EXPECT_EQ(decoder.num_key_value_heads, 65536);
  EXPECT_EQ(decoder.head_size, 65536);
  EXPECT_EQ(decoder.hidden_size, 0) << "it may be left out";
}

TEST(DecoderSection, RefusesSizesAndNamesThatNoDecoderHas) {
  const WrongValue rows[] = {
      {R"({"model": {"decoder": {"filename": ""}}})", "model.decoder.filename", "is the string ''", "not empty"},
      {R"({"model": {"decoder": {"filename": 1}}})", "model.decoder.filename", "is 1", "a string"},
      {R"({"model": {"decoder": {"filename": "/etc/passwd"}}})", "model.decoder.filename",
       "is the string '/etc/passwd'", "relative to the model folder"},
      {R"({"model": {"decoder": {"num_hidden_layers": 0}}})", "model.decoder.num_hidden_layers", "is 0",
       "from 1 to 65536"},
      {R"({"model": {"decoder": {"num_hidden_layers": 1.5}}})", "model.decoder.num_hidden_layers", "is 1.5",
       "an integer"},
      {R"({"model": {"decoder": {"num_hidden_layers": 2147483647}}})", "model.decoder.num_hidden_layers",
       "is 2147483647", "from 1 to 65536"},
      {R"({"model": {"decoder": {"num_attention_heads": -4}}})", "model.decoder.num_attention_heads", "is -4",
       "from 1 to 65536"},
      {R"({"model": {"decoder": {"num_key_value_heads": false}}})", "model.decoder.num_key_value_heads", "is false",
       "an integer"},
      {R"({"model": {"decoder": {"num_key_value_heads": 3}}})", "model.decoder.num_key_value_heads", "is 3",
       "a divisor of model.decoder.num_attention_heads, which is 4"},
      {R"({"model": {"decoder": {"num_key_value_heads": 8}}})", "model.decoder.num_key_value_heads", "is 8",
       "a divisor of model.decoder.num_attention_heads, which is 4"},
      {R"({"model": {"decoder": {"head_size": "8"}}})", "model.decoder.head_size", "is the string '8'", "an integer"},
      {R"({"model": {"decoder": {"hidden_size": 0}}})", "model.decoder.hidden_size", "is 0", "from 1 to 2147483647"},
      {R"({"model": {"decoder": {"inputs": []}}})", "model.decoder.inputs", "is an empty list", "an object"},
      {R"({"model": {"decoder": {"outputs": "x"}}})", "model.decoder.outputs", "is the string 'x'", "an object"},
  };
  for (const WrongValue& row : rows) ExpectRefused(row);
}

TEST(DecoderSection, RefusesADecoderOfSeveralGraphsByName) {
  const Error error =
      ErrorOf([] { SmallConfig().WithOverlay(R"({"model": {"decoder": {"pipeline": [{"a": {}}]}}})"); });
  EXPECT_EQ(error.code(), StatusCode::kUnsupported);
  EXPECT_CONTAINS(error.message(), "model.decoder.pipeline splits the decoder into several graphs");
}

}  // namespace
}  // namespace oga
