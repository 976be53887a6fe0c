// The keys of `search` that are rows of the sampling table: each is read, checked and known.
#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <variant>

#include "config/genai_config.h"
#include "native/config/config_refusals.h"
#include "native/config/config_samples.h"
#include "step/sampling.h"

namespace oga {
namespace {

using testing::ErrorOf;
using testing::ExpectRefused;
using testing::InfoLog;
using testing::SmallConfig;
using testing::WrongValue;

std::string Overlay(const SamplingOption& option, const std::string& value) {
  return Message("{\"search\": {\"", std::string(option.name), "\": ", value, "}}");
}

template <typename Visit>
void ForEachModelOption(const Visit& visit) {
  for (const SamplingOption& option : kSamplingOptions) {
    if (option.source != OptionSource::kModelAndTurn) continue;
    SCOPED_TRACE(option.name);
    std::visit([&](auto fields) { visit(option, fields); }, option.fields);
  }
}

TEST(SearchSection, ReadsEveryOptionOfTheTable) {
  ForEachModelOption([](const SamplingOption& option, auto fields) {
    using Value = typename decltype(fields)::Value;
    InfoLog log;
    const char* const text = std::is_same_v<Value, bool> ? "true" : std::is_same_v<Value, float> ? "1.0" : "7";
    const auto expected = static_cast<Value>(std::is_same_v<Value, int32_t> ? 7 : 1);
    EXPECT_EQ(SmallConfig().WithOverlay(Overlay(option, text)).search().*fields.model, expected);
    EXPECT_TRUE(InfoLog::lines().empty()) << "the option is known, and it works";
  });
}

TEST(SearchSection, LeavesWhatIsNotThereAtTheDefaultOfTheTable) {
  const SearchDefaults defaults;
  ForEachModelOption([&](const SamplingOption& option, auto fields) {
    EXPECT_EQ(SmallConfig().search().*fields.model, defaults.*fields.model);
    EXPECT_EQ(SmallConfig().WithOverlay(Overlay(option, "null")).search().*fields.model, defaults.*fields.model);
  });
}

TEST(SearchSection, RefusesWhatTheTableExcludes) {
  ForEachModelOption([](const SamplingOption& option, auto fields) {
    using Value = typename decltype(fields)::Value;
    std::vector<std::string> illegal{"\"1\"", "[]", "{}"};
    if constexpr (std::is_same_v<Value, bool>) {
      illegal.insert(illegal.end(), {"1", "0.0"});
    } else {
      illegal.insert(illegal.end(), {"true", "1e300", "-1e300"});
      if (option.range.min >= 0) illegal.push_back("-0.5");
      if (option.range.min_excluded) illegal.push_back("0");
      if (std::is_same_v<Value, int32_t>) illegal.insert(illegal.end(), {"1.5", "2147483648"});
    }
    for (const std::string& value : illegal) {
      const Error error = ErrorOf([&] { SmallConfig().WithOverlay(Overlay(option, value)); });
      EXPECT_EQ(error.code(), StatusCode::kInvalidArgument) << value;
      EXPECT_CONTAINS(error.message(), Message("search.", std::string(option.name), " is "));
    }
  });
}

TEST(SearchSection, OptionsOfTurnsAloneAreNotKeys) {
  for (const SamplingOption& option : kSamplingOptions) {
    if (option.source != OptionSource::kTurnOnly) continue;
    InfoLog log;
    SmallConfig().WithOverlay(Overlay(option, "1"));
    EXPECT_EQ(InfoLog::With(Message("search.", std::string(option.name))).size(), 1u) << option.name;
  }
}

TEST(SearchSection, RefusesValuesBeyondTheirRanges) {
  const WrongValue rows[] = {
      {R"({"search": 1})", "search", "is 1", "an object"},
      {R"({"search": {"do_sample": 1}})", "search.do_sample", "is 1", "true or false"},
      {R"({"search": {"do_sample": "true"}})", "search.do_sample", "is the string 'true'", "true or false"},
      {R"({"search": {"temperature": -0.1}})", "search.temperature", "is -0.1", "not less than 0"},
      {R"({"search": {"temperature": "0.7"}})", "search.temperature", "is the string '0.7'", "a number"},
      {R"({"search": {"temperature": true}})", "search.temperature", "is true", "a number"},
      {R"({"search": {"temperature": 1e39}})", "search.temperature", "is 1e39", "a 32-bit float can hold"},
      {R"({"search": {"top_k": -1}})", "search.top_k", "is -1", "from 0 to 2147483647"},
      {R"({"search": {"top_k": 1.5}})", "search.top_k", "is 1.5", "an integer"},
      {R"({"search": {"top_p": 1.1}})", "search.top_p", "is 1.1", "not less than 0 and not greater than 1"},
      {R"({"search": {"top_p": -0.5}})", "search.top_p", "is -0.5", "not less than 0 and not greater than 1"},
      {R"({"search": {"repetition_penalty": 0}})", "search.repetition_penalty", "is 0", "greater than 0"},
      {R"({"search": {"repetition_penalty": 1e-60}})", "search.repetition_penalty", "is 1e-60", "greater than 0"},
      {R"({"search": {"repetition_penalty": -2}})", "search.repetition_penalty", "is -2", "greater than 0"},
      {R"({"search": {"max_length": 0}})", "search.max_length", "is 0", "1 or more"},
      {R"({"search": {"max_length": -1}})", "search.max_length", "is -1", "1 or more"},
      {R"({"search": {"max_length": 129}})", "search.max_length", "is 129",
       "at most model.context_length, which is 128"},
      {R"({"search": {"min_length": -1}})", "search.min_length", "is -1", "0 or more"},
      {R"({"search": {"num_beams": 0}})", "search.num_beams", "is 0", "from 1 to"},
      {R"({"search": {"chunk_size": -1}})", "search.chunk_size", "is -1", "from 0 to 16777216"},
      {R"({"search": {"chunk_size": 2.5}})", "search.chunk_size", "is 2.5", "an integer"},
      {R"({"search": {"batch_size": 0}})", "search.batch_size", "is 0", "from 1 to"},
      {R"({"search": {"num_return_sequences": "1"}})", "search.num_return_sequences", "is the string '1'",
       "an integer"},
      {R"({"search": {"early_stopping": 1}})", "search.early_stopping", "is 1", "true or false"},
      {R"({"search": {"past_present_share_buffer": 0}})", "search.past_present_share_buffer", "is 0", "true or false"},
      {R"({"search": {"length_penalty": "x"}})", "search.length_penalty", "is the string 'x'", "a number"},
      {R"({"search": {"diversity_penalty": []}})", "search.diversity_penalty", "is an empty list", "a number"},
      {R"({"search": {"no_repeat_ngram_size": -1}})", "search.no_repeat_ngram_size", "is -1", "from 0 to"},
      {R"({"search": {"random_seed": -2}})", "search.random_seed", "is -2", "-1 or more"},
  };
  for (const WrongValue& row : rows) ExpectRefused(row);
}

}  // namespace
}  // namespace oga
