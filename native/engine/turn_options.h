// TurnOptions: the option set of one request's turns, bound to it weakly.
//
// Owned by the host. Owner thread of the request's engine, checked in every setter. A refused set keeps the old value.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/turn_text.h"
#include "grammar/grammar_spec.h"
#include "step/sampling.h"

namespace oga {

class Request;

class TurnOptions {
 public:
  explicit TurnOptions(std::weak_ptr<Request> request) : request_(std::move(request)) {}

  void Reset();

  // One setter per row of the sampling table: SetTemperature(float), SetTopK(int32_t), ...
#define X(Name, name, type, ...) \
  void Set##Name(type value) { Set(&SamplingOptions::name, value); }
  OGA_SAMPLING_OPTIONS(X)
#undef X
  // The same by name; "seed" too. A number must be one that the option's type holds.
  void SetNumber(std::string_view name, double value);
  void SetBool(std::string_view name, bool value);

  void SetSeed(uint64_t value);
  void ClearSeed();

  // An empty list unsets.
  void SetLogitBias(std::vector<TokenBias> biases);
  void SetStopTokens(std::vector<TokenId> tokens);
  void SetBannedSequences(std::vector<std::vector<TokenId>> sequences);
  void SetAllowedTokens(std::vector<TokenId> tokens);
  void SetDryBreakers(std::vector<TokenId> tokens);

  void SetStopStrings(std::vector<std::string> strings);
  void SetEmitText(bool emit, bool special_tokens);

  // A `top` of -1 unsets.
  void SetLogprobs(int32_t top, bool processed);
  void SetLogprobTokens(std::vector<TokenId> tokens);
  void SetPromptLogprobs(int32_t top);

  // Guidance of the whole turn and of what stands between two tokens exclude each other: clear the one first.
  void SetGuidance(std::string_view type, std::string_view text);
  void SetDelimitedGuidance(TokenId opening_token, TokenId closing_token, std::string_view lark);
  void ClearGuidance();

  const std::optional<grammar::GrammarSpec>& guidance() const { return guidance_; }
  const TextOptions& text() const { return text_; }
  const SamplingOptions& values() const { return values_; }
  bool BelongsTo(const Request& request) const noexcept;

 private:
  // Throws InvalidState unless the request is open and the caller is on the owner thread.
  void CheckUsable() const;

  template <typename T>
  void Set(std::optional<T> SamplingOptions::*field, T value);

  std::weak_ptr<Request> request_;
  SamplingOptions values_;
  TextOptions text_;
  std::optional<grammar::GrammarSpec> guidance_;
};

}  // namespace oga
