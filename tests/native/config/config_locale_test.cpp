// A config reads the same and messages say the same whatever locale the host has set, and the library sets none.
#include <gtest/gtest.h>

#include <atomic>
#include <clocale>
#include <string>
#include <thread>

#include "config/genai_config.h"
#include "config/limits_resolution.h"
#include "native/config/comma_locale.h"
#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::CommaLocale;
using testing::ErrorOf;
using testing::Fingerprint;
using testing::InfoLog;
using testing::SmallConfig;

constexpr const char* kFractions = R"({
  "model": {"decoder": {"session_options": {"provider_options": [{"CPUExecutionProvider": {}}]}}},
  "search": {"temperature": 0.7, "top_p": 0.95, "repetition_penalty": 1.2e0},
  "engine": {"dynamic_batching": {"gpu_utilization_factor": 0.5, "num_blocks": 1234567}}
})";

void ExpectFractions(const GenaiConfig& config) {
  ASSERT_EQ(config.search().temperature, 0.7f);
  ASSERT_EQ(config.search().top_p, 0.95f);
  ASSERT_EQ(config.search().repetition_penalty, 1.2f);
  ASSERT_EQ(config.dynamic_batching().gpu_utilization_factor, 0.5);
  ASSERT_EQ(config.dynamic_batching().num_blocks, 1234567u);
}

// All texts a host can be told for this config, in the locale of the moment.
std::string AllTexts() {
  InfoLog log;
  const GenaiConfig config = SmallConfig().WithOverlay(kFractions);
  std::string texts = Fingerprint(config);
  texts += ErrorOf([&] { config.WithOverlay(R"({"search": {"top_p": 1.25}})"); }).message();
  texts += ErrorOf([&] { config.WithOverlay(R"({"search": {"top_p": 1.2.5}})"); }).message();
  texts += ErrorOf([&] { config.WithOverlay(R"({"engine": {"dynamic_batching": {"PREFIX_CACHING": 1}}})"); }).message();
  texts += ErrorOf([&] { GenaiConfig::FromFolder("/nowhere"); }).message();
  texts += ErrorOf([&] { GenaiConfig::FromFolder("/dev/null/x"); }).message();
  ResolveEngineLimits(config, 1000, Ledger::Cpu());
  for (const std::string& line : InfoLog::lines()) texts += line;
  return texts;
}

TEST(ConfigLocale, ReadsTheSameValuesWithACommaForADecimalPoint) {
  const CommaLocale locale;
  CommaLocale::Enter();
  ExpectFractions(SmallConfig().WithOverlay(kFractions));
  // A dotless lower-case i must not keep "CPUExecutionProvider" from being the CPU.
  EXPECT_NO_THROW(SmallConfig().WithOverlay(kFractions).CheckProvidersUsable());
  EXPECT_NO_THROW(SmallConfig().WithProvider("CPUEXECUTIONPROVIDER"));
}

TEST(ConfigLocale, SaysTheSameInEveryLocale) {
  const std::string in_c = AllTexts();
  const CommaLocale locale;
  CommaLocale::Enter();
  EXPECT_EQ(AllTexts(), in_c);
}

TEST(ConfigLocale, IsNotChangedByTheLibrary) {
  const CommaLocale locale;
  CommaLocale::Enter();
  const std::string before = std::setlocale(LC_ALL, nullptr);
  AllTexts();
  EXPECT_EQ(std::setlocale(LC_ALL, nullptr), before);
}

TEST(ConfigLocale, MayChangeBetweenCalls) {
  const CommaLocale locale;
  GenaiConfig config = SmallConfig();
  for (int i = 0; i < 4; ++i) {
    i % 2 == 0 ? CommaLocale::Enter() : CommaLocale::Leave();
    config = config.WithOverlay(kFractions);
    ExpectFractions(config);
  }
}

TEST(ConfigLocale, MayBeChangedByAnotherThreadMeanwhile) {
  const CommaLocale locale;
  CommaLocale::Enter();
  std::atomic<bool> is_done{false};
  std::thread other([&] {
    while (!is_done) {
      std::setlocale(LC_NUMERIC, "C");
      std::setlocale(LC_NUMERIC, CommaLocale::kName);
    }
  });
  for (int i = 0; i < 300 && !HasFatalFailure(); ++i) ExpectFractions(SmallConfig().WithOverlay(kFractions));
  is_done = true;
  other.join();
}

}  // namespace
}  // namespace oga
