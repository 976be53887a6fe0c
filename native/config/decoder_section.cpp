#include "base/error.h"
#include "config/config_sections.h"

namespace oga {

namespace {

// Bounds that no real decoder reaches, so that a mistyped size is an error here and not an allocation later.
constexpr int64_t kMaxLayers = 65536;
constexpr int64_t kMaxHeads = 65536;
constexpr int64_t kMaxHeadSize = 65536;

void CheckPipeline(const JsonObject& decoder) {
  const JsonValue* pipeline = decoder.Find("pipeline");
  if (pipeline == nullptr || (pipeline->elements.empty() && pipeline->members.empty())) return;
  ThrowAbout(StatusCode::kUnsupported, *pipeline, decoder.PathOf("pipeline"),
             " splits the decoder into several graphs; oga runs a decoder of one graph, named by ",
             decoder.PathOf("filename"));
}

std::string ReadFilename(const JsonObject& decoder) {
  std::string filename = decoder.RequiredString("filename");
  if (filename.front() == '/') {
    RefuseValue(*decoder.Find("filename"), decoder.PathOf("filename"), "a path relative to the model folder");
  }
  return filename;
}

}  // namespace

DecoderConfig ReadDecoder(const JsonObject& decoder, ConfigNotes& notes) {
  CheckPipeline(decoder);
  DecoderConfig config;
  config.filename = ReadFilename(decoder);
  const auto size = [&](const char* key, int64_t max) {
    return static_cast<int32_t>(decoder.RequiredInteger(key, {1, max}));
  };
  config.num_hidden_layers = size("num_hidden_layers", kMaxLayers);
  config.num_attention_heads = size("num_attention_heads", kMaxHeads);
  config.num_key_value_heads = size("num_key_value_heads", kMaxHeads);
  config.head_size = size("head_size", kMaxHeadSize);
  config.hidden_size = static_cast<int32_t>(decoder.Integer("hidden_size", {1, INT32_MAX}).value_or(0));
  if (config.num_attention_heads % config.num_key_value_heads != 0) {
    RefuseValue(
        *decoder.Find("num_key_value_heads"), decoder.PathOf("num_key_value_heads"),
        Message("a divisor of ", decoder.PathOf("num_attention_heads"), ", which is ", config.num_attention_heads));
  }
  config.names = ReadTensorNames(decoder);
  config.session = ReadSession(decoder, notes);
  config.paged_layers = ReadPagedLayers(decoder, config.num_hidden_layers, notes);
  CheckSlidingWindow(decoder, config.num_hidden_layers, config.paged_layers, notes);
  return config;
}

}  // namespace oga
