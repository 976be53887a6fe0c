#include "search/sampling_rules.h"

#include <cmath>
#include <string>

#include "base/error.h"

namespace oga::search {

namespace {

constexpr StatusCode kRefused = StatusCode::kInvalidArgument;

// The field of the model's own defaults that makes it greedy and that the turn leaves as it is; empty when none does.
std::string PinningField(const SamplingOptions& options, const SearchDefaults& defaults) {
  if (!options.top_k && defaults.top_k == 1) return "search.top_k = 1";
  if (!options.temperature && defaults.temperature == 0.0f) return "search.temperature = 0";
  return {};
}

bool AsksForGreedy(const SamplingOptions& options) { return options.temperature == 0.0f || options.top_k == 1; }

// A set option that only sampling reads, as "top_p = 0.5"; empty when there is none.
std::string OptionOnlySamplingReads(const SamplingOptions& options) {
  if (options.temperature && *options.temperature != 0.0f && *options.temperature != 1.0f) {
    return Message("temperature = ", *options.temperature);
  }
  if (options.top_k && *options.top_k > 1) return Message("top_k = ", *options.top_k);
  if (options.top_p && *options.top_p > 0.0f && *options.top_p < 1.0f) return Message("top_p = ", *options.top_p);
  return {};
}

// Decides between greedy and sampling and refuses a combination in which an option would silently not act.
bool ResolveGreedy(const SamplingOptions& options, const SearchDefaults& defaults) {
  const std::string ignored = OptionOnlySamplingReads(options);
  if (!options.do_sample.value_or(defaults.do_sample)) {
    if (ignored.empty()) return true;
    Throw(kRefused, ignored, " has no effect on a greedy turn (do_sample is false",
          options.do_sample ? "" : " in the model's search section", "); set do_sample to true, or unset the option");
  }
  if (AsksForGreedy(options)) return true;
  const std::string pin = PinningField(options, defaults);
  if (pin.empty()) return false;
  if (options.do_sample) {
    Throw(kRefused, "do_sample is true but the model's config pins greedy search with ", pin,
          "; set that option on the turn too");
  }
  if (ignored.empty()) return true;
  Throw(kRefused, ignored, " has no effect: the model's config pins greedy search with ", pin,
        "; set that option on the turn too, or unset this one");
}

}  // namespace

void CheckTemperature(float value) {
  if (std::isfinite(value) && value >= 0.0f) return;
  Throw(kRefused, "temperature is ", value, "; it must be finite and at least 0 (0 takes the most likely token)");
}

void CheckTopK(int32_t value) {
  if (value >= 0) return;
  Throw(kRefused, "top_k is ", value, "; it must be at least 0 (0 is off)");
}

void CheckTopP(float value) {
  if (value >= 0.0f && value <= 1.0f) return;
  Throw(kRefused, "top_p is ", value, "; it must be between 0 and 1 (both are off)");
}

void CheckRepetitionPenalty(float value) {
  if (std::isfinite(value) && value > 0.0f) return;
  Throw(kRefused, "repetition_penalty is ", value, "; it must be finite and above 0 (1 is off)");
}

SamplingSettings Resolve(const SamplingOptions& options, const SearchDefaults& defaults, int32_t vocab_size) {
  if (options.max_generated_tokens != 0 && options.min_generated_tokens > options.max_generated_tokens) {
    Throw(kRefused, "min_generated_tokens is ", options.min_generated_tokens, " but max_generated_tokens is ",
          options.max_generated_tokens, "; the minimum must not exceed the maximum");
  }

  SamplingSettings settings;
  settings.greedy = ResolveGreedy(options, defaults);
  settings.repetition_penalty = options.repetition_penalty.value_or(defaults.repetition_penalty);
  settings.seed = options.seed;
  settings.max_generated_tokens = options.max_generated_tokens;
  settings.min_generated_tokens = options.min_generated_tokens;
  if (settings.greedy) return settings;

  settings.temperature = options.temperature.value_or(defaults.temperature);
  const int32_t top_k = options.top_k.value_or(defaults.top_k);
  settings.top_k = top_k < vocab_size ? top_k : 0;
  const float top_p = options.top_p.value_or(defaults.top_p);
  settings.top_p = top_p > 0.0f ? top_p : 1.0f;
  return settings;
}

}  // namespace oga::search
