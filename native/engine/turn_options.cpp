#include "engine/turn_options.h"

#include <type_traits>
#include <utility>
#include <variant>

#include "base/error.h"
#include "engine/request.h"
#include "grammar/grammar_errors.h"
#include "search/refuse_option.h"
#include "search/sampling_rules.h"
#include "search/token_rules.h"

namespace oga {

namespace {

template <typename T>
const SamplingOption& OptionOf(std::optional<T> SamplingOptions::*field) {
  for (const SamplingOption& option : kSamplingOptions) {
    const auto* fields = std::get_if<OptionFields<T>>(&option.fields);
    if (fields != nullptr && fields->asked == field) return option;
  }
  Throw(StatusCode::kInternal, "a field of SamplingOptions is not in the sampling table");
}

constexpr int32_t kUnset = -1;

constexpr SamplingOption kSeed{
    .name = "seed",
    .range = option_range::kTokenCount,
    .stage = OptionStage::kMode,
    .source = OptionSource::kTurnOnly,
    .note = "larger ones have a setter of their own",
    .fields = OptionFields<uint64_t>{},
};

}  // namespace

void TurnOptions::CheckUsable() const {
  const std::shared_ptr<Request> request = request_.lock();
  if (request == nullptr) {
    Throw(StatusCode::kInvalidState, "the request of these turn options is gone; create new ones from an open request");
  }
  request->CheckUsable();
}

bool TurnOptions::BelongsTo(const Request& request) const noexcept { return request_.lock().get() == &request; }

void TurnOptions::Reset() {
  CheckUsable();
  values_ = {};
  text_ = {};
  guidance_.reset();
}

template <typename T>
void TurnOptions::Set(std::optional<T> SamplingOptions::*field, T value) {
  CheckUsable();
  // Every bool and every 64-bit count is legal.
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, int32_t>) {
    search::CheckNumber(OptionOf(field), value);
  }
  values_.*field = value;
}

template void TurnOptions::Set(std::optional<bool> SamplingOptions::*, bool);
template void TurnOptions::Set(std::optional<float> SamplingOptions::*, float);
template void TurnOptions::Set(std::optional<int32_t> SamplingOptions::*, int32_t);
template void TurnOptions::Set(std::optional<uint64_t> SamplingOptions::*, uint64_t);

void TurnOptions::SetNumber(std::string_view name, double value) {
  CheckUsable();
  if (name == kSeed.name) {
    search::CheckNumber(kSeed, value);
    values_.seed = static_cast<uint64_t>(value);
    return;
  }
  const SamplingOption& option = search::FindOption(name);
  search::CheckNumber(option, value);
  std::visit(
      [&](auto fields) {
        using Value = typename decltype(fields)::Value;
        values_.*fields.asked = static_cast<Value>(value);
      },
      option.fields);
}

void TurnOptions::SetBool(std::string_view name, bool value) {
  CheckUsable();
  const SamplingOption& option = search::FindOption(name);
  const auto* fields = std::get_if<OptionFields<bool>>(&option.fields);
  if (fields == nullptr) {
    search::RefuseOption(name, " is a number, not true or false; set it as a number");
  }
  values_.*fields->asked = value;
}

void TurnOptions::SetSeed(uint64_t value) {
  CheckUsable();
  values_.seed = value;
}

void TurnOptions::ClearSeed() {
  CheckUsable();
  values_.seed.reset();
}

void TurnOptions::SetLogitBias(std::vector<TokenBias> biases) {
  CheckUsable();
  search::CheckBiases(biases);
  values_.logit_bias = std::move(biases);
}

void TurnOptions::SetStopTokens(std::vector<TokenId> tokens) {
  CheckUsable();
  search::CheckTokens(tokens, "stop_tokens");
  values_.stop_tokens = std::move(tokens);
}

void TurnOptions::SetBannedSequences(std::vector<std::vector<TokenId>> sequences) {
  CheckUsable();
  search::CheckBannedSequences(sequences);
  values_.banned_sequences = std::move(sequences);
}

void TurnOptions::SetAllowedTokens(std::vector<TokenId> tokens) {
  CheckUsable();
  search::CheckTokens(tokens, "allowed_tokens");
  values_.allowed_tokens = std::move(tokens);
}

void TurnOptions::SetDryBreakers(std::vector<TokenId> tokens) {
  CheckUsable();
  search::CheckTokens(tokens, "dry_breakers");
  values_.dry_breakers = std::move(tokens);
}

void TurnOptions::SetStopStrings(std::vector<std::string> strings) {
  CheckUsable();
  auto compiled = std::make_shared<const StopStrings>(std::move(strings));
  text_.stop_strings = compiled->empty() ? nullptr : std::move(compiled);
}

void TurnOptions::SetEmitText(bool emit, bool special_tokens) {
  CheckUsable();
  text_.emit = emit;
  text_.special_tokens = special_tokens;
}

void TurnOptions::SetGuidance(std::string_view type, std::string_view text) {
  CheckUsable();
  grammar::GrammarSpec spec = grammar::MakeGrammarSpec(type, text);
  if (guidance_ && guidance_->kind == grammar::GrammarKind::kDelimited) {
    Throw(StatusCode::kInvalidState, Field{grammar::kGuidanceField},
          "delimited guidance is set; clear it before guidance of the whole turn");
  }
  guidance_ = std::move(spec);
}

void TurnOptions::SetDelimitedGuidance(TokenId opening_token, TokenId closing_token, std::string_view lark) {
  CheckUsable();
  grammar::GrammarSpec spec = grammar::MakeDelimitedSpec(opening_token, closing_token, lark);
  if (guidance_ && guidance_->kind != grammar::GrammarKind::kDelimited) {
    Throw(StatusCode::kInvalidState, Field{grammar::kGuidanceField},
          "guidance of the whole turn is set; clear it before delimited guidance");
  }
  guidance_ = std::move(spec);
}

void TurnOptions::ClearGuidance() {
  CheckUsable();
  guidance_.reset();
}

void TurnOptions::SetLogprobs(int32_t top, bool processed) {
  CheckUsable();
  if (top != kUnset) search::CheckTopLogprobs(top, "logprobs");
  values_.logprobs.top = top == kUnset ? std::nullopt : std::optional(top);
  values_.logprobs.processed = processed;
}

void TurnOptions::SetLogprobTokens(std::vector<TokenId> tokens) {
  CheckUsable();
  search::CheckLogprobTokens(tokens);
  values_.logprobs.tokens = std::move(tokens);
}

void TurnOptions::SetPromptLogprobs(int32_t top) {
  CheckUsable();
  if (top != kUnset) search::CheckTopLogprobs(top, "prompt_logprobs");
  values_.logprobs.prompt_top = top == kUnset ? std::nullopt : std::optional(top);
}

}  // namespace oga
