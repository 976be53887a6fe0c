#include "base/error.h"
#include "config/config_sections.h"

namespace oga {

namespace {

constexpr int64_t kMaxChunkTokens = int64_t{1} << 24;
constexpr RealRange kAnyReal{-std::numeric_limits<float>::max()};

uint64_t ReadMaxLength(const JsonObject& search, uint64_t context_length_tokens) {
  const std::optional<int64_t> max_length = search.Integer("max_length", {1, INT64_MAX});
  if (!max_length) return 0;
  if (static_cast<uint64_t>(*max_length) > context_length_tokens) {
    RefuseValue(*search.Find("max_length"), search.PathOf("max_length"),
                Message("at most model.context_length, which is ", context_length_tokens));
  }
  return static_cast<uint64_t>(*max_length);
}

std::optional<bool> Read(const JsonObject& search, const SamplingOption& option, OptionFields<bool>) {
  return search.Boolean(option.name.data());
}

std::optional<float> Read(const JsonObject& search, const SamplingOption& option, OptionFields<float>) {
  const OptionRange& range = option.range;
  return search.Real(option.name.data(), {range.min, range.max, range.min_excluded});
}

template <typename Count>
std::optional<Count> Read(const JsonObject& search, const SamplingOption& option, OptionFields<Count>) {
  const IntegerRange range{static_cast<int64_t>(option.range.min), static_cast<int64_t>(option.range.max)};
  const std::optional<int64_t> value = search.Integer(option.name.data(), range);
  return value ? std::optional(static_cast<Count>(*value)) : std::nullopt;
}

void ReadSamplingOptions(const JsonObject& search, SearchDefaults& defaults) {
  for (const SamplingOption& option : kSamplingOptions) {
    if (option.source != OptionSource::kModelAndTurn) continue;
    std::visit(
        [&](auto fields) {
          auto& value = defaults.*fields.model;
          value = Read(search, option, fields).value_or(value);
        },
        option.fields);
  }
}

// Keys of searches that the engine does not do. Some have a value that asks for nothing.
void CheckOtherKeys(const JsonObject& search, ConfigNotes& notes) {
  search.Integer("batch_size", {1, INT32_MAX});
  search.Integer("num_return_sequences", {1, INT32_MAX});
  search.Boolean("early_stopping");
  search.Boolean("past_present_share_buffer");
  search.Real("length_penalty", kAnyReal);
  search.Real("diversity_penalty", kAnyReal);
  if (search.Integer("random_seed", {-1, INT64_MAX}).value_or(-1) >= 0) {
    notes.AddOff(*search.Find("random_seed"), search.PathOf("random_seed"), "seeds are set per turn");
  }
}

}  // namespace

SearchSection ReadSearch(const JsonObject& root, uint64_t context_length_tokens, ConfigNotes& notes) {
  SearchSection section;
  const std::optional<JsonObject> search = root.Object("search");
  if (!search) return section;
  SearchDefaults& defaults = section.defaults;
  ReadSamplingOptions(*search, defaults);
  defaults.max_length_tokens = ReadMaxLength(*search, context_length_tokens);
  defaults.min_length_tokens = static_cast<uint64_t>(search->Integer("min_length", {0, INT64_MAX}).value_or(0));
  defaults.num_beams = static_cast<uint64_t>(search->Integer("num_beams", {1, INT32_MAX}).value_or(1));
  section.chunk_size_tokens = static_cast<uint32_t>(search->Integer("chunk_size", {0, kMaxChunkTokens}).value_or(0));
  CheckOtherKeys(*search, notes);
  return section;
}

}  // namespace oga
