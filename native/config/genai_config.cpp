#include "config/genai_config.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/printable_text.h"
#include "config/config_file.h"
#include "config/config_keys.h"
#include "config/config_notes.h"
#include "config/config_sections.h"
#include "config/json_object.h"
#include "config/json_reader.h"
#include "device/devices.h"

namespace oga {

namespace {

constexpr const char* kWayOutOfProviders =
    "remove it with OgaConfigClearProviders (in Python config.clear_providers()) to run on the CPU";

JsonValue ReadRoot(const std::string& text, const JsonValue::Source& source) {
  JsonValue root = ReadJson(text, source);
  if (root.kind != JsonValue::Kind::kObject) RefuseValue(root, "", "a JSON object");
  return root;
}

// The member of that name, made when there is none or it is no `kind`.
JsonValue& MakeMember(JsonValue& object, const char* name, JsonValue::Kind kind) {
  if (object.Find(name) == nullptr) object.members.push_back({name, 0, {}});
  JsonValue& member = *object.Find(name);
  if (member.kind != kind) {
    member = JsonValue{};
    member.kind = kind;
    member.source = object.source;
  }
  return member;
}

JsonValue& ProviderOptions(JsonValue& root) {
  JsonValue& decoder = *root.Find("model")->Find("decoder");
  JsonValue& session = MakeMember(decoder, "session_options", JsonValue::Kind::kObject);
  return MakeMember(session, "provider_options", JsonValue::Kind::kArray);
}

// Sections of models that are more than a decoder.
void NoteOtherModels(const JsonObject& model, ConfigNotes& notes) {
  for (const char* key : {"encoder", "embedding", "vision", "speech"}) {
    if (const std::optional<JsonObject> section = model.Object(key)) {
      notes.AddOff(section->value(), section->path(), "only the decoder runs");
    }
  }
}

}  // namespace

GenaiConfig GenaiConfig::FromRoot(std::shared_ptr<const JsonValue> root_value, const std::string& folder,
                                  const std::shared_ptr<const std::string>& news) {
  ConfigNotes notes(news);
  CheckKeys(*root_value, notes);
  const JsonObject root(*root_value, "");
  const JsonObject model = root.RequiredObject("model");
  GenaiConfig config;
  config.folder_ = folder;
  config.model_type_ = model.RequiredString("type");
  // Token ids and positions are int32 in the model's tensors.
  config.vocab_size_ = static_cast<int32_t>(model.RequiredInteger("vocab_size", {1, INT32_MAX}));
  config.context_length_tokens_ = static_cast<uint64_t>(model.RequiredInteger("context_length", {1, INT32_MAX}));
  config.eos_token_ids_ = ReadEosTokenIds(model, config.vocab_size_);
  config.bos_token_id_ = ReadSpecialTokenId(model, "bos_token_id", config.vocab_size_, notes);
  config.pad_token_id_ = ReadSpecialTokenId(model, "pad_token_id", config.vocab_size_, notes);
  MarkerTokenIds& markers = config.marker_token_ids_;
  markers.tool_call_begin = ReadSpecialTokenId(model, "bot_token_id", config.vocab_size_, notes);
  markers.tool_call_end = ReadSpecialTokenId(model, "eot_token_id", config.vocab_size_, notes);
  markers.reasoning_begin = ReadSpecialTokenId(model, "bor_token_id", config.vocab_size_, notes);
  markers.reasoning_end = ReadSpecialTokenId(model, "eor_token_id", config.vocab_size_, notes);
  for (const char* key :
       {"sep_token_id", "decoder_start_token_id", "image_token_id", "video_token_id", "vision_start_token_id"}) {
    ReadSpecialTokenId(model, key, config.vocab_size_, notes);
  }
  NoteOtherModels(model, notes);
  config.decoder_ = ReadDecoder(model.RequiredObject("decoder"), notes);
  const SearchSection search = ReadSearch(root, config.context_length_tokens_, notes);
  config.search_ = search.defaults;
  config.chunk_size_tokens_ = search.chunk_size_tokens;
  config.dynamic_batching_ = ReadEngine(root, notes);
  config.root_ = std::move(root_value);
  notes.WriteToLog();
  return config;
}

GenaiConfig GenaiConfig::FromFolder(const std::string& folder) {
  const std::string absolute = AbsoluteFolder(folder);
  return FromText(ReadConfigFile(absolute), absolute);
}

GenaiConfig GenaiConfig::FromText(const std::string& text, const std::string& folder) {
  const auto source = std::make_shared<const std::string>(Printable(folder + "/" + kConfigFileName));
  return FromRoot(std::make_shared<const JsonValue>(ReadRoot(text, source)), folder, source);
}

GenaiConfig GenaiConfig::WithOverlay(const std::string& json) const {
  const auto source = std::make_shared<const std::string>("overlay");
  try {
    auto merged = std::make_shared<JsonValue>(*root_);
    MergeOver(*merged, ReadRoot(json, source));
    return FromRoot(std::move(merged), folder_, source);
  } catch (const Error& error) {
    // A rule between two keys may name the file's line although it is the overlay that broke the rule. What is wrong with
    // the text as a whole is about the parameter that gave it.
    Throw(error.code(), Field{error.field() == *source ? "json" : error.field()},
          "the overlay is refused and the config stays as it was: ", error.message());
  }
}

GenaiConfig GenaiConfig::WithoutProviders() const {
  auto changed = std::make_shared<JsonValue>(*root_);
  ProviderOptions(*changed).elements.clear();
  return FromRoot(std::move(changed), folder_, nullptr);
}

GenaiConfig GenaiConfig::WithProvider(const std::string& provider) const {
  if (provider.empty()) {
    Throw(StatusCode::kInvalidArgument, Field{"provider"}, "the provider name is empty; give one, for example 'cpu'");
  }
  if (!HasDevice(provider)) {
    Throw(StatusCode::kUnsupported, Field{"provider"}, "this build of oga has no execution provider ", Quoted(provider),
          "; it runs models on ", DeviceNames());
  }
  auto changed = std::make_shared<JsonValue>(*root_);
  JsonValue& list = ProviderOptions(*changed);
  JsonValue options;
  options.kind = JsonValue::Kind::kObject;
  options.source = list.source;
  JsonValue entry = options;
  entry.members.push_back({provider, 0, std::move(options)});
  list.elements.push_back(std::move(entry));
  return FromRoot(std::move(changed), folder_, nullptr);
}

void GenaiConfig::CheckRunnable() const {
  CheckProvidersUsable();
  CheckStateGroupsUsable();
}

void GenaiConfig::CheckProvidersUsable() const {
  const auto unusable = std::find_if_not(providers().begin(), providers().end(), HasDevice);
  if (unusable == providers().end()) return;
  const JsonValue& options = *root_->Find("model")->Find("decoder")->Find("session_options")->Find("provider_options");
  ThrowAbout(StatusCode::kUnsupported, options, "model.decoder.session_options.provider_options",
             " asks for the execution provider ", Quoted(*unusable), ", which this build of oga does not have; ",
             kWayOutOfProviders);
}

void GenaiConfig::CheckStateGroupsUsable() const {
  const JsonValue* groups = root_->Find("model")->Find("decoder")->Find("state_groups");
  if (groups == nullptr) return;
  for (size_t i = 0; i < groups->elements.size(); ++i) {
    const JsonValue& kind = *groups->elements[i].Find("kind");
    if (kind.text == kPagedKvKind) continue;
    ThrowAbout(StatusCode::kUnsupported, kind, Message("model.decoder.state_groups[", i, "].kind"), " is ",
               Quoted(kind.text),
               ", a kind of decoder state that this build of oga does not have; it runs decoders whose ",
               "layers keep keys and values ('", kPagedKvKind, "')");
  }
}

std::string GenaiConfig::decoder_path() const { return folder_ + "/" + decoder_.filename; }

}  // namespace oga
