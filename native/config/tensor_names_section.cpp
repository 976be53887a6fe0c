#include <map>

#include "base/error.h"
#include "config/config_sections.h"

namespace oga {

namespace {

// Reads the names of one side of the graph and refuses two roles for one tensor.
class NameReader {
 public:
  explicit NameReader(std::optional<JsonObject> section) : section_(std::move(section)) {}

  // A tensor the graph must have: what is not given keeps its usual name.
  void Required(const char* key, std::string& name) {
    if (const JsonValue* found = Find(key)) {
      name = ReadString(*found, section_->PathOf(key));
      if (name.empty()) RefuseValue(*found, section_->PathOf(key), "a tensor name that is not empty");
    }
    Claim(key, name);
  }

  // A tensor the graph may lack: not given or empty means that it does.
  void Optional(const char* key, std::string& name) {
    if (const JsonValue* found = Find(key)) name = ReadString(*found, section_->PathOf(key));
    if (!name.empty()) Claim(key, name);
  }

  void Template(const char* key, std::string& name) {
    Required(key, name);
    const size_t placeholder = name.find("%d");
    if (placeholder == std::string::npos || name.find('%') != placeholder || name.rfind('%') != placeholder) {
      RefuseValue(*Find(key), section_->PathOf(key), "a tensor name with one %d for the layer and no other %");
    }
  }

 private:
  const JsonValue* Find(const char* key) const { return section_ ? section_->Find(key) : nullptr; }

  void Claim(const char* key, const std::string& name) {
    const auto [owner, is_new] = key_of_name_.emplace(name, key);
    if (is_new) return;
    // Defaults differ from each other, so at least one of the two is written in the file.
    const char* written = Find(key) != nullptr ? key : owner->second;
    const char* other = written == key ? owner->second : key;
    RefuseValue(*Find(written), section_->PathOf(written),
                Message("another tensor than ", section_->PathOf(other), ", which has that name"));
  }

  std::optional<JsonObject> section_;
  std::map<std::string, const char*> key_of_name_;
};

}  // namespace

DecoderTensorNames ReadTensorNames(const JsonObject& decoder) {
  DecoderTensorNames names;
  NameReader inputs(decoder.Object("inputs"));
  inputs.Required("input_ids", names.input_ids);
  inputs.Required("cumulative_sequence_lengths", names.cumulative_sequence_lengths);
  inputs.Required("past_sequence_lengths", names.past_sequence_lengths);
  inputs.Required("block_table", names.block_table);
  inputs.Required("attention_metadata", names.attention_metadata);
  inputs.Optional("position_ids", names.position_ids);
  inputs.Optional("logits_indices", names.logits_indices);
  inputs.Optional("attention_mask", names.attention_mask);
  inputs.Optional("block_table_windowed", names.block_table_windowed);
  inputs.Template("past_key_names", names.past_key_names);
  inputs.Template("past_value_names", names.past_value_names);

  NameReader outputs(decoder.Object("outputs"));
  outputs.Required("logits", names.logits);
  outputs.Template("present_key_names", names.present_key_names);
  outputs.Template("present_value_names", names.present_value_names);
  return names;
}

}  // namespace oga
