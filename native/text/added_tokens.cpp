#include "text/added_tokens.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/printable_text.h"

namespace oga {

namespace {

using Kind = JsonValue::Kind;

auto FindByContent(std::vector<AddedToken>& added, const std::string& content) {
  return std::find_if(added.begin(), added.end(), [&](const auto& token) { return token.content == content; });
}

TokenId NextId(const TokenTexts& vocabulary, const std::vector<AddedToken>& added) {
  TokenId next = static_cast<TokenId>(vocabulary.count());
  for (const AddedToken& token : added) next = std::max(next, token.id + 1);
  return next;
}

void Append(AddedToken token, const TokenTexts& vocabulary, std::vector<AddedToken>& added) {
  const auto known = FindByContent(added, token.content);
  if (known != added.end()) {
    known->special = known->special || token.special;
    return;
  }
  token.id = vocabulary.Find(token.content).value_or(NextId(vocabulary, added));
  added.push_back(std::move(token));
}

AddedToken ReadAddedToken(const JsonObject& object) {
  const JsonValue* content = object.Find("content");
  if (content == nullptr || content->kind != Kind::kString) {
    RefuseValue(content == nullptr ? object.value() : *content, object.PathOf("content"), "the text of a token");
  }
  AddedToken token{.content = content->text};
  token.special = object.Boolean("special").value_or(false);
  token.lstrip = object.Boolean("lstrip").value_or(false);
  token.rstrip = object.Boolean("rstrip").value_or(false);
  token.single_word = object.Boolean("single_word").value_or(false);
  token.normalized = object.Boolean("normalized").value_or(!token.special);
  return token;
}

struct NamedToken {
  AddedToken token;
  int64_t id;  // that its file says
  const JsonValue* origin;
};

std::vector<NamedToken> ReadDecoderEntries(const JsonObject& settings) {
  std::vector<NamedToken> named;
  const std::optional<JsonObject> entries = settings.Object("added_tokens_decoder");
  if (!entries) return named;
  for (const JsonMember& member : entries->value().members) {
    int64_t id = -1;
    const char* end = member.name.data() + member.name.size();
    const auto [stop, error] = std::from_chars(member.name.data(), end, id);
    const std::string path = JoinPath(entries->path(), member.name);
    if (error != std::errc() || stop != end) RefuseValue(member.value, path, "named by a token id");
    named.push_back({ReadAddedToken(JsonObject(member.value, path)), id, &member.value});
  }
  return named;
}

// {"text": id}: a file that old models have.
void ReadAddedTokensFile(const JsonValue& file, const JsonObject& settings, std::vector<NamedToken>& named) {
  for (const JsonMember& member : file.members) {
    const auto is_same = [&](const NamedToken& other) { return other.token.content == member.name; };
    if (std::any_of(named.begin(), named.end(), is_same)) continue;
    AddedToken token{.content = member.name};
    for (const char* role :
         {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
      token.special = token.special || TokenOfRole(settings.value(), role) == token.content;
    }
    token.normalized = !token.special;
    named.push_back({std::move(token), ReadInteger(member.value, member.name, {0, INT32_MAX}), &member.value});
  }
}

}  // namespace

std::vector<AddedToken> ReadAddedTokens(const JsonObject& root, const TokenTexts& vocabulary) {
  std::vector<AddedToken> added;
  const std::vector<JsonValue>* list = root.List("added_tokens", "a list of tokens");
  if (list == nullptr) return added;
  for (size_t i = 0; i < list->size(); ++i) {
    AddedToken token = ReadAddedToken(JsonObject((*list)[i], JoinPath(root.PathOf("added_tokens"), i)));
    if (!token.content.empty()) Append(std::move(token), vocabulary, added);
  }
  return added;
}

void AppendAddedTokens(const JsonObject& settings, const JsonValue& added_tokens_file, const TokenTexts& vocabulary,
                       std::vector<AddedToken>& added) {
  std::vector<NamedToken> named = ReadDecoderEntries(settings);
  ReadAddedTokensFile(added_tokens_file, settings, named);
  std::stable_sort(named.begin(), named.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  for (NamedToken& entry : named) {
    const std::string content = entry.token.content;
    if (content.empty() || FindByContent(added, content) != added.end()) continue;
    Append(std::move(entry.token), vocabulary, added);
    if (added.back().id != entry.id) {
      Throw(StatusCode::kInvalidArgument, Field{*entry.origin->source}, Where(entry.origin->source, entry.origin->line),
            "the token ", Quoted(content, 60), " has the id ", entry.id, " here, but ", added.back().id,
            " by tokenizer.json, which does not list it; add it there");
    }
  }
}

}  // namespace oga
