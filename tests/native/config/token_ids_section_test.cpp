// Token ids of the model section: one, a list, or none.
#include <gtest/gtest.h>

#include "config/genai_config.h"
#include "native/config/config_refusals.h"
#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ExpectRefused;
using testing::InfoLog;
using testing::SmallConfig;
using testing::WrongValue;

TEST(TokenIdsSection, ReadsEosInEveryShape) {
  const struct {
    const char* value;
    std::vector<TokenId> ids;
  } rows[] = {
      {"5", {5}}, {"0", {0}},   {"63", {63}},          {"[5]", {5}}, {"[5, 7]", {5, 7}},
      {"[]", {}}, {"null", {}}, {"[7, 5, 7]", {7, 5}}, {"5.0", {5}},
  };
  for (const auto& row : rows) {
    const GenaiConfig config = SmallConfig().WithOverlay(Message(R"({"model": {"eos_token_id": )", row.value, "}}"));
    EXPECT_EQ(config.eos_token_ids(), row.ids) << row.value;
  }
}

TEST(TokenIdsSection, ReadsTheOtherTokenIdsInEveryShape) {
  const struct {
    const char* value;
    std::optional<TokenId> id;
  } rows[] = {
      {"5", 5},
      {"[9, 5]", 9},
      {"[]", std::nullopt},
      {"null", std::nullopt},
      {"-1", std::nullopt},
      {"64", std::nullopt},  // the embedding does not hold it; models with such a padding token are common
  };
  for (const auto& row : rows) {
    const GenaiConfig config = SmallConfig().WithOverlay(
        Message(R"({"model": {"bos_token_id": )", row.value, R"(, "pad_token_id": )", row.value, "}}"));
    EXPECT_EQ(config.bos_token_id(), row.id) << row.value;
    EXPECT_EQ(config.pad_token_id(), row.id) << row.value;
  }
}

TEST(TokenIdsSection, TellsOfATokenIdThatTheVocabularyDoesNotHold) {
  InfoLog log;
  SmallConfig().WithOverlay(R"({"model": {"bos_token_id": 63, "pad_token_id": 64}})");
  ASSERT_EQ(InfoLog::lines().size(), 1u);
  EXPECT_CONTAINS(InfoLog::lines()[0], "model.pad_token_id");
  EXPECT_EQ(InfoLog::lines()[0].find("model.bos_token_id"), std::string::npos) << InfoLog::lines()[0];
}

TEST(TokenIdsSection, RefusesWhatIsNoTokenId) {
  const WrongValue rows[] = {
      {R"({"model": {"eos_token_id": "</s>"}})", "model.eos_token_id", "is the string '</s>'",
       "a token id (an integer from 0 to 63), a list of them, or null"},
      {R"({"model": {"eos_token_id": true}})", "model.eos_token_id", "is true", "a token id"},
      {R"({"model": {"eos_token_id": {}}})", "model.eos_token_id", "is an object", "a token id"},
      {R"({"model": {"eos_token_id": 1.5}})", "model.eos_token_id", "is 1.5", "from 0 to 63"},
      {R"({"model": {"eos_token_id": 64}})", "model.eos_token_id", "is 64", "from 0 to 63"},
      {R"({"model": {"eos_token_id": -1}})", "model.eos_token_id", "is -1", "from 0 to 63"},
      {R"({"model": {"eos_token_id": [1, "2"]}})", "model.eos_token_id[1]", "is the string '2'", "from 0 to 63"},
      {R"({"model": {"eos_token_id": [1, 2, 64]}})", "model.eos_token_id[2]", "is 64", "from 0 to 63"},
      {R"({"model": {"eos_token_id": [[1]]}})", "model.eos_token_id[0]", "is a list of 1 value", "an integer"},
      {R"({"model": {"eos_token_id": [null]}})", "model.eos_token_id[0]", "is null", "an integer"},
      {R"({"model": {"pad_token_id": "x"}})", "model.pad_token_id", "is the string 'x'", "a token id"},
      {R"({"model": {"pad_token_id": -2}})", "model.pad_token_id", "is -2", "from -1 to 2147483647"},
      {R"({"model": {"pad_token_id": [0, false]}})", "model.pad_token_id[1]", "is false", "an integer"},
      {R"({"model": {"bos_token_id": 0.5}})", "model.bos_token_id", "is 0.5", "an integer"},
      {R"({"model": {"sep_token_id": "x"}})", "model.sep_token_id", "is the string 'x'", "a token id"},
  };
  for (const WrongValue& row : rows) ExpectRefused(row);
}

}  // namespace
}  // namespace oga
