#include "search/logits_processors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "search/bitmask.h"

namespace oga::search {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kLargest = std::numeric_limits<float>::max();
constexpr size_t kTokensPerWord = 32;
constexpr auto kBits = [] {
  std::array<uint32_t, kTokensPerWord> bits{};
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = 1u << i;
  return bits;
}();

// How many of the last tokens must be searched for repetitions.
size_t SearchedTokens(const SamplingSettings& settings, size_t sequence_tokens) {
  if (settings.no_repeat_ngram_size > 0 || settings.dry_range == 0) return sequence_tokens;
  return std::min(sequence_tokens, static_cast<size_t>(settings.dry_range));
}

bool Contains(std::span<const TokenId> ascending, TokenId token) {
  return std::binary_search(ascending.begin(), ascending.end(), token);
}

bool AnyStageActs(const SampleInputs& inputs) {
  const SamplingSettings& settings = *inputs.settings;
  return (settings.repetition_penalty != 1.0f && !inputs.distinct_tokens.empty()) ||
         (settings.counts_output() && !inputs.output_counts.empty()) || settings.searches_sequence() ||
         !settings.logit_bias.empty() || !settings.banned_sequences.empty() || !settings.allowed_bitmask.empty() ||
         (!inputs.may_end && !(inputs.eos_token_ids.empty() && settings.stop_tokens.empty())) ||
         !inputs.allowed_bitmask.empty();
}

}  // namespace

LogitsProcessors::LogitsProcessors(int32_t sampleable_tokens) : scores_(static_cast<size_t>(sampleable_tokens)) {}

void LogitsProcessors::ReserveHistory(size_t tokens) {
  matches_.Reserve(tokens);
  longest_.resize(scores_.size());
}

std::span<const float> LogitsProcessors::Apply(const SampleInputs& inputs) {
  const std::span<const float> row = inputs.logits.first(scores_.size());
  if (!AnyStageActs(inputs)) return row;

  const SamplingSettings& settings = *inputs.settings;
  std::copy(row.begin(), row.end(), scores_.begin());
  if (settings.repetition_penalty != 1.0f) Penalize(inputs);
  if (settings.counts_output()) PenalizeOutput(inputs);
  if (settings.searches_sequence()) SearchSequence(inputs);
  AddBiases(settings.logit_bias);
  BanSequences(inputs);
  if (!settings.allowed_bitmask.empty()) BanOutside(settings.allowed_bitmask);
  if (!inputs.may_end) {
    Ban(inputs.eos_token_ids);
    Ban(settings.stop_tokens);
  }
  if (!inputs.allowed_bitmask.empty()) BanOutside(inputs.allowed_bitmask);
  return scores_;
}

void LogitsProcessors::Penalize(const SampleInputs& inputs) {
  const float penalty = inputs.settings->repetition_penalty;
  for (const TokenId token : inputs.distinct_tokens) {
    if (!InRow(token)) continue;
    float& score = scores_[static_cast<size_t>(token)];
    if (score == -kInfinity) continue;
    const float penalized = score > 0.0f ? score / penalty : score * penalty;
    score = std::clamp(penalized, static_cast<float>(-kLargest), static_cast<float>(kLargest));
  }
}

void LogitsProcessors::PenalizeOutput(const SampleInputs& inputs) {
  const double presence = inputs.settings->presence_penalty;
  const double frequency = inputs.settings->frequency_penalty;
  for (const TokenCount& seen : inputs.output_counts) Add(seen.token, -(presence + frequency * seen.count));
}

void LogitsProcessors::SearchSequence(const SampleInputs& inputs) {
  const SamplingSettings& settings = *inputs.settings;
  const std::span<const TokenId> sequence = inputs.sequence.last(SearchedTokens(settings, inputs.sequence.size()));
  matches_.Find(sequence);
  if (settings.no_repeat_ngram_size > 0) {
    BanRepeatedNgrams(sequence, static_cast<size_t>(settings.no_repeat_ngram_size));
  }
  if (settings.dry_multiplier > 0.0f) {
    const auto range = static_cast<size_t>(settings.dry_range);
    PenalizeRepetitions(sequence, range == 0 ? sequence.size() : std::min(range, sequence.size()), settings);
  }
}

void LogitsProcessors::BanRepeatedNgrams(std::span<const TokenId> sequence, size_t ngram_tokens) {
  for (size_t i = 0; i < sequence.size(); ++i) {
    if (matches_.LengthBefore(i) + 1 >= ngram_tokens) Ban(sequence[i]);
  }
}

// A repetition neither begins before the last `searched_tokens` tokens nor reaches across a breaker, and a breaker is
// never penalised itself.
void LogitsProcessors::PenalizeRepetitions(std::span<const TokenId> sequence, size_t searched_tokens,
                                           const SamplingSettings& settings) {
  const std::span<const TokenId> breakers = settings.dry_breakers;
  size_t most = 0;
  while (most < searched_tokens && !Contains(breakers, sequence[sequence.size() - 1 - most])) ++most;
  const auto allowed = static_cast<size_t>(settings.dry_allowed_length);
  if (most < allowed) return;

  const size_t begin = sequence.size() - searched_tokens;
  for (size_t i = begin; i < sequence.size(); ++i) {
    const size_t length = std::min({size_t{matches_.LengthBefore(i)}, i - begin, most});
    if (length < allowed || !InRow(sequence[i])) continue;
    uint32_t& longest = longest_[static_cast<size_t>(sequence[i])];
    longest = std::max(longest, static_cast<uint32_t>(length));
  }
  for (size_t i = begin; i < sequence.size(); ++i) {
    if (!InRow(sequence[i])) continue;
    const uint32_t length = std::exchange(longest_[static_cast<size_t>(sequence[i])], 0);
    if (length == 0 || Contains(breakers, sequence[i])) continue;
    const double growth = std::pow(double{settings.dry_base}, static_cast<double>(length - allowed));
    Add(sequence[i], -settings.dry_multiplier * growth);
  }
}

void LogitsProcessors::AddBiases(std::span<const TokenBias> biases) {
  for (const TokenBias& bias : biases) Add(bias.token, bias.bias);
}

// Of a banned sequence only the token that would complete it is banned.
void LogitsProcessors::BanSequences(const SampleInputs& inputs) {
  for (const std::vector<TokenId>& sequence : inputs.settings->banned_sequences) {
    const size_t before = sequence.size() - 1;
    if (before > inputs.sequence.size()) continue;
    if (std::equal(sequence.begin(), sequence.end() - 1, inputs.sequence.end() - static_cast<std::ptrdiff_t>(before))) {
      Ban(sequence.back());
    }
  }
}

void LogitsProcessors::Ban(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) Ban(token);
}

void LogitsProcessors::BanOutside(std::span<const uint32_t> bitmask) {
  OGA_CHECK(bitmask.size() >= BitmaskWords(scores_.size()));
  const size_t whole = scores_.size() - scores_.size() % kTokensPerWord;
  for (size_t begin = 0; begin < whole; begin += kTokensPerWord) {
    const uint32_t word = bitmask[begin / kTokensPerWord];
    if (word == ~0u) continue;
    // Without a branch per token: which ones a grammar allows looks random to the processor.
    float* const scores = scores_.data() + begin;
    for (size_t i = 0; i < kTokensPerWord; ++i) scores[i] = (word & kBits[i]) != 0 ? scores[i] : -kInfinity;
  }
  for (size_t i = whole; i < scores_.size(); ++i) {
    if (!HasBit(bitmask, static_cast<TokenId>(i))) scores_[i] = -kInfinity;
  }
}

void LogitsProcessors::Add(TokenId token, double difference) {
  if (!InRow(token)) return;
  float& score = scores_[static_cast<size_t>(token)];
  if (score == -kInfinity) return;
  // An extreme difference must not make a token certain or impossible.
  score = static_cast<float>(std::clamp(score + difference, -kLargest, kLargest));
}

void LogitsProcessors::Ban(TokenId token) {
  if (InRow(token)) scores_[static_cast<size_t>(token)] = -kInfinity;
}

}  // namespace oga::search
