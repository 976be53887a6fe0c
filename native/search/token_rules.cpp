#include "search/token_rules.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "search/bitmask.h"
#include "search/refuse_option.h"

namespace oga::search {

namespace {

void CheckKnown(std::span<const TokenId> tokens, const char* option, const Vocabulary& vocabulary) {
  for (const TokenId token : tokens) {
    if (token < vocabulary.size) continue;
    RefuseOption(option, " names token ", token, "; the vocabulary has ids 0 to ", vocabulary.size - 1);
  }
}

void CheckKnown(const SamplingOptions& options, const Vocabulary& vocabulary) {
  for (const TokenBias& bias : options.logit_bias) CheckKnown({&bias.token, 1}, "logit_bias", vocabulary);
  for (const auto& sequence : options.banned_sequences) CheckKnown(sequence, "banned_sequences", vocabulary);
  CheckKnown(options.stop_tokens, "stop_tokens", vocabulary);
  CheckKnown(options.allowed_tokens, "allowed_tokens", vocabulary);
  CheckKnown(options.dry_breakers, "dry_breakers", vocabulary);
  CheckKnown(options.logprobs.tokens, "logprob_tokens", vocabulary);
}

std::vector<TokenId> Ascending(std::vector<TokenId> tokens) {
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

// Bans that act whatever the sequence: a turn whose first token they all exclude could only fail.
void CheckSomeTokenIsLeft(const SamplingSettings& settings, const Vocabulary& vocabulary) {
  const auto size = static_cast<size_t>(vocabulary.size);
  std::vector<uint32_t> left = settings.allowed_bitmask;
  if (left.empty()) left.assign(BitmaskWords(size), ~0u);
  for (const auto& sequence : settings.banned_sequences) {
    if (sequence.size() == 1) ClearBit(left, sequence.front());
  }
  if (settings.min_generated_tokens > 0) {
    for (const TokenId token : settings.stop_tokens) ClearBit(left, token);
    for (const TokenId token : vocabulary.eos_token_ids) {
      if (!settings.ignore_eos && token < vocabulary.size) ClearBit(left, token);
    }
  }
  for (TokenId token = 0; token < vocabulary.sampleable; ++token) {
    if (HasBit(left, token)) return;
  }
  Throw(StatusCode::kInvalidArgument,
        "no token is left to choose: allowed_tokens, banned_sequences and what min_generated_tokens keeps back ",
        "(stop_tokens and the model's EOS ids) exclude every one; loosen one of them");
}

}  // namespace

void CheckTopLogprobs(int32_t top, const char* option) {
  if (top >= 0 && top <= LogprobOptions::kMaxTop) return;
  RefuseOption(option, " is ", top, "; it must be from 0 to ", LogprobOptions::kMaxTop,
               " of the most likely tokens, or unset");
}

void CheckLogprobTokens(std::span<const TokenId> tokens) {
  CheckTokens(tokens, "logprob_tokens");
  if (tokens.size() > LogprobOptions::kMaxTokens) {
    RefuseOption("logprob_tokens", " names ", tokens.size(), " tokens; a turn takes at most ",
                 LogprobOptions::kMaxTokens);
  }
}

void CheckTokens(std::span<const TokenId> tokens, const char* option) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0) RefuseOption(option, " has ", tokens[i], " at index ", i, "; token ids are at least 0");
  }
}

void CheckBiases(std::span<const TokenBias> biases) {
  std::vector<TokenId> tokens;
  tokens.reserve(biases.size());
  for (const TokenBias& bias : biases) {
    tokens.push_back(bias.token);
    if (std::isfinite(bias.bias)) continue;
    RefuseOption("logit_bias", " of token ", bias.token, " is ", bias.bias,
                 "; it must be finite (to exclude a token, use banned_sequences)");
  }
  CheckTokens(tokens, "logit_bias");
  std::sort(tokens.begin(), tokens.end());
  const auto twice = std::adjacent_find(tokens.begin(), tokens.end());
  if (twice != tokens.end()) RefuseOption("logit_bias", " names token ", *twice, " twice; give each token one bias");
}

void CheckBannedSequences(std::span<const std::vector<TokenId>> sequences) {
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (sequences[i].empty()) {
      RefuseOption("banned_sequences", " has an empty sequence at index ", i, "; a sequence needs at least one token");
    }
    CheckTokens(sequences[i], "banned_sequences");
  }
}

void ResolveTokens(const SamplingOptions& options, const Vocabulary& vocabulary, SamplingSettings& settings) {
  CheckKnown(options, vocabulary);
  settings.logit_bias = options.logit_bias;
  settings.stop_tokens = Ascending(options.stop_tokens);
  settings.banned_sequences = options.banned_sequences;
  settings.dry_breakers = Ascending(options.dry_breakers);
  if (!options.allowed_tokens.empty()) {
    settings.allowed_bitmask.assign(BitmaskWords(static_cast<size_t>(vocabulary.size)), 0);
    for (const TokenId token : options.allowed_tokens) SetBit(settings.allowed_bitmask, token);
  }
  const bool bans = !settings.allowed_bitmask.empty() || !settings.banned_sequences.empty();
  if (bans || settings.min_generated_tokens > 0) CheckSomeTokenIsLeft(settings, vocabulary);
}

}  // namespace oga::search
