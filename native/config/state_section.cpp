#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "config/config_sections.h"

namespace oga {

namespace {

// A list of distinct layers of the decoder.
std::vector<int32_t> ReadLayers(const JsonObject& object, const char* key, int32_t num_hidden_layers) {
  const char* wanted = "a list of layer ids";
  const std::vector<JsonValue>* list = object.List(key, wanted);
  std::vector<int32_t> layers;
  if (list == nullptr) return layers;
  std::vector<bool> seen(static_cast<size_t>(num_hidden_layers), false);
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string path = JoinPath(object.PathOf(key), i);
    const auto layer = static_cast<int32_t>(ReadInteger((*list)[i], path, {0, num_hidden_layers - 1}));
    if (seen[static_cast<size_t>(layer)]) RefuseValue((*list)[i], path, "a layer that the list does not name before");
    seen[static_cast<size_t>(layer)] = true;
    layers.push_back(layer);
  }
  return layers;
}

bool IsFixedKind(const std::string& kind) {
  return std::any_of(std::begin(kFixedKinds), std::end(kFixedKinds), [&](const char* fixed) { return kind == fixed; });
}

struct StateGroup {
  std::string kind;
  std::vector<int32_t> layers;
};

StateGroup ReadStateGroup(const JsonObject& group, int32_t num_hidden_layers) {
  // An older form of the manifest carried names in each group; to drop them in silence would bind other tensors.
  for (const char* key : {"id", "bindings"}) {
    if (const JsonValue* found = group.Find(key)) {
      ThrowAbout(
          StatusCode::kInvalidArgument, *found, group.PathOf(key),
          " does not belong in a state group; tensor names stand in model.decoder.inputs and model.decoder.outputs");
    }
  }
  StateGroup result;
  result.kind = group.RequiredString("kind");
  if (result.kind != kPagedKvKind && !IsFixedKind(result.kind)) {
    RefuseValue(*group.Find("kind"), group.PathOf("kind"), "'paged_kv', 'fixed_conv' or 'fixed_recurrent'");
  }
  result.layers = ReadLayers(group, "layer_ids", num_hidden_layers);
  if (result.layers.empty()) {
    const JsonValue* found = group.Find("layer_ids");
    if (found != nullptr) RefuseValue(*found, group.PathOf("layer_ids"), "a list with at least one layer id");
    ThrowAbout(StatusCode::kInvalidArgument, group.value(), group.PathOf("layer_ids"),
               " is missing; it is required and must be a list of layer ids");
  }
  return result;
}

}  // namespace

std::vector<int32_t> ReadPagedLayers(const JsonObject& decoder, int32_t num_hidden_layers, ConfigNotes& notes) {
  const std::vector<JsonValue>* groups = decoder.List("state_groups", "a list of objects with kind and layer_ids");
  if (groups == nullptr) {
    std::vector<int32_t> all(static_cast<size_t>(num_hidden_layers));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  std::vector<std::string> kinds;
  std::vector<int32_t> paged_layers;
  for (size_t i = 0; i < groups->size(); ++i) {
    const JsonValue& value = (*groups)[i];
    const JsonObject group(value, JoinPath(decoder.PathOf("state_groups"), i));
    StateGroup read = ReadStateGroup(group, num_hidden_layers);
    if (std::find(kinds.begin(), kinds.end(), read.kind) != kinds.end()) {
      RefuseValue(*group.Find("kind"), group.PathOf("kind"), "a kind that no group before has; put its layers there");
    }
    if (read.kind == kPagedKvKind) {
      paged_layers = std::move(read.layers);
    } else {
      notes.AddOff(value, group.path(), Message(read.kind, " state; a model that needs it does not load"));
    }
    kinds.push_back(std::move(read.kind));
  }
  if (paged_layers.empty()) {
    RefuseValue(*decoder.Find("state_groups"), decoder.PathOf("state_groups"), "a list with one 'paged_kv' group");
  }
  return paged_layers;
}

void CheckSlidingWindow(const JsonObject& decoder, int32_t num_hidden_layers, const std::vector<int32_t>& paged_layers,
                        ConfigNotes& notes) {
  const std::optional<JsonObject> window = decoder.Object("sliding_window");
  if (!window) return;
  window->Integer("window_size", {1, INT32_MAX});
  window->Integer("pad_value", {INT32_MIN, INT32_MAX});
  window->Integer("cache_slack", {0, INT32_MAX});
  window->Boolean("slide_key_value_cache");
  window->Boolean("slide_inputs");
  const std::optional<std::string> alignment = window->String("alignment");
  if (alignment && *alignment != "left" && *alignment != "right") {
    RefuseValue(*window->Find("alignment"), window->PathOf("alignment"), "'left' or 'right'");
  }
  for (const int32_t layer : ReadLayers(*window, "layers", num_hidden_layers)) {
    if (std::find(paged_layers.begin(), paged_layers.end(), layer) == paged_layers.end()) {
      RefuseValue(*window->Find("layers"), window->PathOf("layers"),
                  Message("layers of the 'paged_kv' group only; layer ", layer, " is not in it"));
    }
  }
  notes.AddOff(window->value(), window->path(), "every layer keeps its whole sequence");
}

}  // namespace oga
