#include "model/manifest.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/printable_text.h"
#include "model/graph_tensors.h"

namespace oga {

namespace {

using ort::ElementType;

constexpr std::pair<ElementType, CacheType> kCacheTypes[] = {{ElementType::kFloat, CacheType::kFloat32},
                                                             {ElementType::kFloat16, CacheType::kFloat16},
                                                             {ElementType::kBfloat16, CacheType::kBfloat16},
                                                             {ElementType::kInt8, CacheType::kInt8}};
constexpr const char* kCacheShape = "[num_blocks, block_size, num_key_value_heads, head_size]";

// "past_key_values.%d.key" for layer 3 is "past_key_values.3.key".
std::string LayerName(const std::string& name_template, int32_t layer) {
  const size_t placeholder = name_template.find("%d");
  return name_template.substr(0, placeholder) + std::to_string(layer) + name_template.substr(placeholder + 2);
}

// Whether `name` is what `name_template` makes of some layer.
bool IsLayerName(const std::string& name, const std::string& name_template) {
  const size_t placeholder = name_template.find("%d");
  const size_t tail_length = name_template.size() - placeholder - 2;
  if (name.size() <= placeholder + tail_length) return false;
  const std::string number = name.substr(placeholder, name.size() - placeholder - tail_length);
  return number.find_first_not_of("0123456789") == std::string::npos &&
         name == name_template.substr(0, placeholder) + number + name_template.substr(placeholder + 2);
}

// Fills a manifest part by part; each part throws on the first thing that does not fit.
class ManifestReader {
 public:
  ManifestReader(const std::vector<ort::TensorInfo>& inputs, const std::vector<ort::TensorInfo>& outputs,
                 const GenaiConfig& config)
      : config_(config),
        inputs_(inputs, "input", config.decoder_path()),
        outputs_(outputs, "output", config.decoder_path()) {
    manifest_.names = config.decoder().names;
  }

  DecoderManifest Read() {
    RefusePlainExport();
    RefuseWindowTables();
    ReadTables();
    ReadCaches();
    ReadLogits();
    RefuseUnknownInputs();
    return std::move(manifest_);
  }

 private:
  const DecoderTensorNames& names() const { return manifest_.names; }

  // The commonest mistake: the folder of an ordinary export, with a mask and one contiguous cache per row.
  void RefusePlainExport() const {
    if (inputs_.Find(names().block_table) != nullptr) return;
    const std::string mask_name = names().attention_mask.empty() ? "attention_mask" : names().attention_mask;
    const ort::TensorInfo* const ids = inputs_.Find(names().input_ids);
    const bool has_mask = inputs_.Find(mask_name) != nullptr;
    if (!has_mask && (ids == nullptr || ids->dims.size() != 2)) return;
    const std::string sign = has_mask ? Message("has the input ", Quoted(mask_name))
                                      : Message("takes input_ids of shape ", ort::ShapeText(ids->dims));
    Throw(StatusCode::kUnsupported, Field{inputs_.graph()}, Printable(inputs_.graph()), " is a plain export: it ", sign,
          " and no input ", Quoted(names().block_table),
          " (model.decoder.inputs.block_table). oga runs decoders with a paged cache; ",
          "convert the folder once with: oga convert ", Quoted(config_.folder()), " NEW_FOLDER");
  }

  void RefuseWindowTables() const {
    const bool named = !names().block_table_windowed.empty();
    const std::string name = named ? names().block_table_windowed : "block_table_windowed";
    if (!named && inputs_.Find(name) == nullptr) return;
    inputs_.Refuse(StatusCode::kUnsupported, name, "block_table_windowed",
                   ": ring tables of sliding-window layers are not built; export the model with full block tables ",
                   "(attribute local_window_size on its PagedAttention nodes)");
  }

  const ort::TensorInfo& Vector(const std::string& name, const char* key, std::initializer_list<ElementType> types,
                                const char* shape) const {
    const ort::TensorInfo& tensor = inputs_.Require(name, key);
    inputs_.RequireType(tensor, key, types);
    inputs_.RequireRank(tensor, key, 1, shape);
    return tensor;
  }

  void ReadTables() {
    Vector(names().input_ids, "input_ids", {ElementType::kInt64}, "[num_tokens]");
    Vector(names().cumulative_sequence_lengths, "cumulative_sequence_lengths", {ElementType::kInt32}, "[rows + 1]");
    Vector(names().past_sequence_lengths, "past_sequence_lengths", {ElementType::kInt32}, "[rows]");
    const ort::TensorInfo& table = inputs_.Require(names().block_table, "block_table");
    inputs_.RequireType(table, "block_table", {ElementType::kInt32});
    inputs_.RequireRank(table, "block_table", 2, "[rows, columns]");
    manifest_.has_attention_metadata = inputs_.Find(names().attention_metadata) != nullptr;
    if (manifest_.has_attention_metadata) {
      const auto& metadata = Vector(names().attention_metadata, "attention_metadata", {ElementType::kInt32}, "[3]");
      inputs_.RequireDimension(metadata, "attention_metadata", 0, 3, true, "the format of a paged decoder");
    }
    if (!names().position_ids.empty()) ReadPositions();
  }

  void ReadPositions() {
    const ort::TensorInfo& positions = inputs_.Require(names().position_ids, "position_ids");
    inputs_.RequireType(positions, "position_ids", {ElementType::kInt64});
    if (positions.dims.size() == 1) {
      manifest_.position_rows = 1;
      return;
    }
    inputs_.RequireRank(positions, "position_ids", 2, "[num_tokens] or [3, num_tokens]");
    inputs_.RequireDimension(positions, "position_ids", 0, 3, false, "the format of a paged decoder");
    manifest_.position_rows = 3;
  }

  void ReadCaches() {
    manifest_.num_kv_heads = static_cast<uint32_t>(config_.decoder().num_key_value_heads);
    manifest_.head_size = static_cast<uint32_t>(config_.decoder().head_size);
    ElementType type = ElementType::kUndefined;
    for (const int32_t layer : config_.decoder().paged_layers) {
      LayerTensors& tensors = manifest_.layers.emplace_back();
      tensors = {LayerName(names().past_key_names, layer), LayerName(names().past_value_names, layer),
                 LayerName(names().present_key_names, layer), LayerName(names().present_value_names, layer)};
      ReadCache(inputs_, tensors.past_key, "past_key_names", &type);
      ReadCache(inputs_, tensors.past_value, "past_value_names", &type);
      ReadCache(outputs_, tensors.present_key, "present_key_names", &type);
      ReadCache(outputs_, tensors.present_value, "present_value_names", &type);
    }
    for (const auto& [element, cache] : kCacheTypes) {
      if (element == type) manifest_.cache_type = cache;
    }
  }

  // `type` is that of the caches read before; undefined at the first.
  void ReadCache(const GraphTensors& side, const std::string& name, const char* key, ElementType* type) {
    const ort::TensorInfo& cache = side.Require(name, key);
    const auto is_kept = [&](const auto& types) { return types.first == cache.type; };
    if (std::none_of(std::begin(kCacheTypes), std::end(kCacheTypes), is_kept)) {
      side.Refuse(StatusCode::kUnsupported, name, key, " has element type ", ElementTypeName(cache.type),
                  "; this build keeps caches of float, float16, bfloat16 and int8");
    }
    if (*type == ElementType::kUndefined) *type = cache.type;
    side.RequireType(cache, key, {*type});
    side.RequireRank(cache, key, 4, kCacheShape);
    side.RequireDimension(cache, key, 2, manifest_.num_kv_heads, true, "model.decoder.num_key_value_heads");
    side.RequireDimension(cache, key, 3, manifest_.head_size, true, "model.decoder.head_size");
    ReadFixedSize(side, cache, key, 0, &manifest_.fixed_num_blocks);
    ReadFixedSize(side, cache, key, 1, &manifest_.fixed_block_size);
  }

  // A graph may fix the size of its pool; then all caches must agree.
  void ReadFixedSize(const GraphTensors& side, const ort::TensorInfo& cache, const char* key, size_t index,
                     int64_t* fixed) const {
    const ort::Dimension& dim = cache.dims[index];
    if (!dim.is_fixed()) return;
    if (*fixed < 0) *fixed = dim.size;
    side.RequireDimension(cache, key, index, *fixed, false, "another cache of the graph");
  }

  void ReadLogits() {
    const ort::TensorInfo& logits = outputs_.Require(names().logits, "logits");
    outputs_.RequireType(logits, "logits", {ElementType::kFloat});
    outputs_.RequireRank(logits, "logits", 2, "[rows of logits, vocabulary]");
    outputs_.RequireDimension(logits, "logits", 1, config_.vocab_size(), false, "model.vocab_size");
    manifest_.vocab_size = config_.vocab_size();
    if (!names().logits_indices.empty()) {
      const auto types = {ElementType::kInt32, ElementType::kInt64};
      manifest_.logits_index_type = Vector(names().logits_indices, "logits_indices", types, "[num_logits]").type;
      manifest_.logits_rows = LogitsRows::kPerIndex;
      return;
    }
    manifest_.logits_rows = RowsOfLogits(logits);
  }

  // Without indices only the name of the dimension tells how many rows there are.
  LogitsRows RowsOfLogits(const ort::TensorInfo& logits) const {
    const std::string& symbol = logits.dims[0].symbol;
    const std::string& tokens = inputs_.Require(names().input_ids, "input_ids").dims[0].symbol;
    const std::string& rows = inputs_.Require(names().past_sequence_lengths, "past_sequence_lengths").dims[0].symbol;
    if (!symbol.empty() && symbol == tokens && symbol != rows) return LogitsRows::kPerToken;
    if (!symbol.empty() && symbol == rows && symbol != tokens) return LogitsRows::kPerRow;
    outputs_.Refuse(StatusCode::kModelError, logits.name, "logits", " has shape ", ort::ShapeText(logits.dims),
                    ", and the name of its first dimension must tell which tokens get logits: that of input_ids (",
                    tokens.empty() ? "unnamed" : Quoted(tokens), ") for every token, that of past_sequence_lengths (",
                    rows.empty() ? "unnamed" : Quoted(rows),
                    ") for the last token of each row; or the graph takes model.decoder.inputs.logits_indices");
  }

  bool IsKnownInput(const std::string& name) const {
    for (const std::string& known :
         {names().input_ids, names().cumulative_sequence_lengths, names().past_sequence_lengths, names().block_table,
          names().attention_metadata, names().position_ids, names().logits_indices}) {
      if (!known.empty() && name == known) return true;
    }
    for (const LayerTensors& layer : manifest_.layers) {
      if (name == layer.past_key || name == layer.past_value) return true;
    }
    return false;
  }

  // An input nobody fills would fail the first step, or worse, be filled by a default.
  void RefuseUnknownInputs() const {
    for (const ort::TensorInfo& input : inputs_.all()) {
      if (IsKnownInput(input.name)) continue;
      const std::string where = Message(Printable(inputs_.graph()), ": input ", Quoted(input.name));
      if (IsLayerName(input.name, names().past_key_names) || IsLayerName(input.name, names().past_value_names)) {
        Throw(StatusCode::kModelError, Field{inputs_.graph()}, where,
              " is the cache of a layer that the config does not have: ", "model.decoder.num_hidden_layers is ",
              config_.decoder().num_hidden_layers, " and ", manifest_.layers.size(),
              " of the layers have a paged cache");
      }
      Throw(StatusCode::kModelError, Field{inputs_.graph()}, where, " of shape ", ort::ShapeText(input.dims),
            " is not named in model.decoder.inputs, so nothing would fill it; name it there if it is one of ",
            "position_ids, logits_indices or attention_metadata under another name, else this build cannot run it");
    }
  }

  const GenaiConfig& config_;
  GraphTensors inputs_;
  GraphTensors outputs_;
  DecoderManifest manifest_;
};

}  // namespace

uint64_t DecoderManifest::bytes_per_slot() const {
  const uint64_t element_bytes = static_cast<uint64_t>(CacheElementBytes(cache_type));
  return 2 * layers.size() * uint64_t{num_kv_heads} * head_size * element_bytes;
}

DecoderManifest ReadManifest(const std::vector<ort::TensorInfo>& inputs, const std::vector<ort::TensorInfo>& outputs,
                             const GenaiConfig& config) {
  return ManifestReader(inputs, outputs, config).Read();
}

}  // namespace oga
