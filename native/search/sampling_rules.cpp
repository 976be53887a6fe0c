#include "search/sampling_rules.h"

#include <cmath>
#include <optional>
#include <string>
#include <type_traits>

#include "base/edit_distance.h"
#include "base/error.h"
#include "base/printable_text.h"
#include "search/refuse_option.h"
#include "search/token_rules.h"

namespace oga::search {

namespace {

bool IsInteger(const SamplingOption& option) {
  return std::visit([](auto fields) { return std::is_integral_v<typename decltype(fields)::Value>; }, option.fields);
}

// "finite and at least 0", "between 0 and 1".
std::string Wanted(const SamplingOption& option) {
  const OptionRange& range = option.range;
  if (IsInteger(option)) {
    const bool open = range.max == option_range::kCount.max;
    return open ? Message("an integer of at least ", static_cast<int64_t>(range.min))
                : Message("an integer from ", static_cast<int64_t>(range.min), " to ", static_cast<int64_t>(range.max));
  }
  if (range.max < option_range::kLargestReal) return Message("between ", range.min, " and ", range.max);
  if (range.min <= -option_range::kLargestReal) return "finite";
  return Message("finite and ", range.min_excluded ? "above " : "at least ", range.min);
}

// As a float shows it, where a float holds it.
std::string NumberText(const SamplingOption& option, double value) {
  if (IsInteger(option) && std::floor(value) == value && std::abs(value) <= option_range::kTokenCount.max) {
    return Message(static_cast<int64_t>(value));
  }
  return std::abs(value) <= option_range::kLargestReal ? Message(static_cast<float>(value)) : Message(value);
}

// The field of the model's own defaults that makes it greedy and that the turn leaves as it is; empty when none does.
std::string PinningField(const SamplingOptions& options, const SearchDefaults& defaults) {
  if (!options.top_k && defaults.top_k == 1) return "search.top_k = 1";
  if (!options.temperature && defaults.temperature == 0.0f) return "search.temperature = 0";
  return {};
}

bool AsksForGreedy(const SamplingOptions& options) { return options.temperature == 0.0f || options.top_k == 1; }

struct SetOption {
  std::string_view name;
  std::string value;
};

// A set option that only sampling reads; none when there is none.
std::optional<SetOption> OptionOnlySamplingReads(const SamplingOptions& options) {
  for (const SamplingOption& option : kSamplingOptions) {
    if (option.stage != OptionStage::kWarper) continue;
    const std::string value = std::visit(
        [&](auto fields) {
          const auto& asked = options.*fields.asked;
          const bool acts = asked && *asked != fields.off && *asked != fields.also_off;
          return acts ? Message(*asked) : std::string();
        },
        option.fields);
    if (!value.empty()) return SetOption{option.name, value};
  }
  return std::nullopt;
}

// Decides between greedy and sampling and refuses a combination in which an option would silently not act.
bool ResolveGreedy(const SamplingOptions& options, const SearchDefaults& defaults) {
  const std::optional<SetOption> ignored = OptionOnlySamplingReads(options);
  if (!options.do_sample.value_or(defaults.do_sample)) {
    if (!ignored) return true;
    RefuseOption(ignored->name, " = ", ignored->value, " has no effect on a greedy turn (do_sample is false",
                 options.do_sample ? "" : " in the model's search section",
                 "); set do_sample to true, or unset the option");
  }
  if (AsksForGreedy(options)) return true;
  const std::string pin = PinningField(options, defaults);
  if (pin.empty()) return false;
  if (options.do_sample) {
    RefuseOption("do_sample", " is true but the model's config pins greedy search with ", pin,
                 "; set that option on the turn too");
  }
  if (!ignored) return true;
  RefuseOption(ignored->name, " = ", ignored->value, " has no effect: the model's config pins greedy search with ", pin,
               "; set that option on the turn too, or unset this one");
}

void ResolveScalars(const SamplingOptions& options, const SearchDefaults& defaults, SamplingSettings& settings) {
  const bool greedy = ResolveGreedy(options, defaults);
  for (const SamplingOption& option : kSamplingOptions) {
    if (greedy && option.stage == OptionStage::kWarper) continue;
    std::visit(
        [&](auto fields) {
          const auto value = (options.*fields.asked).value_or(defaults.*fields.model);
          settings.*fields.resolved = value == fields.also_off ? fields.off : value;
        },
        option.fields);
  }
  settings.do_sample = !greedy;
}

}  // namespace

const SamplingOption& FindOption(std::string_view name) {
  const SamplingOption* nearest = nullptr;
  size_t nearest_distance = 0;
  for (const SamplingOption& option : kSamplingOptions) {
    if (option.name == name) return option;
    const size_t distance = EditDistance(option.name, name);
    if (nearest != nullptr && distance >= nearest_distance) continue;
    nearest = &option;
    nearest_distance = distance;
  }
  Throw(StatusCode::kInvalidArgument, Field{std::string(name)}, Quoted(name),
        " is no turn option; the nearest one is '", std::string(nearest->name), "'");
}

void CheckNumber(const SamplingOption& option, double value) {
  if (std::holds_alternative<OptionFields<bool>>(option.fields)) {
    RefuseOption(option.name, " is true or false, not a number; set it as a bool");
  }
  const OptionRange& range = option.range;
  bool legal = value >= range.min && value <= range.max;  // false for NaN
  if (IsInteger(option)) {
    legal = legal && std::floor(value) == value;
  } else {
    // The bound holds for what is stored.
    legal = legal && !(range.min_excluded && static_cast<float>(value) <= range.min);
  }
  if (legal) return;
  const std::string note = *option.note == '\0' ? "" : Message(" (", option.note, ")");
  RefuseOption(option.name, " is ", NumberText(option, value), "; it must be ", Wanted(option), note);
}

SamplingSettings Resolve(const SamplingOptions& options, const SearchDefaults& defaults, const Vocabulary& vocabulary) {
  SamplingSettings settings;
  ResolveScalars(options, defaults, settings);
  if (settings.max_generated_tokens != 0 && settings.min_generated_tokens > settings.max_generated_tokens) {
    RefuseOption("min_generated_tokens", " is ", settings.min_generated_tokens, " but max_generated_tokens is ",
                 settings.max_generated_tokens, "; the minimum must not exceed the maximum");
  }
  if (settings.top_k >= vocabulary.sampleable) settings.top_k = 0;
  settings.seed = options.seed;
  settings.logprobs = options.logprobs;
  ResolveTokens(options, vocabulary, settings);
  return settings;
}

}  // namespace oga::search
