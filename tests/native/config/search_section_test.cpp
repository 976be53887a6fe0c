// The keys of `search` that are rows of the sampling table: each is read, checked and known.
#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <variant>

#include "config/genai_config.h"
#include "native/config/config_samples.h"
#include "step/sampling.h"

namespace oga {
namespace {

using testing::ErrorOf;
using testing::InfoLog;
using testing::SmallConfig;

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

}  // namespace
}  // namespace oga
