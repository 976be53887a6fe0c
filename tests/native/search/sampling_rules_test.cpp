#include "search/sampling_rules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"

namespace oga::search {
namespace {

constexpr int32_t kVocab = 64;
constexpr Vocabulary kVocabulary{kVocab, kVocab, {}};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// The InvalidArgument that `call` throws; kOk when it throws nothing.
Error ErrorOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
    return error;
  }
  return Error(StatusCode::kOk, "");
}

std::string Refusal(const std::function<void()>& call) { return ErrorOf(call).message(); }

std::string ResolveRefusal(const SamplingOptions& options, const SearchDefaults& defaults) {
  return Refusal([&] { Resolve(options, defaults, kVocabulary); });
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

void Check(const char* option, double value) { CheckNumber(FindOption(option), value); }

std::string CheckRefusal(const char* option, double value) {
  return Refusal([&] { Check(option, value); });
}

constexpr double kMaxFloat = std::numeric_limits<float>::max();
constexpr double kMaxInt = std::numeric_limits<int32_t>::max();

// The domain of every number among the options (OB-15).
struct Domain {
  const char* option;
  std::vector<double> legal;
  std::vector<double> illegal;
};

std::vector<Domain> Domains() {
  const std::vector<double> fractions{0, -0.0, 1e-7, 0.5, 1};
  const std::vector<double> no_fractions{-0.1, -1e-9, 1.0001, 2};
  const std::vector<double> counts{0, 1, kVocab, kVocab + 1, kMaxInt};
  const std::vector<double> no_counts{-1, -kMaxInt - 1, 0.5, kMaxInt + 1, 1e18};
  return {{"temperature", {0, -0.0, 1e-7, 1e-4, 1, 2, 1e6, kMaxFloat}, {-0.1, -1e-30, 1e300}},
          {"top_k", counts, no_counts},
          {"top_p", fractions, no_fractions},
          {"typical_p", fractions, no_fractions},
          {"min_p", fractions, no_fractions},
          {"xtc_probability", fractions, no_fractions},
          {"xtc_threshold", fractions, no_fractions},
          {"top_n_sigma", {0, 1e-7, 1, 3, 1e6}, {-1, -1e-30, 1e300}},
          {"repetition_penalty", {1e-3, 1, 1.5, 100}, {0, -0.0, -1, 1e-60, 1e300}},
          {"presence_penalty", {-2, 0, 2, -kMaxFloat}, {1e300, -1e300}},
          {"frequency_penalty", {-2, 0, 2, kMaxFloat}, {1e300, -1e300}},
          {"no_repeat_ngram_size", counts, no_counts},
          {"dry_multiplier", {0, 0.8, 100}, {-0.1, 1e300}},
          {"dry_base", {1, 1.75, 100}, {0.999, 0, -1, 1e300}},
          {"dry_allowed_length", {1, 2, kMaxInt}, {0, -1, 1.5, 1e18}},
          {"dry_range", counts, no_counts},
          {"max_generated_tokens", {0, 1, 9007199254740992.0}, {-1, 0.5, 1e18}},
          {"min_generated_tokens", {0, 1, 9007199254740992.0}, {-1, 0.5, 1e18}}};
}

TEST(SamplingRules, TheDomainOfEveryNumberIsChecked) {
  std::set<std::string> checked;
  for (const Domain& domain : Domains()) {
    checked.insert(domain.option);
    for (const double value : domain.legal) EXPECT_EQ(CheckRefusal(domain.option, value), "") << domain.option;
    for (const double value : domain.illegal) {
      EXPECT_TRUE(Mentions(CheckRefusal(domain.option, value), Message(domain.option, " is "))) << value;
    }
    for (const double value : {double{kNan}, double{kInf}, -double{kInf}}) {
      EXPECT_TRUE(Mentions(CheckRefusal(domain.option, value), Message(domain.option, " is ", value)));
    }
  }
  for (const SamplingOption& option : kSamplingOptions) {
    const bool is_number = !std::holds_alternative<OptionFields<bool>>(option.fields);
    EXPECT_EQ(checked.contains(std::string(option.name)), is_number) << option.name;
  }
}

TEST(SamplingRules, ARefusalNamesTheOptionTheValueAndWhatIsLegal) {
  EXPECT_EQ(CheckRefusal("temperature", -0.5f),
            "temperature is -0.5; it must be finite and at least 0 (0 takes the most likely token)");
  EXPECT_EQ(CheckRefusal("top_p", 1.0001f), "top_p is 1.0001; it must be between 0 and 1 (both are off)");
  EXPECT_EQ(CheckRefusal("repetition_penalty", 0.0f),
            "repetition_penalty is 0; it must be finite and above 0 (1 is off)");
  EXPECT_EQ(CheckRefusal("presence_penalty", kNan), "presence_penalty is nan; it must be finite (0 is off)");
  EXPECT_EQ(CheckRefusal("top_k", std::numeric_limits<int32_t>::min()),
            "top_k is -2147483648; it must be an integer of at least 0 (0 and anything from the vocabulary size up are "
            "off, 1 takes the most likely token)");
  EXPECT_EQ(CheckRefusal("dry_allowed_length", 1.5), "dry_allowed_length is 1.5; it must be an integer of at least 1");
  EXPECT_EQ(CheckRefusal("dry_base", 0.5), "dry_base is 0.5; it must be finite and at least 1");
  EXPECT_EQ(CheckRefusal("max_generated_tokens", 1e18),
            "max_generated_tokens is 1e+18; it must be an integer from 0 to 9007199254740992 (0 is no limit but the "
            "session's)");
  EXPECT_EQ(CheckRefusal("do_sample", 1), "do_sample is true or false, not a number; set it as a bool");
}

TEST(SamplingRules, ARefusalIsAboutTheOptionInItsField) {
  for (const SamplingOption& option : kSamplingOptions) {
    EXPECT_EQ(ErrorOf([&] { CheckNumber(option, kNan); }).field(), option.name);
  }
  EXPECT_EQ(ErrorOf([] { FindOption("temprature"); }).field(), "temprature") << "what the host asked for";
  const auto field = [](const SearchDefaults& defaults, const std::function<void(SamplingOptions&)>& set) {
    SamplingOptions options;
    set(options);
    return ErrorOf([&] { Resolve(options, defaults, kVocabulary); }).field();
  };
  SearchDefaults pinned = SamplingModel();
  pinned.top_k = 1;
  EXPECT_EQ(field(GreedyModel(), [](SamplingOptions& options) { options.top_p = 0.5f; }), "top_p");
  EXPECT_EQ(field(pinned, [](SamplingOptions& options) { options.do_sample = true; }), "do_sample");
  EXPECT_EQ(field(pinned, [](SamplingOptions& options) { options.min_p = 0.5f; }), "min_p");
  const auto set_both = [](SamplingOptions& options) {
    options.max_generated_tokens = 2;
    options.min_generated_tokens = 3;
  };
  EXPECT_EQ(field(SamplingModel(), set_both), "min_generated_tokens");
}

TEST(SamplingRules, AnUnknownNameMeetsTheNearestOne) {
  EXPECT_EQ(Refusal([] { FindOption("temprature"); }),
            "'temprature' is no turn option; the nearest one is 'temperature'");
  EXPECT_EQ(Refusal([] { FindOption("top_n"); }), "'top_n' is no turn option; the nearest one is 'top_k'");
  EXPECT_TRUE(Mentions(Refusal([] { FindOption(""); }), "'' is no turn option"));
  EXPECT_TRUE(Mentions(Refusal([] { FindOption("\xff\n"); }), "'\\xff\\x0a' is no turn option"));
}

TEST(SamplingRules, AnUnsetOptionTakesTheModelsDefault) {
  SearchDefaults defaults = SamplingModel();
  defaults.repetition_penalty = 1.3f;
  const SamplingSettings settings = Resolve({}, defaults, kVocabulary);
  EXPECT_FALSE(settings.greedy());
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
  const SamplingSettings settings = Resolve(options, SamplingModel(), kVocabulary);
  EXPECT_FALSE(settings.greedy());
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
    EXPECT_EQ(Resolve(options, SamplingModel(), kVocabulary).top_k, 0) << top_k;
  }
  SamplingOptions options;
  options.top_k = kVocab - 1;
  EXPECT_EQ(Resolve(options, SamplingModel(), kVocabulary).top_k, kVocab - 1);
}

TEST(SamplingRules, TopPZeroAndOneAreOff) {
  for (const float top_p : {0.0f, -0.0f, 1.0f}) {
    SamplingOptions options;
    options.top_p = top_p;
    EXPECT_EQ(Resolve(options, SamplingModel(), kVocabulary).top_p, 1.0f) << top_p;
  }
}

TEST(SamplingRules, SamplingWithoutAnyBoundIsLegal) {
  SearchDefaults defaults = GreedyModel();
  defaults.top_k = 0;
  defaults.top_p = 0.0f;
  SamplingOptions options;
  options.do_sample = true;
  EXPECT_FALSE(Resolve(options, defaults, kVocabulary).greedy());
}

// For each number option, a value at which it acts.
template <typename Visit>
void ForEachThatActs(const Visit& visit) {
  for (const SamplingOption& option : kSamplingOptions) {
    std::visit(
        [&](auto fields) {
          using Value = typename decltype(fields)::Value;
          if constexpr (!std::is_same_v<Value, bool>) {
            SamplingOptions options;
            options.*fields.asked = std::is_same_v<Value, float> ? static_cast<Value>(0.3) : static_cast<Value>(7);
            visit(option, fields, options);
          }
        },
        option.fields);
  }
}

TEST(SamplingRules, EveryOptionOfASamplingTurnReachesTheSettings) {
  ForEachThatActs([](const SamplingOption& option, auto fields, SamplingOptions options) {
    if (option.name == "min_generated_tokens") options.max_generated_tokens = 9;
    const SamplingSettings settings = Resolve(options, SamplingModel(), kVocabulary);
    EXPECT_EQ(settings.*fields.resolved, *(options.*fields.asked)) << option.name;
  });
}

TEST(SamplingRules, EveryModelDefaultReachesTheSettings) {
  ForEachThatActs([](const SamplingOption& option, auto fields, const SamplingOptions& options) {
    if (option.source == OptionSource::kTurnOnly) return;
    SearchDefaults defaults = SamplingModel();
    defaults.*fields.model = *(options.*fields.asked);
    EXPECT_EQ(Resolve({}, defaults, kVocabulary).*fields.resolved, *(options.*fields.asked)) << option.name;
  });
}

TEST(SamplingRules, OnAGreedyTurnProcessorsActAndWarpersAreRefused) {
  ForEachThatActs([](const SamplingOption& option, auto fields, SamplingOptions options) {
    options.do_sample = false;
    if (option.stage == OptionStage::kWarper) {
      EXPECT_TRUE(Mentions(ResolveRefusal(options, SamplingModel()),
                           Message(std::string(option.name), " = ", *(options.*fields.asked), " has no effect")));
    } else {
      const SamplingSettings settings = Resolve(options, SamplingModel(), kVocabulary);
      EXPECT_TRUE(settings.greedy());
      EXPECT_EQ(settings.*fields.resolved, *(options.*fields.asked)) << option.name;
    }
  });
}

TEST(SamplingRules, AGreedyTurnHasNoWarperSet) {
  SearchDefaults defaults = SamplingModel();
  defaults.min_p = 0.1f;
  defaults.xtc_probability = 0.5f;
  SamplingOptions options;
  options.do_sample = false;
  const SamplingSettings settings = Resolve(options, defaults, kVocabulary);
  EXPECT_TRUE(settings.greedy());
  const SamplingSettings off;
  for (const SamplingOption& option : kSamplingOptions) {
    if (option.stage != OptionStage::kWarper) continue;
    std::visit([&](auto fields) { EXPECT_EQ(settings.*fields.resolved, off.*fields.resolved) << option.name; },
               option.fields);
  }
}

// An option that is off must cost nothing, so it has one form, whichever way it was said.
TEST(SamplingRules, ValuesThatAreOffTakeOneForm) {
  const SamplingSettings absent = Resolve({}, GreedyModel(), kVocabulary);
  for (const SamplingOption& option : kSamplingOptions) {
    std::visit(
        [&](auto fields) {
          for (const auto value : {fields.off, fields.also_off}) {
            SamplingOptions options;
            options.*fields.asked = value;
            EXPECT_EQ(Resolve(options, GreedyModel(), kVocabulary).*fields.resolved, absent.*fields.resolved)
                << option.name;
          }
        },
        option.fields);
  }
}

TEST(SamplingRules, GreedyAcceptsOptionsThatAreOff) {
  for (const bool explicit_greedy : {false, true}) {
    for (const float off : {0.0f, 1.0f}) {
      SamplingOptions options;
      if (explicit_greedy) options.do_sample = false;
      options.temperature = off;
      options.top_p = off;
      options.top_k = static_cast<int32_t>(off);
      EXPECT_TRUE(Resolve(options, GreedyModel(), kVocabulary).greedy());
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
    EXPECT_TRUE(Resolve(options, SamplingModel(), kVocabulary).greedy());
    options.temperature = 0.7f;
    options.top_k = 1;
    EXPECT_TRUE(Resolve(options, SamplingModel(), kVocabulary).greedy());
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
  EXPECT_FALSE(Resolve(options, pinned_t, kVocabulary).greedy());
  EXPECT_TRUE(Mentions(ResolveRefusal(options, pinned_k), "search.top_k = 1"));
  options.top_k = 20;
  EXPECT_FALSE(Resolve(options, pinned_k, kVocabulary).greedy());
  options.top_k = 0;
  EXPECT_FALSE(Resolve(options, pinned_k, kVocabulary).greedy());
  options.top_k = 1;
  EXPECT_TRUE(Resolve(options, pinned_k, kVocabulary).greedy());
}

TEST(SamplingRules, AModelThatSamplesButPinsGreedyIsGreedyAndRefusesWarpers) {
  SearchDefaults defaults = SamplingModel();
  defaults.top_k = 1;
  EXPECT_TRUE(Resolve({}, defaults, kVocabulary).greedy());
  SamplingOptions options;
  options.temperature = 0.7f;
  EXPECT_TRUE(Mentions(ResolveRefusal(options, defaults), "temperature = 0.7 has no effect"));
  options.top_k = 10;
  EXPECT_FALSE(Resolve(options, defaults, kVocabulary).greedy());
}

TEST(SamplingRules, RefusesAMinimumAboveTheMaximumOfGeneratedTokens) {
  SamplingOptions options;
  options.min_generated_tokens = 5;
  EXPECT_EQ(Resolve(options, GreedyModel(), kVocabulary).min_generated_tokens, 5u);
  options.max_generated_tokens = 5;
  EXPECT_EQ(Resolve(options, GreedyModel(), kVocabulary).max_generated_tokens, 5u);
  options.max_generated_tokens = 2;
  const std::string message = ResolveRefusal(options, GreedyModel());
  EXPECT_TRUE(Mentions(message, "min_generated_tokens is 5"));
  EXPECT_TRUE(Mentions(message, "max_generated_tokens is 2"));
}

}  // namespace
}  // namespace oga::search
