// Configs for tests, and what to look at when one is refused.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "config/genai_config.h"
#include "config/json_reader.h"

namespace oga::testing {

// Vocabulary 64, context 128, two layers. Line numbers matter to tests: "vocab_size" stands on line 4.
inline constexpr const char* kSmallConfig = R"({
  "model": {
    "type": "llama",
    "vocab_size": 64,
    "context_length": 128,
    "bos_token_id": 2,
    "eos_token_id": 1,
    "pad_token_id": 0,
    "decoder": {
      "filename": "model.onnx",
      "num_hidden_layers": 2,
      "num_attention_heads": 4,
      "num_key_value_heads": 2,
      "head_size": 8,
      "hidden_size": 32
    }
  },
  "search": {
    "max_length": 100
  }
})";

inline JsonValue ParseJson(std::string_view text) {
  return ReadJson(text, std::make_shared<const std::string>("test"));
}

inline GenaiConfig SmallConfig() { return GenaiConfig::FromText(kSmallConfig, "/models/small"); }

// The Error that `action` throws; a failure of the test when it throws none.
template <typename Action>
Error ErrorOf(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(StatusCode::kOk, "");
}

inline bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

#define EXPECT_CONTAINS(text, part) \
  EXPECT_TRUE(::oga::testing::Contains((text), (part))) << "  text: " << (text) << "\n  part: " << (part)

// A tree as JSON text again, one member a line.
inline std::string WriteJson(const JsonValue& value) {
  std::string out;
  switch (value.kind) {
    case JsonValue::Kind::kNull:
    case JsonValue::Kind::kBoolean: return Describe(value);
    case JsonValue::Kind::kInteger:
    case JsonValue::Kind::kReal: return value.text;
    case JsonValue::Kind::kString: return '"' + value.text + '"';
    case JsonValue::Kind::kArray:
      for (const JsonValue& element : value.elements) out += (out.empty() ? "" : ", ") + WriteJson(element);
      return '[' + out + ']';
    case JsonValue::Kind::kObject:
      for (const JsonMember& member : value.members) {
        out += (out.empty() ? "\n\"" : ",\n\"") + member.name + "\": " + WriteJson(member.value);
      }
      return '{' + out + '}';
  }
  return out;
}

// Every value a host can see, so that "the config stays as it was" is one comparison.
inline std::string Fingerprint(const GenaiConfig& config) {
  std::string out = Message(config.folder(), '|', config.model_type(), '|', config.vocab_size(), '|',
                            config.context_length_tokens(), '|', config.decoder_path(), '|');
  for (const TokenId id : config.eos_token_ids()) out += Message(id, ',');
  out += Message('|', config.bos_token_id().value_or(-1), '|', config.pad_token_id().value_or(-1), '|');
  const DecoderConfig& decoder = config.decoder();
  for (const int32_t layer : decoder.paged_layers) out += Message(layer, ',');
  out +=
      Message('|', decoder.num_hidden_layers, '|', decoder.num_attention_heads, '|', decoder.num_key_value_heads, '|',
              decoder.head_size, '|', decoder.hidden_size, '|', decoder.session.intra_op_num_threads.value_or(-1), '|',
              decoder.session.inter_op_num_threads.value_or(-1), '|');
  for (const std::string& provider : config.providers()) out += provider + ',';
  const DecoderTensorNames& names = decoder.names;
  for (const std::string* name :
       {&names.input_ids, &names.cumulative_sequence_lengths, &names.past_sequence_lengths, &names.block_table,
        &names.attention_metadata, &names.position_ids, &names.logits_indices, &names.attention_mask,
        &names.block_table_windowed, &names.past_key_names, &names.past_value_names, &names.logits,
        &names.present_key_names, &names.present_value_names}) {
    out += '|' + *name;
  }
  const SearchDefaults& search = config.search();
  for (const SamplingOption& option : kSamplingOptions) {
    std::visit([&](auto fields) { out += Message('|', search.*fields.model); }, option.fields);
  }
  out += Message('|', search.max_length_tokens, '|', search.min_length_tokens, '|', search.num_beams, '|',
                 config.chunk_size_tokens());
  const DynamicBatchingConfig& batching = config.dynamic_batching();
  for (const auto& limit : {batching.block_size, batching.num_blocks, batching.max_batch_size,
                            batching.max_scheduled_tokens, batching.max_resident_requests, batching.max_wait_steps}) {
    out += Message('|', limit.value_or(0));
  }
  return out + Message('|', batching.gpu_utilization_factor.value_or(0.0));
}

// Collects the info lines written while it lives.
class InfoLog {
 public:
  InfoLog() {
    lines().clear();
    log::SetCallback([](const char* text, size_t length) { lines().emplace_back(text, length); });
    log::SetEnabled(log::Level::kInfo, true);
  }
  ~InfoLog() {
    log::SetEnabled(log::Level::kInfo, false);
    log::SetCallback(nullptr);
  }
  InfoLog(const InfoLog&) = delete;
  InfoLog& operator=(const InfoLog&) = delete;

  static std::vector<std::string>& lines() {
    static std::vector<std::string> lines;
    return lines;
  }

  // The lines that contain `part`.
  static std::vector<std::string> With(const std::string& part) {
    std::vector<std::string> found;
    std::copy_if(lines().begin(), lines().end(), std::back_inserter(found),
                 [&](const std::string& line) { return Contains(line, part); });
    return found;
  }
};

}  // namespace oga::testing
