// Ways in which a config as a whole and its model section can be wrong; those of the other sections stand with them.
#include <gtest/gtest.h>

#include "config/genai_config.h"
#include "native/config/config_refusals.h"
#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ErrorOf;
using testing::ExpectRefused;
using testing::kSmallConfig;
using testing::SmallConfig;
using testing::WriteJson;
using testing::WrongValue;

TEST(GenaiConfigRefusals, ValuesOfTheModelSection) {
  const WrongValue rows[] = {
      {R"({"model": 5})", "model", "is 5", "must be an object"},
      {R"({"model": []})", "model", "is an empty list", "must be an object"},
      {R"({"model": null})", "model", "is null", "must be an object"},
      {R"({"model": {"type": 3}})", "model.type", "is 3", "a string"},
      {R"({"model": {"type": ""}})", "model.type", "is the string ''", "not empty"},
      {R"({"model": {"type": null}})", "model.type", "is null", "a string"},
      {R"({"model": {"vocab_size": 0}})", "model.vocab_size", "is 0", "from 1 to 2147483647"},
      {R"({"model": {"vocab_size": -5}})", "model.vocab_size", "is -5", "from 1 to 2147483647"},
      {R"({"model": {"vocab_size": 2.5}})", "model.vocab_size", "is 2.5", "an integer"},
      {R"({"model": {"vocab_size": "64"}})", "model.vocab_size", "is the string '64'", "an integer"},
      {R"({"model": {"vocab_size": true}})", "model.vocab_size", "is true", "an integer"},
      {R"({"model": {"vocab_size": [64]}})", "model.vocab_size", "is a list of 1 value", "an integer"},
      {R"({"model": {"vocab_size": {}}})", "model.vocab_size", "is an object", "an integer"},
      {R"({"model": {"vocab_size": null}})", "model.vocab_size", "is null", "an integer"},
      {R"({"model": {"vocab_size": 2147483648}})", "model.vocab_size", "is 2147483648", "from 1 to 2147483647"},
      {R"({"model": {"vocab_size": 99999999999999999999}})", "model.vocab_size", "is 99999999999999999999",
       "from 1 to 2147483647"},
      {R"({"model": {"context_length": 0}})", "model.context_length", "is 0", "from 1 to 2147483647"},
      {R"({"model": {"context_length": "long"}})", "model.context_length", "is the string 'long'", "an integer"},
      {R"({"model": {"decoder": []}})", "model.decoder", "is an empty list", "an object"},
      {R"({"model": {"vision": 3}})", "model.vision", "is 3", "an object"},
  };
  for (const WrongValue& row : rows) ExpectRefused(row);
}

TEST(GenaiConfigRefusals, EachRequiredKeyThatIsMissing) {
  const struct {
    const char* parent;
    const char* key;
    const char* wanted;
  } rows[] = {
      {"", "model", "an object"},
      {"model", "type", "a string"},
      {"model", "vocab_size", "an integer from 1 to 2147483647"},
      {"model", "context_length", "an integer from 1 to 2147483647"},
      {"model", "decoder", "an object"},
      {"model.decoder", "filename", "a string"},
      {"model.decoder", "num_hidden_layers", "an integer from 1 to 65536"},
      {"model.decoder", "num_attention_heads", "an integer from 1 to 65536"},
      {"model.decoder", "num_key_value_heads", "an integer from 1 to 65536"},
      {"model.decoder", "head_size", "an integer from 1 to 65536"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.key);
    JsonValue root = testing::ParseJson(kSmallConfig);
    JsonValue* parent = &root;
    if (std::string(row.parent) != "") parent = parent->Find("model");
    if (std::string(row.parent) == "model.decoder") parent = parent->Find("decoder");
    std::erase_if(parent->members, [&](const JsonMember& member) { return member.name == row.key; });
    const Error error = ErrorOf([&] { GenaiConfig::FromText(WriteJson(root), "/models/small"); });
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
    EXPECT_CONTAINS(error.message(), "/models/small/genai_config.json, line ");
    EXPECT_CONTAINS(error.message(), Message(": ", JoinPath(row.parent, row.key), " is missing; it is required"));
    EXPECT_CONTAINS(error.message(), row.wanted);
  }
}

TEST(GenaiConfigRefusals, NamesTheLineOfTheValue) {
  std::string text = kSmallConfig;
  text.replace(text.find("64"), 2, "0");
  EXPECT_EQ(ErrorOf([&] { GenaiConfig::FromText(text, "/m"); }).message(),
            "/m/genai_config.json, line 4: model.vocab_size is 0; it must be an integer from 1 to 2147483647");
}

TEST(GenaiConfigRefusals, ATopLevelThatIsNoObject) {
  for (const char* text : {"[]", "3", "\"x\"", "null", "true"}) {
    const Error error = ErrorOf([&] { GenaiConfig::FromText(text, "/m"); });
    EXPECT_CONTAINS(error.message(), "/m/genai_config.json, line 1: the top level is ");
    EXPECT_CONTAINS(error.message(), "it must be a JSON object");
    const Error overlay_error = ErrorOf([&] { SmallConfig().WithOverlay(text); });
    EXPECT_CONTAINS(overlay_error.message(), "overlay, line 1: the top level is ");
  }
}

}  // namespace
}  // namespace oga
