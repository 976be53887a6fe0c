#include "engine/turn_options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "native/engine/engine_harness.h"

namespace oga::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class TurnOptionsTest : public ::testing::Test {
 protected:
  TurnOptionsTest() : request(harness.Create()), options(request->CreateTurnOptions()) {}

  EngineHarness harness;
  std::shared_ptr<Request> request;
  std::unique_ptr<TurnOptions> options;
};

TEST_F(TurnOptionsTest, StartWithNothingSetAndKeepWhatIsSet) {
  EXPECT_FALSE(options->values().do_sample || options->values().temperature || options->values().seed);
  options->SetDoSample(true);
  options->SetTemperature(0.5f);
  options->SetTopK(4);
  options->SetTopP(0.25f);
  options->SetRepetitionPenalty(1.25f);
  options->SetSeed(std::numeric_limits<uint64_t>::max());
  options->SetMaxGeneratedTokens(9);
  options->SetMinGeneratedTokens(2);
  const SamplingOptions& values = options->values();
  EXPECT_EQ(values.do_sample, true);
  EXPECT_EQ(values.temperature, 0.5f);
  EXPECT_EQ(values.top_k, 4);
  EXPECT_EQ(values.top_p, 0.25f);
  EXPECT_EQ(values.repetition_penalty, 1.25f);
  EXPECT_EQ(values.seed, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(values.max_generated_tokens, 9u);
  EXPECT_EQ(values.min_generated_tokens, 2u);
  options->ClearSeed();
  EXPECT_FALSE(values.seed.has_value());
  EXPECT_EQ(values.top_k, 4) << "only the seed is cleared";
  options->Reset();
  EXPECT_FALSE(values.top_k.has_value());
  EXPECT_FALSE(values.max_generated_tokens.has_value());
}

TEST_F(TurnOptionsTest, ARefusedValueKeepsTheOldOne) {
  struct Case {
    const char* option;
    std::function<void(TurnOptions&)> set;
  };
  const std::vector<Case> cases{
      {"temperature", [](TurnOptions& o) { o.SetTemperature(-1.0f); }},
      {"temperature", [](TurnOptions& o) { o.SetTemperature(kNan); }},
      {"temperature", [](TurnOptions& o) { o.SetTemperature(kInfinity); }},
      {"top_p", [](TurnOptions& o) { o.SetTopP(-0.1f); }},
      {"top_p", [](TurnOptions& o) { o.SetTopP(1.1f); }},
      {"top_p", [](TurnOptions& o) { o.SetTopP(kNan); }},
      {"top_k", [](TurnOptions& o) { o.SetTopK(-1); }},
      {"top_k", [](TurnOptions& o) { o.SetTopK(std::numeric_limits<int32_t>::min()); }},
      {"repetition_penalty", [](TurnOptions& o) { o.SetRepetitionPenalty(0.0f); }},
      {"repetition_penalty", [](TurnOptions& o) { o.SetRepetitionPenalty(-1.0f); }},
      {"repetition_penalty", [](TurnOptions& o) { o.SetRepetitionPenalty(kInfinity); }},
      {"repetition_penalty", [](TurnOptions& o) { o.SetRepetitionPenalty(kNan); }},
  };
  options->SetTemperature(0.5f);
  options->SetTopP(0.25f);
  options->SetTopK(4);
  options->SetRepetitionPenalty(1.25f);
  for (const Case& refused : cases) {
    try {
      refused.set(*options);
      ADD_FAILURE() << refused.option << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
      EXPECT_NE(error.message().find(refused.option), std::string::npos) << error.message();
    }
    EXPECT_EQ(options->values().temperature, 0.5f);
    EXPECT_EQ(options->values().top_p, 0.25f);
    EXPECT_EQ(options->values().top_k, 4);
    EXPECT_EQ(options->values().repetition_penalty, 1.25f);
  }
}

TEST_F(TurnOptionsTest, BelongToOneRequest) {
  const auto other = harness.Create();
  EXPECT_TRUE(options->BelongsTo(*request));
  EXPECT_FALSE(options->BelongsTo(*other));
}

TEST_F(TurnOptionsTest, AreCopiedByTheTurnThatTakesThem) {
  options->SetMaxGeneratedTokens(3);
  request->BeginTurn(EngineHarness::Prompt(4), options.get());
  options->SetMaxGeneratedTokens(1);
  options->Reset();
  harness.Finish();
  EXPECT_EQ(harness.Of(request).tokens.size(), 3u);
}

TEST_F(TurnOptionsTest, AreUselessOnceTheRequestIsClosed) {
  request->Close();
  EXPECT_THROW(options->SetTopK(3), Error);
  EXPECT_THROW(options->Reset(), Error);
  EXPECT_THROW(options->ClearSeed(), Error);
  EXPECT_THROW(request->CreateTurnOptions(), Error);
}

TEST_F(TurnOptionsTest, DoNotKeepTheRequestAlive) {
  request->Close();
  request.reset();
  try {
    options->SetMaxGeneratedTokens(3);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kInvalidState);
    EXPECT_NE(error.message().find("gone"), std::string::npos) << error.message();
  }
}

TEST_F(TurnOptionsTest, BelongToTheThreadOfTheEngine) {
  options->SetTopK(4);
  std::thread([this] {
    EXPECT_THROW(options->SetTopK(5), Error);
    EXPECT_THROW(options->Reset(), Error);
  }).join();
  EXPECT_EQ(options->values().top_k, 4);
}

}  // namespace
}  // namespace oga::testing
