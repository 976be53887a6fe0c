#include <algorithm>

#include "base/error.h"
#include "config/config_sections.h"

namespace oga {

namespace {

// The ids of a key that holds one id or a list of them.
std::vector<int64_t> ReadIds(const JsonObject& model, const char* key, IntegerRange range) {
  const JsonValue* found = model.Find(key);
  if (found == nullptr) return {};
  if (found->kind == JsonValue::Kind::kInteger) return {ReadInteger(*found, model.PathOf(key), range)};
  if (found->kind != JsonValue::Kind::kArray) {
    RefuseValue(*found, model.PathOf(key),
                Message("a token id (an integer from ", range.min, " to ", range.max, "), a list of them, or null"));
  }
  std::vector<int64_t> ids;
  for (size_t i = 0; i < found->elements.size(); ++i) {
    ids.push_back(ReadInteger(found->elements[i], JoinPath(model.PathOf(key), i), range));
  }
  return ids;
}

}  // namespace

std::vector<TokenId> ReadEosTokenIds(const JsonObject& model, int32_t vocab_size) {
  std::vector<TokenId> ids;
  for (const int64_t id : ReadIds(model, "eos_token_id", {0, vocab_size - 1})) {
    const auto token = static_cast<TokenId>(id);
    if (std::find(ids.begin(), ids.end(), token) == ids.end()) ids.push_back(token);
  }
  return ids;
}

std::optional<TokenId> ReadSpecialTokenId(const JsonObject& model, const char* key, int32_t vocab_size,
                                          ConfigNotes& notes) {
  const std::vector<int64_t> ids = ReadIds(model, key, {-1, INT32_MAX});
  if (ids.empty() || ids.front() == -1) return std::nullopt;
  // Models with a padding token that their embedding does not hold are common, and nothing here ever feeds it.
  if (ids.front() >= vocab_size) {
    notes.AddOff(*model.Find(key), model.PathOf(key), Message("beyond the vocabulary of ", vocab_size));
    return std::nullopt;
  }
  return static_cast<TokenId>(ids.front());
}

}  // namespace oga
