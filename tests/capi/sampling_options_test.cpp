// The options by name and the lists of tokens of OgaTurnOptions, on a real decoder.
#include <oga/turn_options.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "capi/harness.h"

namespace oga::capi_test {
namespace {

using Tokens = std::vector<int32_t>;
using SequencesHandle = Owned<OgaSequences, OgaDestroySequences>;

class SamplingOptions : public WithEngine {
 protected:
  static constexpr uint64_t kTokens = 12;
  using Configure = std::function<void(OgaTurnOptions*)>;

  // What a fresh request generates with the options that `configure` sets.
  Transcript With(const Configure& configure) {
    const RequestHandle request = MakeRequest(engine_.get());
    const TurnOptionsHandle options = MakeTurnOptions(request.get());
    Must(OgaTurnOptionsSetMaxGeneratedTokens(options.get(), kTokens));
    configure(options.get());
    return Finish(request.get(), Prompt(4), options.get());
  }

  static void Sample(OgaTurnOptions* options) {
    Must(OgaTurnOptionsSetBool(options, "do_sample", true));
    Must(OgaTurnOptionsSetNumber(options, "top_k", 0));
    Must(OgaTurnOptionsSetNumber(options, "temperature", 2));
    Must(OgaTurnOptionsSetNumber(options, "seed", 5));
    Must(OgaTurnOptionsSetNumber(options, "min_generated_tokens", kTokens));
  }

  static SequencesHandle MakeSequences(const std::vector<Tokens>& lists) {
    OgaSequences* sequences = nullptr;
    Must(OgaCreateSequences(&sequences));
    for (const Tokens& list : lists) Must(OgaAppendTokenSequence(list.data(), list.size(), sequences));
    return SequencesHandle(sequences);
  }
};

TEST_F(SamplingOptions, ByNameDoWhatTheTypedSettersDo) {
  const Tokens by_name = With([](OgaTurnOptions* options) {
                           Sample(options);
                           Must(OgaTurnOptionsSetNumber(options, "top_p", 0.9));
                           Must(OgaTurnOptionsSetNumber(options, "repetition_penalty", 1.3));
                           Must(OgaTurnOptionsSetNumber(options, "no_repeat_ngram_size", 2));
                         }).tokens;
  const Tokens by_type = With([](OgaTurnOptions* options) {
                           Must(OgaTurnOptionsSetDoSample(options, true));
                           Must(OgaTurnOptionsSetTopK(options, 0));
                           Must(OgaTurnOptionsSetTemperature(options, 2));
                           Must(OgaTurnOptionsSetSeed(options, 5));
                           Must(OgaTurnOptionsSetMinGeneratedTokens(options, kTokens));
                           Must(OgaTurnOptionsSetTopP(options, 0.9f));
                           Must(OgaTurnOptionsSetRepetitionPenalty(options, 1.3f));
                           Must(OgaTurnOptionsSetNoRepeatNgramSize(options, 2));
                         }).tokens;
  EXPECT_EQ(by_name, by_type);
  EXPECT_NE(by_name, With(Sample).tokens);
}

TEST_F(SamplingOptions, EachWarperActs) {
  const Tokens plain = With(Sample).tokens;
  const Tokens greedy = Generate(Prompt(4), kTokens);
  for (const char* narrow : {"top_p", "top_n_sigma"}) {
    EXPECT_EQ(With([&](OgaTurnOptions* options) {
                Sample(options);
                Must(OgaTurnOptionsSetNumber(options, narrow, 1e-6));
              }).tokens,
              greedy)
        << narrow;
  }
  EXPECT_EQ(With([&](OgaTurnOptions* options) {
              Sample(options);
              Must(OgaTurnOptionsSetNumber(options, "min_p", 1));
            }).tokens,
            greedy);
  for (const char* name : {"typical_p", "presence_penalty", "frequency_penalty"}) {
    EXPECT_NE(With([&](OgaTurnOptions* options) {
                Sample(options);
                Must(OgaTurnOptionsSetNumber(options, name, name[0] == 't' ? 0.1 : 50));
              }).tokens,
              plain)
        << name;
  }
  EXPECT_NE(With([](OgaTurnOptions* options) {
              Sample(options);
              Must(OgaTurnOptionsSetNumber(options, "xtc_probability", 1));
              Must(OgaTurnOptionsSetNumber(options, "xtc_threshold", 0));
            }).tokens,
            plain);
}

TEST_F(SamplingOptions, WrongNamesAndValuesAreRefusedAndKeepThePrevious) {
  const RequestHandle request = MakeRequest(engine_.get());
  const TurnOptionsHandle owned = MakeTurnOptions(request.get());
  OgaTurnOptions* options = owned.get();
  Sample(options);
  Must(OgaTurnOptionsSetMaxGeneratedTokens(options, kTokens));
  const struct {
    const char* name;
    double value;
    const char* part;
  } wrong[] = {
      {"temprature", 1, "'temprature' is no turn option; the nearest one is 'temperature'"},
      {"", 1, "'' is no turn option"},
      {"\xff", 1, "'\\xff' is no turn option"},
      {"temperature", -1, "temperature is -1; it must be finite and at least 0"},
      {"temperature", NAN, "temperature is nan"},
      {"top_k", 0.5, "top_k is 0.5; it must be an integer"},
      {"top_k", 1e10, "top_k is 10000000000"},
      {"min_p", 1.1, "min_p is 1.1; it must be between 0 and 1"},
      {"typical_p", -0.5, "typical_p is -0.5"},
      {"xtc_probability", 2, "xtc_probability is 2"},
      {"top_n_sigma", INFINITY, "top_n_sigma is inf"},
      {"presence_penalty", 1e300, "presence_penalty is 1e+300"},
      {"dry_base", 0.5, "dry_base is 0.5; it must be finite and at least 1"},
      {"seed", -1, "seed is -1"},
      {"min_generated_tokens", 1e18, "min_generated_tokens is 1e+18"},
      {"do_sample", 1, "do_sample is true or false"},
  };
  for (const auto& row : wrong) {
    EXPECT_TRUE(Fails(OgaTurnOptionsSetNumber(options, row.name, row.value), OgaStatusCode_InvalidArgument, row.part));
  }
  EXPECT_TRUE(Fails(OgaTurnOptionsSetBool(options, "top_k", true), OgaStatusCode_InvalidArgument, "top_k is a number"));
  EXPECT_TRUE(Fails(OgaTurnOptionsSetBool(options, "ignore_eol", true), OgaStatusCode_InvalidArgument, "'ignore_eos'"));
  EXPECT_EQ(Finish(request.get(), Prompt(4), options).tokens, With(Sample).tokens);
}

TEST_F(SamplingOptions, ListsSteerTheOutput) {
  const Tokens plain =
      With([](OgaTurnOptions* options) { Must(OgaTurnOptionsSetMinGeneratedTokens(options, kTokens)); }).tokens;
  const int32_t first = plain[0];
  const auto only = [&](const Configure& configure) {
    return With([&](OgaTurnOptions* options) {
             Must(OgaTurnOptionsSetMinGeneratedTokens(options, kTokens));
             configure(options);
           })
        .tokens;
  };
  const float up = 1000;
  const int32_t liked = (first + 7) % kVocab == 2 ? 9 : (first + 7) % kVocab;
  EXPECT_EQ(only([&](OgaTurnOptions* options) { Must(OgaTurnOptionsSetLogitBias(options, &liked, &up, 1)); }),
            Tokens(kTokens, liked));
  const Tokens allowed{20, 21, 22};
  for (const int32_t token :
       only([&](OgaTurnOptions* options) { Must(OgaTurnOptionsSetAllowedTokens(options, allowed.data(), 3)); })) {
    EXPECT_TRUE(token >= 20 && token <= 22) << token;
  }
  const SequencesHandle banned = MakeSequences({{first}});
  const Tokens without =
      only([&](OgaTurnOptions* options) { Must(OgaTurnOptionsSetBannedSequences(options, banned.get())); });
  EXPECT_EQ(std::set<int32_t>(without.begin(), without.end()).count(first), 0u);
  // A count of 0, or an empty list, takes each back.
  const SequencesHandle none = MakeSequences({});
  EXPECT_EQ(only([&](OgaTurnOptions* options) {
              Must(OgaTurnOptionsSetLogitBias(options, &liked, &up, 1));
              Must(OgaTurnOptionsSetLogitBias(options, nullptr, nullptr, 0));
              Must(OgaTurnOptionsSetAllowedTokens(options, allowed.data(), 3));
              Must(OgaTurnOptionsSetAllowedTokens(options, nullptr, 0));
              Must(OgaTurnOptionsSetBannedSequences(options, banned.get()));
              Must(OgaTurnOptionsSetBannedSequences(options, none.get()));
              Must(OgaTurnOptionsSetDryBreakers(options, allowed.data(), 3));
            }),
            plain);
}

TEST_F(SamplingOptions, AStopTokenEndsTheTurnAndStays) {
  const int32_t first = Generate(Prompt(4), 1)[0];
  const RequestHandle request = MakeRequest(engine_.get());
  const TurnOptionsHandle options = MakeTurnOptions(request.get());
  Must(OgaTurnOptionsSetBool(options.get(), "ignore_eos", true));
  Must(OgaTurnOptionsSetStopTokens(options.get(), &first, 1));
  const Transcript turn = Finish(request.get(), Prompt(4), options.get());
  EXPECT_EQ(turn.tokens, Tokens{first});
  EXPECT_EQ(turn.endings.at(0).reason, OgaFinishReason_Eos);
  EXPECT_EQ(turn.endings.at(0).generated_tokens, 1u);

  Tokens whole = Prompt(4);
  whole.insert(whole.end(), {first, 9});
  const RequestHandle fresh = MakeRequest(engine_.get());
  const Tokens expected = Finish(fresh.get(), whole, ExactlyTokens(fresh.get(), 5).get()).tokens;
  EXPECT_EQ(Finish(request.get(), {9}, ExactlyTokens(request.get(), 5).get()).tokens, expected);
}

TEST_F(SamplingOptions, ListsAreRefusedWithTheOldOnesKept) {
  const RequestHandle request = MakeRequest(engine_.get());
  const TurnOptionsHandle owned = ExactlyTokens(request.get(), kTokens);
  OgaTurnOptions* options = owned.get();
  const Tokens allowed{20, 21};
  Must(OgaTurnOptionsSetAllowedTokens(options, allowed.data(), 2));
  const Tokens tokens{5, -1};
  const Tokens twice{5, 5};
  const float biases[] = {1.0f, NAN};
  const SequencesHandle empty = MakeSequences({{4}, {}});
  EXPECT_TRUE(Fails(OgaTurnOptionsSetAllowedTokens(options, tokens.data(), 2), OgaStatusCode_InvalidArgument,
                    "allowed_tokens has -1 at index 1"));
  EXPECT_TRUE(Fails(OgaTurnOptionsSetStopTokens(options, tokens.data(), 2), OgaStatusCode_InvalidArgument,
                    "stop_tokens has -1 at index 1"));
  EXPECT_TRUE(Fails(OgaTurnOptionsSetDryBreakers(options, tokens.data(), 2), OgaStatusCode_InvalidArgument,
                    "dry_breakers has -1 at index 1"));
  EXPECT_TRUE(Fails(OgaTurnOptionsSetLogitBias(options, Tokens{5, 6}.data(), biases, 2), OgaStatusCode_InvalidArgument,
                    "logit_bias of token 6 is nan"));
  EXPECT_TRUE(Fails(OgaTurnOptionsSetLogitBias(options, twice.data(), std::vector<float>{1, 1}.data(), 2),
                    OgaStatusCode_InvalidArgument, "logit_bias names token 5 twice"));
  EXPECT_TRUE(Fails(OgaTurnOptionsSetBannedSequences(options, empty.get()), OgaStatusCode_InvalidArgument,
                    "banned_sequences has an empty sequence at index 1"));
  EXPECT_TRUE(Fails(OgaTurnOptionsSetStopTokens(options, tokens.data(), SIZE_MAX), OgaStatusCode_OutOfMemory));
  for (const int32_t token : Finish(request.get(), Prompt(4), options).tokens) {
    EXPECT_TRUE(token == 20 || token == 21) << token;
  }
}

TEST_F(SamplingOptions, WhatDependsOnTheModelIsRefusedWhenTheTurnBegins) {
  const RequestHandle request = MakeRequest(engine_.get());
  const auto refused = [&](const Configure& configure, const std::string& part) {
    const TurnOptionsHandle options = MakeTurnOptions(request.get());
    configure(options.get());
    uint64_t turn_id = 0;
    const Tokens prompt = Prompt(4);
    return Fails(OgaRequestBeginTurn(request.get(), options.get(), prompt.data(), prompt.size(), &turn_id),
                 OgaStatusCode_InvalidArgument, part);
  };
  const int32_t beyond = kVocab;
  const float bias = 1;
  const SequencesHandle banned = MakeSequences({{1, beyond}});
  EXPECT_TRUE(refused([&](OgaTurnOptions* options) { Must(OgaTurnOptionsSetLogitBias(options, &beyond, &bias, 1)); },
                      "logit_bias names token 61; the vocabulary has ids 0 to 60"));
  EXPECT_TRUE(refused([&](OgaTurnOptions* options) { Must(OgaTurnOptionsSetStopTokens(options, &beyond, 1)); },
                      "stop_tokens names token 61"));
  EXPECT_TRUE(refused([&](OgaTurnOptions* options) { Must(OgaTurnOptionsSetBannedSequences(options, banned.get())); },
                      "banned_sequences names token 61"));
  EXPECT_TRUE(refused([](OgaTurnOptions* options) { Must(OgaTurnOptionsSetNumber(options, "min_p", 0.5)); },
                      "min_p = 0.5 has no effect on a greedy turn"));
  const int32_t token = 20;
  EXPECT_TRUE(refused(
      [&](OgaTurnOptions* options) {
        Must(OgaTurnOptionsSetAllowedTokens(options, &token, 1));
        Must(OgaTurnOptionsSetStopTokens(options, &token, 1));
        Must(OgaTurnOptionsSetMinGeneratedTokens(options, 2));
      },
      "no token is left to choose"));
  EXPECT_EQ(BeginTurn(request.get(), Prompt(4)), 1u) << "a refused turn took an id";
}

}  // namespace
}  // namespace oga::capi_test
