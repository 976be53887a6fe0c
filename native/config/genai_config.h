// genai_config.json, parsed, checked and typed. Keeps the JSON beside the typed values so that an overlay can be merged
// and the whole checked again.
//
// Immutable once built; WithOverlay returns a new one, so a refused overlay leaves the old config as it was.
//
// The rules, each of which has a test:
//   C1  The text is strict JSON in UTF-8, with or without a byte order mark: no comments, no trailing commas, no key
//       twice in one object.
//   C2  A key that is null counts as left out. A number without a fraction is an integer however it is spelled (16.0);
//       nothing else converts: no number from a string, no integer from true.
//   C3  Required: model.{type, vocab_size, context_length} and model.decoder.{filename, num_hidden_layers,
//       num_attention_heads, num_key_value_heads, head_size}. All else has a default.
//   C4  eos_token_id is an id or a list of ids; null, [] and no key mean that no token ends a turn. Of the other token
//       ids a list counts as its first element, and -1 or an id beyond the vocabulary as none.
//   C5  An unknown key inside `engine` is an error that names the nearest known one. Elsewhere unknown keys are ignored
//       and listed in one info line.
//   C6  A known key whose feature this build lacks is checked like any other and listed as off in one info line. What a
//       model cannot run without (a provider, fixed state) is refused when the model is loaded, by CheckRunnable.
//   C7  search.max_length is at most model.context_length; search.chunk_size 0 is off. An empty or missing `engine`
//       section means dynamic batching with defaults.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operators/cpu/cpu_matmul.h"
#include "step/engine_limits.h"

namespace oga {

struct JsonValue;

// Tensor names of the decoder. Per-layer names are templates with one %d for the layer.
struct DecoderTensorNames {
  std::string input_ids = "input_ids";
  std::string cumulative_sequence_lengths = "cumulative_sequence_lengths";
  std::string past_sequence_lengths = "past_sequence_lengths";
  std::string block_table = "block_table";
  std::string attention_metadata = "attention_metadata";
  std::string position_ids;          // empty: the graph has none
  std::string logits_indices;        // empty: the graph has none
  std::string attention_mask;        // empty: the graph has none; a paged graph has none
  std::string block_table_windowed;  // empty: the graph has none
  std::string past_key_names = "past_key_values.%d.key";
  std::string past_value_names = "past_key_values.%d.value";
  std::string logits = "logits";
  std::string present_key_names = "present.%d.key";
  std::string present_value_names = "present.%d.value";
};

// `model.decoder.session_options`, as far as oga leaves a choice.
struct SessionConfig {
  std::optional<int32_t> intra_op_num_threads;  // 0: the runtime chooses
  std::optional<int32_t> inter_op_num_threads;
  std::vector<std::string> providers;  // as written; the first one's device is used; empty: the default device
  operators::CpuMatMul cpu_matmul = operators::CpuMatMul::kAuto;
};

struct DecoderConfig {
  std::string filename;  // relative to the folder
  int32_t num_hidden_layers = 0;
  int32_t num_attention_heads = 0;
  int32_t num_key_value_heads = 0;
  int32_t head_size = 0;
  int32_t hidden_size = 0;  // 0: not given
  DecoderTensorNames names;
  SessionConfig session;
  std::vector<int32_t> paged_layers;  // logical layer ids that own paged keys and values; all when not configured
};

// Tokens around parts of an answer, as far as the model has them.
struct MarkerTokenIds {
  std::optional<TokenId> tool_call_begin;  // bot_token_id
  std::optional<TokenId> tool_call_end;    // eot_token_id
  std::optional<TokenId> reasoning_begin;  // bor_token_id
  std::optional<TokenId> reasoning_end;    // eor_token_id
};

// `engine.dynamic_batching` as written; what is not there is resolved when an engine is created.
struct DynamicBatchingConfig {
  std::optional<uint32_t> block_size;
  std::optional<uint32_t> num_blocks;
  std::optional<double> gpu_utilization_factor;
  std::optional<uint32_t> max_batch_size;
  std::optional<uint32_t> max_scheduled_tokens;
  std::optional<uint32_t> max_resident_requests;
  std::optional<uint32_t> max_wait_steps;
  std::optional<bool> prefix_caching;
};

class GenaiConfig {
 public:
  // Reads `folder`/genai_config.json. Throws Error: kNotFound or kIoError naming the file, kInvalidArgument naming the
  // file, its line, the JSON path, what was found and what was wanted (and the column for a syntax error).
  static GenaiConfig FromFolder(const std::string& folder);

  // Parses the text of a genai_config.json that belongs to `folder`.
  static GenaiConfig FromText(const std::string& text, const std::string& folder);

  // The config with a JSON object merged over it, checked as a whole. Same errors as FromText, naming the overlay.
  GenaiConfig WithOverlay(const std::string& json) const;

  GenaiConfig WithoutProviders() const;
  // "cpu" is accepted and needs nothing; one without a device in this build throws Error{kUnsupported} naming it.
  GenaiConfig WithProvider(const std::string& provider) const;

  // What only the loading of a model can refuse: throws Error{kUnsupported} for a provider or a kind of decoder state
  // that this build lacks, naming it and the way out.
  void CheckRunnable() const;
  void CheckProvidersUsable() const;

  const std::string& folder() const { return folder_; }  // absolute when read by FromFolder
  const std::string& model_type() const { return model_type_; }
  int32_t vocab_size() const { return vocab_size_; }
  uint64_t context_length_tokens() const { return context_length_tokens_; }
  const std::vector<TokenId>& eos_token_ids() const { return eos_token_ids_; }
  std::optional<TokenId> bos_token_id() const { return bos_token_id_; }
  std::optional<TokenId> pad_token_id() const { return pad_token_id_; }
  const MarkerTokenIds& marker_token_ids() const { return marker_token_ids_; }
  const DecoderConfig& decoder() const { return decoder_; }
  const std::vector<std::string>& providers() const { return decoder_.session.providers; }
  const SearchDefaults& search() const { return search_; }
  uint32_t chunk_size_tokens() const { return chunk_size_tokens_; }
  const DynamicBatchingConfig& dynamic_batching() const { return dynamic_batching_; }

  // Full path of the decoder graph.
  std::string decoder_path() const;

 private:
  GenaiConfig() = default;

  // Reads the typed values out of `root`. `news` is the text whose notes go to the log; null for none.
  static GenaiConfig FromRoot(std::shared_ptr<const JsonValue> root, const std::string& folder,
                              const std::shared_ptr<const std::string>& news);
  void CheckStateGroupsUsable() const;

  std::string folder_;
  std::shared_ptr<const JsonValue> root_;  // file and overlays merged
  std::string model_type_;
  int32_t vocab_size_ = 0;
  uint64_t context_length_tokens_ = 0;
  std::vector<TokenId> eos_token_ids_;
  std::optional<TokenId> bos_token_id_;
  std::optional<TokenId> pad_token_id_;
  MarkerTokenIds marker_token_ids_;
  DecoderConfig decoder_;
  SearchDefaults search_;
  uint32_t chunk_size_tokens_ = 0;
  DynamicBatchingConfig dynamic_batching_;
};

}  // namespace oga
