// Plain values of token choice: what a host may set, the model's defaults, and the resolved settings of one turn.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "step/ids.h"
#include "step/sampling_table.h"

namespace oga {

// The model's own generation defaults (`search` in its config), already validated.
struct SearchDefaults {
#define X(Name, name, type, model_default, ...) type name = static_cast<type>(model_default);
  OGA_SAMPLING_OPTIONS(X)
#undef X
  uint64_t max_length_tokens = 0;  // 0: the context length
  uint64_t min_length_tokens = 0;  // CreateRequest refuses a model that sets it
  uint64_t num_beams = 1;          // CreateRequest refuses any other value
};

struct TokenBias {
  TokenId token = 0;
  float bias = 0;  // added to the logit
};

// Which log-probabilities a turn tells besides its tokens. Every field starts off.
struct LogprobOptions {
  static constexpr int32_t kMaxTop = 20;
  static constexpr size_t kMaxTokens = 1024;

  std::optional<int32_t> top;         // of the chosen token and this many of the most likely ones
  std::vector<TokenId> tokens;        // and of these; they alone turn `top` on, at 0
  bool processed = false;             // of the distribution after the logits processors instead of the model's own
  std::optional<int32_t> prompt_top;  // of each token of the input, and this many of the most likely in its place

  bool of_output() const { return top.has_value() || !tokens.empty(); }
  bool of_prompt() const { return prompt_top.has_value(); }
};

// What a host set for a turn; an unset field takes the model's default, an empty list is off.
struct SamplingOptions {
#define X(Name, name, type, ...) std::optional<type> name;
  OGA_SAMPLING_OPTIONS(X)
#undef X
  std::optional<uint64_t> seed;
  std::vector<TokenBias> logit_bias;
  std::vector<TokenId> stop_tokens;
  std::vector<std::vector<TokenId>> banned_sequences;
  std::vector<TokenId> allowed_tokens;
  std::vector<TokenId> dry_breakers;
  LogprobOptions logprobs;
};

// Resolved and consistent; every field starts at its value that is off. `do_sample` already accounts for temperature 0
// and top_k 1; without it no warper field acts.
struct SamplingSettings {
#define X(Name, name, type, model_default, also_off, off, ...) type name = static_cast<type>(off);
  OGA_SAMPLING_OPTIONS(X)
#undef X
  std::optional<uint64_t> seed;
  std::vector<TokenBias> logit_bias;
  std::vector<TokenId> stop_tokens;                    // ascending
  std::vector<std::vector<TokenId>> banned_sequences;  // none empty
  std::vector<uint32_t> allowed_bitmask;               // bit i % 32 of word i / 32 is token i; empty: every token
  std::vector<TokenId> dry_breakers;                   // ascending
  LogprobOptions logprobs;

  bool greedy() const { return !do_sample; }
  bool counts_output() const { return presence_penalty != 0.0f || frequency_penalty != 0.0f; }
  bool searches_sequence() const { return no_repeat_ngram_size > 0 || dry_multiplier > 0.0f; }
};

// The token ids of a model.
struct Vocabulary {
  int32_t size = 0;        // width of a logits row
  int32_t sampleable = 0;  // ids from here up are padding that the tokenizer does not know
  std::span<const TokenId> eos_token_ids;
};

// One row of the table, for code that treats all options alike.
template <typename T>
struct OptionFields {
  using Value = T;
  std::optional<T> SamplingOptions::*asked;
  T SearchDefaults::*model;
  T SamplingSettings::*resolved;
  T also_off;
  T off;
};

struct SamplingOption {
  std::string_view name;
  OptionRange range;
  OptionStage stage;
  OptionSource source;
  const char* note;  // what the numbers of the range do not say; may be empty
  std::variant<OptionFields<bool>, OptionFields<int32_t>, OptionFields<uint64_t>, OptionFields<float>> fields;
};

inline constexpr SamplingOption kSamplingOptions[] = {
#define X(Name, name, type, model_default, also_off, off, range, served, stage, source, note, doc) \
  {#name,                                                                                          \
   option_range::range,                                                                            \
   OptionStage::stage,                                                                             \
   OptionSource::source,                                                                           \
   note,                                                                                           \
   OptionFields<type>{&SamplingOptions::name, &SearchDefaults::name, &SamplingSettings::name,      \
                      static_cast<type>(also_off), static_cast<type>(off)}},
    OGA_SAMPLING_OPTIONS(X)
#undef X
};

}  // namespace oga
