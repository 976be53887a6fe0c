#include <oga/turn_options.h>

#include <cmath>
#include <functional>
#include <set>

#include "capi/harness.h"

namespace oga::capi_test {
namespace {

class TurnOptions : public WithEngine {
 protected:
  static constexpr uint64_t kTokens = 12;

  using Configure = std::function<void(OgaTurnOptions*)>;

  // Twelve tokens of a fresh request with the options that `configure` sets.
  std::vector<int32_t> With(const Configure& configure) {
    const RequestHandle request = MakeRequest(engine_.get());
    const TurnOptionsHandle options = ExactlyTokens(request.get(), kTokens);
    configure(options.get());
    return Finish(request.get(), Prompt(4), options.get()).tokens;
  }

  // Sampling with one seed, so that a changed setting shows as changed tokens.
  static void Sample(OgaTurnOptions* options) {
    Must(OgaTurnOptionsSetDoSample(options, true));
    Must(OgaTurnOptionsSetTemperature(options, 1.5f));
    Must(OgaTurnOptionsSetTopK(options, 0));
    Must(OgaTurnOptionsSetSeed(options, 5));
  }

  // Whether the combination that `configure` makes is refused when a turn begins.
  testing::AssertionResult RefusedAtBegin(const Configure& configure, const std::string& part) {
    const RequestHandle request = MakeRequest(engine_.get());
    const TurnOptionsHandle options = MakeTurnOptions(request.get());
    configure(options.get());
    uint64_t turn_id = 99;
    const std::vector<int32_t> prompt = Prompt(4);
    return Fails(OgaRequestBeginTurn(request.get(), options.get(), prompt.data(), prompt.size(), &turn_id),
                 OgaStatusCode_InvalidArgument, part);
  }
};

TEST_F(TurnOptions, IllegalValuesAreRefusedAndKeepThePrevious) {
  constexpr float kNan = NAN;
  constexpr float kInf = INFINITY;
  const RequestHandle request = MakeRequest(engine_.get());
  const TurnOptionsHandle owned = ExactlyTokens(request.get(), kTokens);
  OgaTurnOptions* options = owned.get();
  Sample(options);
  Must(OgaTurnOptionsSetTopP(options, 0.95f));
  Must(OgaTurnOptionsSetRepetitionPenalty(options, 1.25f));
  for (const float bad : {-0.1f, kNan, kInf, -kInf}) {
    EXPECT_TRUE(Fails(OgaTurnOptionsSetTemperature(options, bad), OgaStatusCode_InvalidArgument, "temperature"));
    EXPECT_TRUE(Fails(OgaTurnOptionsSetTopP(options, bad), OgaStatusCode_InvalidArgument, "top_p"));
    EXPECT_TRUE(
        Fails(OgaTurnOptionsSetRepetitionPenalty(options, bad), OgaStatusCode_InvalidArgument, "repetition_penalty"));
  }
  EXPECT_TRUE(Fails(OgaTurnOptionsSetTopP(options, 1.0001f), OgaStatusCode_InvalidArgument, "top_p is 1.0001"));
  EXPECT_TRUE(Fails(OgaTurnOptionsSetRepetitionPenalty(options, 0.0f), OgaStatusCode_InvalidArgument));
  EXPECT_TRUE(Fails(OgaTurnOptionsSetTopK(options, -1), OgaStatusCode_InvalidArgument, "top_k is -1"));

  const std::vector<int32_t> expected = With([](OgaTurnOptions* fresh) {
    Sample(fresh);
    Must(OgaTurnOptionsSetTopP(fresh, 0.95f));
    Must(OgaTurnOptionsSetRepetitionPenalty(fresh, 1.25f));
  });
  EXPECT_EQ(Finish(request.get(), Prompt(4), options).tokens, expected);
}

TEST_F(TurnOptions, EveryWayToAskForGreedyIsGreedy) {
  const std::vector<int32_t> greedy = Generate(Prompt(4), kTokens);
  const std::vector<Configure> ways = {
      [](OgaTurnOptions* options) { Must(OgaTurnOptionsSetDoSample(options, false)); },
      [](OgaTurnOptions* options) {
        Must(OgaTurnOptionsSetDoSample(options, true));
        Must(OgaTurnOptionsSetTemperature(options, 0.0f));
        Must(OgaTurnOptionsSetTopP(options, 0.5f));
        Must(OgaTurnOptionsSetSeed(options, 1));
      },
      [](OgaTurnOptions* options) {
        Must(OgaTurnOptionsSetDoSample(options, true));
        Must(OgaTurnOptionsSetTopK(options, 1));
      },
      [](OgaTurnOptions* options) {
        Must(OgaTurnOptionsSetDoSample(options, true));
        Must(OgaTurnOptionsSetTemperature(options, 1e-7f));
      },
      [](OgaTurnOptions* options) {
        Must(OgaTurnOptionsSetDoSample(options, true));
        Must(OgaTurnOptionsSetTopP(options, 1e-7f));
      },
  };
  for (size_t i = 0; i < ways.size(); ++i) EXPECT_EQ(With(ways[i]), greedy) << "way " << i;
}

TEST_F(TurnOptions, OffIsOffHoweverItIsSaid) {
  const std::vector<int32_t> expected = With(Sample);
  EXPECT_NE(expected, Generate(Prompt(4), kTokens));
  for (const int32_t top_k : {0, kVocab, kVocab + 1, INT32_MAX}) {
    EXPECT_EQ(With([&](OgaTurnOptions* options) {
                Sample(options);
                Must(OgaTurnOptionsSetTopK(options, top_k));
              }),
              expected)
        << top_k;
  }
  for (const float top_p : {0.0f, -0.0f, 1.0f}) {
    EXPECT_EQ(With([&](OgaTurnOptions* options) {
                Sample(options);
                Must(OgaTurnOptionsSetTopP(options, top_p));
              }),
              expected)
        << top_p;
  }
  EXPECT_EQ(With([](OgaTurnOptions* options) {
              Sample(options);
              Must(OgaTurnOptionsSetRepetitionPenalty(options, 1.0f));
            }),
            expected);
}

TEST_F(TurnOptions, SeedsMakeDrawsReproducible) {
  const std::vector<uint64_t> seeds = {0, 1, uint64_t{1} << 32, UINT64_MAX};
  std::set<std::vector<int32_t>> streams;
  for (const uint64_t seed : seeds) {
    const auto sample = [seed](OgaTurnOptions* options) {
      Sample(options);
      Must(OgaTurnOptionsSetSeed(options, seed));
    };
    const std::vector<int32_t> tokens = With(sample);
    EXPECT_EQ(With(sample), tokens) << seed;
    streams.insert(tokens);
  }
  EXPECT_EQ(streams.size(), seeds.size()) << "two seeds share a stream";
}

TEST_F(TurnOptions, WithoutASeedRequestsDiffer) {
  const auto unseeded = [](OgaTurnOptions* options) {
    Sample(options);
    Must(OgaTurnOptionsClearSeed(options));
  };
  std::set<std::vector<int32_t>> streams;
  for (int i = 0; i < 4; ++i) streams.insert(With(unseeded));
  EXPECT_GT(streams.size(), 1u);
}

TEST_F(TurnOptions, ResetUnsetsEverythingAndKeepsTheBinding) {
  const RequestHandle request = MakeRequest(engine_.get());
  const TurnOptionsHandle options = ExactlyTokens(request.get(), 2);
  Sample(options.get());
  Must(OgaTurnOptionsReset(options.get()));
  Must(OgaTurnOptionsSetMaxGeneratedTokens(options.get(), kTokens));
  Must(OgaTurnOptionsSetMinGeneratedTokens(options.get(), kTokens));
  EXPECT_EQ(Finish(request.get(), Prompt(4), options.get()).tokens, Generate(Prompt(4), kTokens));
}

TEST_F(TurnOptions, AreCopiedWhenATurnBegins) {
  const RequestHandle request = MakeRequest(engine_.get());
  TurnOptionsHandle options = ExactlyTokens(request.get(), 3);
  BeginTurn(request.get(), Prompt(4), options.get());
  Must(OgaTurnOptionsSetMaxGeneratedTokens(options.get(), 9));
  options.reset();
  EXPECT_EQ(RunToEnd(engine_.get(), buffer_.get())[request.get()].tokens.size(), 3u);
}

TEST_F(TurnOptions, ApplyToTheTurnsTheyArePassedTo) {
  const RequestHandle request = MakeRequest(engine_.get());
  const TurnOptionsHandle options = ExactlyTokens(request.get(), 2);
  EXPECT_EQ(Finish(request.get(), Prompt(2), options.get()).tokens.size(), 2u);
  EXPECT_EQ(Finish(request.get(), Prompt(2), options.get()).tokens.size(), 2u);
  const Transcript unlimited = Finish(request.get(), Prompt(2));
  EXPECT_NE(unlimited.endings[0].reason, OgaFinishReason_MaxGeneratedTokens);
}

TEST_F(TurnOptions, TheMinimumMasksEos) {
  const int32_t first = Generate(Prompt(4), 1)[0];
  const ModelHandle model = MakeModel(R"({"model": {"eos_token_id": [)" + std::to_string(first) + ", 2]}}");
  const EngineHandle engine = MakeEngine(model.get());
  const BufferHandle buffer = MakeBuffer(engine.get());
  const RequestHandle request = MakeRequest(engine.get());
  const TurnOptionsHandle options = MakeTurnOptions(request.get());
  Must(OgaTurnOptionsSetMinGeneratedTokens(options.get(), 5));
  Must(OgaTurnOptionsSetMaxGeneratedTokens(options.get(), 20));
  BeginTurn(request.get(), Prompt(4), options.get());
  const std::vector<int32_t> tokens = RunToEnd(engine.get(), buffer.get())[request.get()].tokens;
  ASSERT_GE(tokens.size(), 5u);
  for (const int32_t token : tokens) EXPECT_TRUE(token != first && token != 2) << token;
}

TEST_F(TurnOptions, ARepetitionPenaltyChangesWhatRepeats) {
  const std::vector<int32_t> penalized =
      With([](OgaTurnOptions* options) { Must(OgaTurnOptionsSetRepetitionPenalty(options, 1e6f)); });
  std::set<int32_t> seen;
  for (const int32_t token : Prompt(4)) seen.insert(token);
  for (const int32_t token : penalized) EXPECT_TRUE(seen.insert(token).second) << token << " came twice";
}

TEST_F(TurnOptions, ContradictionsAreRefusedWhenTheTurnBegins) {
  EXPECT_TRUE(RefusedAtBegin(
      [](OgaTurnOptions* options) {
        Must(OgaTurnOptionsSetMinGeneratedTokens(options, 5));
        Must(OgaTurnOptionsSetMaxGeneratedTokens(options, 2));
      },
      "min_generated_tokens is 5"));
  EXPECT_TRUE(
      RefusedAtBegin([](OgaTurnOptions* options) { Must(OgaTurnOptionsSetMinGeneratedTokens(options, UINT64_MAX)); },
                     "min_generated_tokens is 18446744073709551615"));
  EXPECT_TRUE(RefusedAtBegin([](OgaTurnOptions* options) { Must(OgaTurnOptionsSetTemperature(options, 0.5f)); },
                             "temperature = 0.5"));
  EXPECT_TRUE(RefusedAtBegin([](OgaTurnOptions* options) { Must(OgaTurnOptionsSetTopK(options, 5)); }, "top_k = 5"));
  EXPECT_TRUE(
      RefusedAtBegin([](OgaTurnOptions* options) { Must(OgaTurnOptionsSetTopP(options, 0.5f)); }, "top_p = 0.5"));
}

TEST_F(TurnOptions, AnAbsurdMaximumMeansNoLimit) {
  const RequestHandle request = MakeRequest(engine_.get(), 8);
  const TurnOptionsHandle options = MakeTurnOptions(request.get());
  Must(OgaTurnOptionsSetMaxGeneratedTokens(options.get(), UINT64_MAX));
  Must(OgaTurnOptionsSetMinGeneratedTokens(options.get(), 4));
  const Transcript transcript = Finish(request.get(), Prompt(4), options.get());
  EXPECT_EQ(transcript.tokens.size(), 4u);
  EXPECT_EQ(transcript.endings[0].reason, OgaFinishReason_MaxSessionTokens);
}

TEST_F(TurnOptions, AClosedRequestTakesNone) {
  RequestHandle request = MakeRequest(engine_.get());
  const TurnOptionsHandle options = MakeTurnOptions(request.get());
  Must(OgaRequestClose(request.get()));
  OgaTurnOptions* more = options.get();
  EXPECT_TRUE(Fails(OgaRequestCreateTurnOptions(request.get(), &more), OgaStatusCode_InvalidState, "closed"));
  EXPECT_EQ(more, nullptr);
  EXPECT_TRUE(Fails(OgaTurnOptionsSetSeed(options.get(), 1), OgaStatusCode_InvalidState, "closed"));
  EXPECT_TRUE(Fails(OgaTurnOptionsReset(options.get()), OgaStatusCode_InvalidState, "closed"));
  request.reset();
  EXPECT_TRUE(Fails(OgaTurnOptionsReset(options.get()), OgaStatusCode_InvalidState));
}

}  // namespace
}  // namespace oga::capi_test
