#include "search/token_rules.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "native/search/row_case.h"
#include "search/sampling_rules.h"

namespace oga::search {
namespace {

constexpr int32_t kVocab = 64;
const Tokens kEos{62, 63};

Vocabulary SmallVocabulary(int32_t sampleable = kVocab) { return {kVocab, sampleable, kEos}; }

std::string Refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
    return error.message();
  }
  return {};
}

std::string FieldOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.field();
  }
  return "nothing was thrown";
}

std::string ResolveRefusal(const SamplingOptions& options, int32_t sampleable = kVocab) {
  return Refusal([&] { Resolve(options, {}, SmallVocabulary(sampleable)); });
}

TEST(TokenRules, ANegativeIdIsRefusedWhateverTheModel) {
  CheckTokens(Tokens{0, 5, std::numeric_limits<TokenId>::max()}, "stop_tokens");
  CheckTokens({}, "stop_tokens");
  EXPECT_EQ(Refusal([] {
              CheckTokens(Tokens{3, -1}, "stop_tokens");
            }),
            "stop_tokens has -1 at index 1; token ids are at least 0");
  EXPECT_EQ(Refusal([] {
              CheckBiases(std::vector<TokenBias>{{-5, 1.0f}});
            }),
            "logit_bias has -5 at index 0; token ids are at least 0");
  EXPECT_EQ(Refusal([] {
              CheckBannedSequences(std::vector<Tokens>{{1}, {2, -7}});
            }),
            "banned_sequences has -7 at index 1; token ids are at least 0");
}

TEST(TokenRules, ARefusalIsAboutTheOptionInItsField) {
  const std::vector<TokenBias> twice{{3, 1.0f}, {3, 2.0f}};
  const std::vector<TokenBias> endless{{3, kInf}};
  const std::vector<Tokens> empty{{}};
  EXPECT_EQ(FieldOf([] { CheckTokens(Tokens{-1}, "dry_breakers"); }), "dry_breakers");
  EXPECT_EQ(FieldOf([&] { CheckBiases(twice); }), "logit_bias");
  EXPECT_EQ(FieldOf([&] { CheckBiases(endless); }), "logit_bias");
  EXPECT_EQ(FieldOf([&] { CheckBannedSequences(empty); }), "banned_sequences");
  EXPECT_EQ(FieldOf([] { CheckTopLogprobs(-2, "prompt_logprobs"); }), "prompt_logprobs");
  EXPECT_EQ(FieldOf([] { CheckLogprobTokens(Tokens(LogprobOptions::kMaxTokens + 1, 1)); }), "logprob_tokens");
  const auto field = [](const SamplingOptions& options) {
    return FieldOf([&] { Resolve(options, {}, SmallVocabulary()); });
  };
  SamplingOptions unknown;
  unknown.allowed_tokens = {kVocab};
  EXPECT_EQ(field(unknown), "allowed_tokens");
  SamplingOptions nothing_left;
  nothing_left.allowed_tokens = {5};
  nothing_left.banned_sequences = {{5}};
  EXPECT_EQ(field(nothing_left), "") << "it is about both";
}

TEST(TokenRules, ABiasIsFiniteAndUnique) {
  CheckBiases(std::vector<TokenBias>{{1, -100.0f}, {2, 0.0f}, {3, std::numeric_limits<float>::max()}});
  for (const float bias : {kNan, kInf, -kInf}) {
    EXPECT_EQ(
        Refusal([&] {
          CheckBiases(std::vector<TokenBias>{{7, bias}});
        }),
        Message("logit_bias of token 7 is ", bias, "; it must be finite (to exclude a token, use banned_sequences)"));
  }
  EXPECT_EQ(Refusal([] {
              CheckBiases(std::vector<TokenBias>{{7, 1.0f}, {3, 1.0f}, {7, 1.0f}});
            }),
            "logit_bias names token 7 twice; give each token one bias");
}

TEST(TokenRules, ABannedSequenceHasAToken) {
  CheckBannedSequences({});
  EXPECT_EQ(Refusal([] {
              CheckBannedSequences(std::vector<Tokens>{{1}, {}});
            }),
            "banned_sequences has an empty sequence at index 1; a sequence needs at least one token");
}

TEST(TokenRules, IdsBeyondTheVocabularyAreNamed) {
  const std::pair<const char*, std::function<void(SamplingOptions&, TokenId)>> lists[] = {
      {"logit_bias",
       [](auto& options, TokenId token) {
         options.logit_bias = {{1, 1.0f}, {token, 1.0f}};
       }},
      {"stop_tokens",
       [](auto& options, TokenId token) {
         options.stop_tokens = {1, token};
       }},
      {"banned_sequences",
       [](auto& options, TokenId token) {
         options.banned_sequences = {{1}, {2, token, 3}};
       }},
      {"allowed_tokens",
       [](auto& options, TokenId token) {
         options.allowed_tokens = {1, 2, 3, token};
       }},
      {"dry_breakers",
       [](auto& options, TokenId token) {
         options.dry_breakers = {1, token};
       }},
  };
  for (const auto& [name, set] : lists) {
    for (const TokenId token : {kVocab, std::numeric_limits<TokenId>::max()}) {
      SamplingOptions options;
      set(options, token);
      EXPECT_EQ(ResolveRefusal(options), Message(name, " names token ", token, "; the vocabulary has ids 0 to 63"));
    }
    SamplingOptions options;
    set(options, kVocab - 1);
    EXPECT_EQ(ResolveRefusal(options), "") << name;
    EXPECT_EQ(ResolveRefusal(options, 60), "") << "padding has ids too: " << name;
  }
}

TEST(TokenRules, ListsReachTheSettingsInTheFormTheSamplerReads) {
  SamplingOptions options;
  options.stop_tokens = {9, 3, 9, 1};
  options.dry_breakers = {8, 2, 8};
  options.logit_bias = {{5, 1.5f}};
  options.banned_sequences = {{4, 5}, {4}};
  options.allowed_tokens = {0, 33, 33, 63};
  const SamplingSettings settings = Resolve(options, {}, SmallVocabulary());
  EXPECT_EQ(settings.stop_tokens, (Tokens{1, 3, 9}));
  EXPECT_EQ(settings.dry_breakers, (Tokens{2, 8}));
  ASSERT_EQ(settings.logit_bias.size(), 1u);
  EXPECT_EQ(settings.logit_bias[0].bias, 1.5f);
  EXPECT_EQ(settings.banned_sequences, options.banned_sequences);
  EXPECT_EQ(settings.allowed_bitmask, (std::vector<uint32_t>{1u, 0x80000002u}));
}

TEST(TokenRules, EmptyListsAreOff) {
  const SamplingSettings settings = Resolve({}, {}, SmallVocabulary());
  EXPECT_TRUE(settings.allowed_bitmask.empty());
  EXPECT_TRUE(settings.logit_bias.empty() && settings.stop_tokens.empty() && settings.banned_sequences.empty());
}

TEST(TokenRules, BansThatLeaveNoTokenToBeginWithAreRefused) {
  const auto refused = [](const SamplingOptions& options, int32_t sampleable = kVocab) {
    return ResolveRefusal(options, sampleable).find("no token is left to choose") == 0;
  };
  SamplingOptions options;
  options.allowed_tokens = {5, 6};
  options.banned_sequences = {{5}, {7, 6}};
  EXPECT_FALSE(refused(options)) << "6 is banned after 7 only";
  options.banned_sequences = {{5}, {6}};
  EXPECT_TRUE(refused(options));

  options = {};
  options.allowed_tokens = {62, 63, 7};
  options.min_generated_tokens = 1;
  EXPECT_FALSE(refused(options));
  options.stop_tokens = {7};
  EXPECT_TRUE(refused(options)) << "every allowed token would end the turn";
  options.ignore_eos = true;
  EXPECT_FALSE(refused(options)) << "EOS ids are ordinary tokens then";
  options.ignore_eos = false;
  options.min_generated_tokens = 0;
  EXPECT_FALSE(refused(options));

  options = {};
  options.allowed_tokens = {61};
  EXPECT_FALSE(refused(options, 62));
  EXPECT_TRUE(refused(options, 61)) << "the only allowed token is padding";
  options = {};
  for (TokenId token = 0; token < kVocab; ++token) options.banned_sequences.push_back({token});
  EXPECT_TRUE(refused(options));
}

}  // namespace
}  // namespace oga::search
