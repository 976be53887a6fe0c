#include "search/sampling_rules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "base/error.h"

namespace oga::search {
namespace {

constexpr int32_t kVocab = 64;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// The message of the InvalidArgument that `call` throws; empty when it throws nothing.
std::string Refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
    return error.message();
  }
  return {};
}

std::string ResolveRefusal(const SamplingOptions& options, const SearchDefaults& defaults) {
  return Refusal([&] { Resolve(options, defaults, kVocab); });
}

bool Mentions(const std::string& message, const std::string& part) { return message.find(part) != std::string::npos; }

SearchDefaults GreedyModel() { return {}; }

SearchDefaults SamplingModel() {
  SearchDefaults defaults;
  defaults.do_sample = true;
  defaults.temperature = 0.7f;
  defaults.top_k = 40;
  defaults.top_p = 0.9f;
  return defaults;
}

TEST(SamplingRules, AcceptsLegalValues) {
  for (const float value : {0.0f, -0.0f, 1e-7f, 1e-4f, 1.0f, 2.0f, 1e6f}) CheckTemperature(value);
  for (const int32_t value : {0, 1, kVocab, kVocab + 1, std::numeric_limits<int32_t>::max()}) CheckTopK(value);
  for (const float value : {0.0f, -0.0f, 1e-7f, 0.5f, 1.0f}) CheckTopP(value);
  for (const float value : {1e-3f, 1.0f, 1.5f, 100.0f}) CheckRepetitionPenalty(value);
}

TEST(SamplingRules, RefusesIllegalValuesNamingOptionAndValue) {
  for (const float value : {-0.1f, kNan, kInf, -kInf}) {
    EXPECT_TRUE(Mentions(Refusal([&] { CheckTemperature(value); }), Message("temperature is ", value)));
    EXPECT_TRUE(Mentions(Refusal([&] { CheckTopP(value); }), Message("top_p is ", value)));
    EXPECT_TRUE(Mentions(Refusal([&] { CheckRepetitionPenalty(value); }), Message("repetition_penalty is ", value)));
  }
  EXPECT_TRUE(Mentions(Refusal([] { CheckTopP(1.0001f); }), "top_p is 1.0001"));
  EXPECT_TRUE(Mentions(Refusal([] { CheckRepetitionPenalty(0.0f); }), "repetition_penalty is 0;"));
  EXPECT_TRUE(Mentions(Refusal([] { CheckTopK(-1); }), "top_k is -1"));
  EXPECT_TRUE(Mentions(Refusal([] { CheckTopK(std::numeric_limits<int32_t>::min()); }), "top_k is -2147483648"));
}

TEST(SamplingRules, AnUnsetOptionTakesTheModelsDefault) {
  SearchDefaults defaults = SamplingModel();
  defaults.repetition_penalty = 1.3f;
  const SamplingSettings settings = Resolve({}, defaults, kVocab);
  EXPECT_FALSE(settings.greedy);
  EXPECT_EQ(settings.temperature, 0.7f);
  EXPECT_EQ(settings.top_k, 40);
  EXPECT_EQ(settings.top_p, 0.9f);
  EXPECT_EQ(settings.repetition_penalty, 1.3f);
  EXPECT_FALSE(settings.seed.has_value());
}

TEST(SamplingRules, ASetOptionWinsOverTheModelsDefault) {
  SamplingOptions options;
  options.temperature = 1.5f;
  options.top_k = 5;
  options.top_p = 0.25f;
  options.repetition_penalty = 1.1f;
  options.seed = 0;
  options.min_generated_tokens = 2;
  options.max_generated_tokens = 3;
  const SamplingSettings settings = Resolve(options, SamplingModel(), kVocab);
  EXPECT_FALSE(settings.greedy);
  EXPECT_EQ(settings.temperature, 1.5f);
  EXPECT_EQ(settings.top_k, 5);
  EXPECT_EQ(settings.top_p, 0.25f);
  EXPECT_EQ(settings.repetition_penalty, 1.1f);
  EXPECT_EQ(settings.seed, uint64_t{0});
  EXPECT_EQ(settings.min_generated_tokens, 2u);
  EXPECT_EQ(settings.max_generated_tokens, 3u);
}

TEST(SamplingRules, TopKFromTheVocabularyUpIsOff) {
  for (const int32_t top_k : {0, kVocab, kVocab + 1, std::numeric_limits<int32_t>::max()}) {
    SamplingOptions options;
    options.top_k = top_k;
    EXPECT_EQ(Resolve(options, SamplingModel(), kVocab).top_k, 0) << top_k;
  }
  SamplingOptions options;
  options.top_k = kVocab - 1;
  EXPECT_EQ(Resolve(options, SamplingModel(), kVocab).top_k, kVocab - 1);
}

TEST(SamplingRules, TopPZeroAndOneAreOff) {
  for (const float top_p : {0.0f, -0.0f, 1.0f}) {
    SamplingOptions options;
    options.top_p = top_p;
    EXPECT_EQ(Resolve(options, SamplingModel(), kVocab).top_p, 1.0f) << top_p;
  }
}

TEST(SamplingRules, SamplingWithoutAnyBoundIsLegal) {
  SearchDefaults defaults = GreedyModel();
  defaults.top_k = 0;
  defaults.top_p = 0.0f;
  SamplingOptions options;
  options.do_sample = true;
  EXPECT_FALSE(Resolve(options, defaults, kVocab).greedy);
}

TEST(SamplingRules, GreedyKeepsThePenaltyAndSetsNoWarper) {
  SamplingOptions options;
  options.do_sample = false;
  options.repetition_penalty = 1.2f;
  const SamplingSettings settings = Resolve(options, SamplingModel(), kVocab);
  EXPECT_TRUE(settings.greedy);
  EXPECT_EQ(settings.repetition_penalty, 1.2f);
  EXPECT_EQ(settings.temperature, 1.0f);
  EXPECT_EQ(settings.top_k, 0);
  EXPECT_EQ(settings.top_p, 1.0f);
}

TEST(SamplingRules, GreedyAcceptsOptionsThatAreOff) {
  for (const bool explicit_greedy : {false, true}) {
    for (const float off : {0.0f, 1.0f}) {
      SamplingOptions options;
      if (explicit_greedy) options.do_sample = false;
      options.temperature = off;
      options.top_p = off;
      options.top_k = static_cast<int32_t>(off);
      EXPECT_TRUE(Resolve(options, GreedyModel(), kVocab).greedy);
    }
  }
}

TEST(SamplingRules, GreedyRefusesOptionsThatWouldNotAct) {
  for (const bool explicit_greedy : {false, true}) {
    SamplingOptions base;
    if (explicit_greedy) base.do_sample = false;
    const SearchDefaults defaults = explicit_greedy ? SamplingModel() : GreedyModel();

    SamplingOptions options = base;
    options.temperature = 0.7f;
    EXPECT_TRUE(Mentions(ResolveRefusal(options, defaults), "temperature = 0.7 has no effect"));
    options = base;
    options.top_p = 0.5f;
    EXPECT_TRUE(Mentions(ResolveRefusal(options, defaults), "top_p = 0.5 has no effect"));
    options = base;
    options.top_k = 2;
    EXPECT_TRUE(Mentions(ResolveRefusal(options, defaults), "top_k = 2 has no effect"));
  }
}

TEST(SamplingRules, ASamplingTurnMayAskForGreedyByTemperatureOrTopK) {
  for (const bool own_do_sample : {false, true}) {
    SamplingOptions options;
    if (own_do_sample) options.do_sample = true;
    options.temperature = 0.0f;
    options.top_p = 0.9f;
    options.top_k = 40;
    options.seed = 1;
    EXPECT_TRUE(Resolve(options, SamplingModel(), kVocab).greedy);
    options.temperature = 0.7f;
    options.top_k = 1;
    EXPECT_TRUE(Resolve(options, SamplingModel(), kVocab).greedy);
  }
}

TEST(SamplingRules, AModelThatPinsGreedyRefusesDoSampleUnlessTheTurnOverridesThePin) {
  SearchDefaults pinned_k = GreedyModel();
  pinned_k.top_k = 1;
  SearchDefaults pinned_t = GreedyModel();
  pinned_t.temperature = 0.0f;

  SamplingOptions options;
  options.do_sample = true;
  EXPECT_TRUE(Mentions(ResolveRefusal(options, pinned_k), "do_sample is true"));
  EXPECT_TRUE(Mentions(ResolveRefusal(options, pinned_k), "search.top_k = 1"));
  EXPECT_TRUE(Mentions(ResolveRefusal(options, pinned_t), "search.temperature = 0"));

  options.temperature = 0.5f;
  EXPECT_FALSE(Resolve(options, pinned_t, kVocab).greedy);
  EXPECT_TRUE(Mentions(ResolveRefusal(options, pinned_k), "search.top_k = 1"));
  options.top_k = 20;
  EXPECT_FALSE(Resolve(options, pinned_k, kVocab).greedy);
  options.top_k = 0;
  EXPECT_FALSE(Resolve(options, pinned_k, kVocab).greedy);
  options.top_k = 1;
  EXPECT_TRUE(Resolve(options, pinned_k, kVocab).greedy);
}

TEST(SamplingRules, AModelThatSamplesButPinsGreedyIsGreedyAndRefusesWarpers) {
  SearchDefaults defaults = SamplingModel();
  defaults.top_k = 1;
  EXPECT_TRUE(Resolve({}, defaults, kVocab).greedy);
  SamplingOptions options;
  options.temperature = 0.7f;
  EXPECT_TRUE(Mentions(ResolveRefusal(options, defaults), "temperature = 0.7 has no effect"));
  options.top_k = 10;
  EXPECT_FALSE(Resolve(options, defaults, kVocab).greedy);
}

TEST(SamplingRules, RefusesAMinimumAboveTheMaximumOfGeneratedTokens) {
  SamplingOptions options;
  options.min_generated_tokens = 5;
  EXPECT_EQ(Resolve(options, GreedyModel(), kVocab).min_generated_tokens, 5u);
  options.max_generated_tokens = 5;
  EXPECT_EQ(Resolve(options, GreedyModel(), kVocab).max_generated_tokens, 5u);
  options.max_generated_tokens = 2;
  const std::string message = ResolveRefusal(options, GreedyModel());
  EXPECT_TRUE(Mentions(message, "min_generated_tokens is 5"));
  EXPECT_TRUE(Mentions(message, "max_generated_tokens is 2"));
}

}  // namespace
}  // namespace oga::search
