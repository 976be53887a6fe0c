// The readers of the sections of genai_config.json. Each checks its section whole; a missing optional section reads as
// its defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/config_notes.h"
#include "config/genai_config.h"
#include "config/json_object.h"

namespace oga {

// `model`: the token ids.
std::vector<TokenId> ReadEosTokenIds(const JsonObject& model, int32_t vocab_size);
std::optional<TokenId> ReadSpecialTokenId(const JsonObject& model, const char* key, int32_t vocab_size,
                                          ConfigNotes& notes);

// `model.decoder` and what lies in it.
DecoderConfig ReadDecoder(const JsonObject& decoder, ConfigNotes& notes);
DecoderTensorNames ReadTensorNames(const JsonObject& decoder);
SessionConfig ReadSession(const JsonObject& decoder, ConfigNotes& notes);
// The layers of the paged_kv group of `state_groups`; all layers when there are no groups.
std::vector<int32_t> ReadPagedLayers(const JsonObject& decoder, int32_t num_hidden_layers, ConfigNotes& notes);
void CheckSlidingWindow(const JsonObject& decoder, int32_t num_hidden_layers, const std::vector<int32_t>& paged_layers,
                        ConfigNotes& notes);

// `search`
struct SearchSection {
  SearchDefaults defaults;
  uint32_t chunk_size_tokens = 0;
};
SearchSection ReadSearch(const JsonObject& root, uint64_t context_length_tokens, ConfigNotes& notes);

// `engine`
DynamicBatchingConfig ReadEngine(const JsonObject& root, ConfigNotes& notes);

// The kinds of `state_groups`; the name for messages is the one in the file.
inline constexpr const char* kPagedKvKind = "paged_kv";
inline constexpr const char* kFixedKinds[] = {"fixed_conv", "fixed_recurrent"};

}  // namespace oga
