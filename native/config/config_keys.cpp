#include "config/config_keys.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/edit_distance.h"
#include "base/error.h"
#include "step/sampling.h"

namespace oga {

namespace {

// Full paths; "[]" stands for any element of a list. An object none of whose keys are listed is not looked into. The
// options of `search` that turns have too are those of the sampling table.
constexpr std::string_view kKnownKeys[] = {
    "model",
    "model.type",
    "model.vocab_size",
    "model.context_length",
    "model.bos_token_id",
    "model.eos_token_id",
    "model.pad_token_id",
    "model.bot_token_id",
    "model.eot_token_id",
    "model.bor_token_id",
    "model.eor_token_id",
    "model.sep_token_id",
    "model.decoder_start_token_id",
    "model.image_token_id",
    "model.video_token_id",
    "model.vision_start_token_id",
    "model.encoder",
    "model.embedding",
    "model.vision",
    "model.speech",
    "model.decoder",
    "model.decoder.filename",
    "model.decoder.head_size",
    "model.decoder.hidden_size",
    "model.decoder.num_attention_heads",
    "model.decoder.num_key_value_heads",
    "model.decoder.num_hidden_layers",
    "model.decoder.run_options",
    "model.decoder.pipeline",
    "model.decoder.session_options",
    "model.decoder.session_options.intra_op_num_threads",
    "model.decoder.session_options.inter_op_num_threads",
    "model.decoder.session_options.provider_options",
    "model.decoder.session_options.log_id",
    "model.decoder.session_options.log_severity_level",
    "model.decoder.session_options.log_verbosity_level",
    "model.decoder.session_options.enable_cpu_mem_arena",
    "model.decoder.session_options.enable_mem_pattern",
    "model.decoder.session_options.enable_profiling",
    "model.decoder.session_options.graph_optimization_level",
    "model.decoder.session_options.custom_ops_library",
    "model.decoder.session_options.config_entries",
    "model.decoder.session_options.cpu_matmul",
    "model.decoder.inputs",
    "model.decoder.inputs.input_ids",
    "model.decoder.inputs.inputs_embeds",
    "model.decoder.inputs.attention_mask",
    "model.decoder.inputs.position_ids",
    "model.decoder.inputs.past_names",
    "model.decoder.inputs.past_key_names",
    "model.decoder.inputs.past_value_names",
    "model.decoder.inputs.cross_past_key_names",
    "model.decoder.inputs.cross_past_value_names",
    "model.decoder.inputs.past_conv_names",
    "model.decoder.inputs.past_recurrent_names",
    "model.decoder.inputs.past_key_values_length",
    "model.decoder.inputs.past_sequence_length",
    "model.decoder.inputs.current_sequence_length",
    "model.decoder.inputs.total_sequence_length",
    "model.decoder.inputs.cache_indirection",
    "model.decoder.inputs.encoder_hidden_states",
    "model.decoder.inputs.encoder_attention_mask",
    "model.decoder.inputs.cumulative_sequence_lengths",
    "model.decoder.inputs.past_sequence_lengths",
    "model.decoder.inputs.block_table",
    "model.decoder.inputs.block_table_windowed",
    "model.decoder.inputs.attention_metadata",
    "model.decoder.inputs.logits_indices",
    "model.decoder.outputs",
    "model.decoder.outputs.logits",
    "model.decoder.outputs.hidden_states",
    "model.decoder.outputs.present_names",
    "model.decoder.outputs.present_key_names",
    "model.decoder.outputs.present_value_names",
    "model.decoder.outputs.cross_present_key_names",
    "model.decoder.outputs.cross_present_value_names",
    "model.decoder.outputs.present_conv_names",
    "model.decoder.outputs.present_recurrent_names",
    "model.decoder.sliding_window",
    "model.decoder.sliding_window.window_size",
    "model.decoder.sliding_window.pad_value",
    "model.decoder.sliding_window.alignment",
    "model.decoder.sliding_window.slide_key_value_cache",
    "model.decoder.sliding_window.slide_inputs",
    "model.decoder.sliding_window.layers",
    "model.decoder.sliding_window.cache_slack",
    "model.decoder.state_groups",
    "model.decoder.state_groups[].kind",
    "model.decoder.state_groups[].layer_ids",
    "search",
    "search.max_length",
    "search.min_length",
    "search.num_beams",
    "search.batch_size",
    "search.num_return_sequences",
    "search.chunk_size",
    "search.early_stopping",
    "search.length_penalty",
    "search.diversity_penalty",
    "search.past_present_share_buffer",
    "search.random_seed",
    "engine",
    "engine.dynamic_batching",
    "engine.dynamic_batching.block_size",
    "engine.dynamic_batching.num_blocks",
    "engine.dynamic_batching.gpu_utilization_factor",
    "engine.dynamic_batching.max_batch_size",
    "engine.dynamic_batching.max_scheduled_tokens",
    "engine.dynamic_batching.prefix_caching",
    "engine.dynamic_batching.max_resident_requests",
    "engine.dynamic_batching.max_wait_steps",
    "engine.static_batching",
    "engine.static_batching.max_batch_size",
};

constexpr std::string_view kEnginePrefix = "engine.";

std::string_view ParentOf(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

std::string_view LeafOf(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

bool IsSamplingOption(std::string_view name) {
  return std::any_of(std::begin(kSamplingOptions), std::end(kSamplingOptions), [&](const SamplingOption& option) {
    return option.source == OptionSource::kModelAndTurn && option.name == name;
  });
}

// `pattern` is the path with list positions written as "[]".
bool IsKnown(std::string_view parent_pattern, std::string_view name) {
  if (parent_pattern == "search" && IsSamplingOption(name)) return true;
  return std::any_of(std::begin(kKnownKeys), std::end(kKnownKeys),
                     [&](std::string_view key) { return ParentOf(key) == parent_pattern && LeafOf(key) == name; });
}

bool IsLookedInto(std::string_view pattern) {
  return std::any_of(std::begin(kKnownKeys), std::end(kKnownKeys),
                     [&](std::string_view key) { return ParentOf(key) == pattern; });
}

class KeyWalk {
 public:
  explicit KeyWalk(ConfigNotes& notes) : notes_(notes) {}

  void Visit(const JsonValue& value, const std::string& path, const std::string& pattern) const {
    for (size_t i = 0; i < value.elements.size(); ++i) {
      Visit(value.elements[i], JoinPath(path, i), Message(pattern, "[]"));
    }
    if (!IsLookedInto(pattern)) return;
    for (const JsonMember& member : value.members) VisitMember(member, path, pattern);
  }

 private:
  void VisitMember(const JsonMember& member, const std::string& path, const std::string& pattern) const {
    const std::string member_path = JoinPath(path, member.name);
    if (IsKnown(pattern, member.name)) {
      Visit(member.value, member_path, pattern.empty() ? member.name : Message(pattern, ".", member.name));
      return;
    }
    if (pattern != "engine" && !pattern.starts_with(kEnginePrefix)) {
      notes_.AddUnknownKey(member.value, member_path);
      return;
    }
    Throw(StatusCode::kInvalidArgument, Field{member_path}, Where(member.value.source, member.line), member_path,
          " is not a known key; the nearest one is ", std::string(NearestEngineKey(pattern, member.name)));
  }

  ConfigNotes& notes_;
};

}  // namespace

void CheckKeys(const JsonValue& root, ConfigNotes& notes) { KeyWalk(notes).Visit(root, "", ""); }

std::string_view NearestEngineKey(std::string_view parent_path, std::string_view name) {
  std::string_view nearest;
  size_t nearest_distance = std::numeric_limits<size_t>::max();
  for (const std::string_view key : kKnownKeys) {
    if (!key.starts_with(kEnginePrefix)) continue;
    // Doubled so that a key of the same object wins a tie.
    const size_t distance = 2 * EditDistance(LeafOf(key), name) + (ParentOf(key) == parent_path ? 0 : 1);
    if (distance < nearest_distance) {
      nearest = key;
      nearest_distance = distance;
    }
  }
  OGA_CHECK(!nearest.empty());
  return nearest;
}

}  // namespace oga
