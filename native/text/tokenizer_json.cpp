#include "text/tokenizer_json.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "base/printable_text.h"
#include "config/json_object.h"
#include "config/json_reader.h"
#include "config/read_file.h"
#include "text/added_tokens.h"

namespace oga {

namespace {

using Kind = JsonValue::Kind;

// The largest ones of today have 40 MiB.
constexpr size_t kMaxTokenizerBytes = size_t{512} << 20;
// A hole costs a few bytes; an absurd id must not cost all memory.
constexpr int64_t kMaxTokenId = (int64_t{1} << 24) - 1;

constexpr const char* kMissingRemedy =
    "text needs it, token ids work without. Convert the model again with `oga convert`, or copy the file from where "
    "the model came from";
constexpr FileKind kTokenizerKind{.max_bytes = kMaxTokenizerBytes, .noun = "tokenizer", .remedy = kMissingRemedy};
constexpr FileKind kSettingsKind{
    .max_bytes = size_t{64} << 20, .noun = "tokenizer config", .remedy = "it is optional, and a broken link is not"};

// Collects the vocabulary and the merges, which would fill the memory as a tree of values.
class TokenSink final : public JsonSink {
 public:
  enum class Part { kVocabulary, kMerges };  // what is kept; both are checked

  TokenSink(JsonValue::Source source, Part part) : source_(std::move(source)), keeps_merges_(part == Part::kMerges) {}

  bool Takes(const std::string& path) override {
    in_merges_ = path == "model.merges";
    return in_merges_ || path == "model.vocab";
  }

  void OnLeaf(const JsonLeaf& leaf) override {
    if (in_merges_) return OnMerge(leaf);
    // {"text": id} for most models, [["text", score], ...] for Unigram ones.
    if (leaf.depth == 1) return Add(leaf, leaf.name, leaf.kind == Kind::kInteger ? leaf.integer : -1);
    if (leaf.depth > 2 || leaf.index > 1) Refuse(leaf, "model.vocab", "a list of [text, score] pairs");
    if (leaf.index == 1) return;
    if (leaf.kind != Kind::kString) Refuse(leaf, "model.vocab", "a list of [text, score] pairs");
    Add(leaf, leaf.text, count_);
  }

  // Throws when the file ended inside a merge.
  void CheckWhole() const {
    if (half_merge_) {
      Throw(StatusCode::kInvalidArgument, Field{"model.merges"}, *source_, ": model.merges ends inside a pair");
    }
  }

  std::vector<TokenTexts::Entry> TakeEntries() { return std::move(entries_); }
  std::vector<Merge> TakeMerges() { return std::move(merges_); }

 private:
  static constexpr const char* kMergeForms = "\"first second\" or [\"first\", \"second\"]";

  void Add(const JsonLeaf& leaf, std::string_view text, int64_t id) {
    if (id < 0 || id > kMaxTokenId) Refuse(leaf, "model.vocab", Message("ids from 0 to ", kMaxTokenId));
    ++count_;
    if (!keeps_merges_) entries_.push_back({std::string(text), static_cast<TokenId>(id)});
  }

  void OnMerge(const JsonLeaf& leaf) {
    if (leaf.kind != Kind::kString || leaf.depth > 2 || leaf.index > (leaf.depth == 2 ? 1u : SIZE_MAX)) {
      Refuse(leaf, "model.merges", kMergeForms);
    }
    if (leaf.depth == 2) return AddHalfMerge(leaf);
    if (leaf.text.starts_with("#version")) return;
    const size_t space = leaf.text.find(' ');
    if (space == std::string_view::npos || leaf.text.find(' ', space + 1) != std::string_view::npos) {
      Refuse(leaf, "model.merges", kMergeForms);
    }
    if (keeps_merges_) merges_.emplace_back(leaf.text.substr(0, space), leaf.text.substr(space + 1));
  }

  void AddHalfMerge(const JsonLeaf& leaf) {
    if (half_merge_.has_value() != (leaf.index == 1)) Refuse(leaf, "model.merges", kMergeForms);
    if (leaf.index == 0) {
      half_merge_ = leaf.text;
      return;
    }
    if (keeps_merges_) merges_.emplace_back(*half_merge_, leaf.text);
    half_merge_.reset();
  }

  [[noreturn]] void Refuse(const JsonLeaf& leaf, const char* path, const std::string& wanted) const {
    Throw(StatusCode::kInvalidArgument, Field{path}, Where(source_, leaf.line), path, " must hold ", wanted);
  }

  const JsonValue::Source source_;
  const bool keeps_merges_;
  bool in_merges_ = false;
  int64_t count_ = 0;
  std::vector<TokenTexts::Entry> entries_;
  std::vector<Merge> merges_;
  std::optional<std::string> half_merge_;
};

JsonValue::Source SourceOf(const std::string& path) { return std::make_shared<const std::string>(Printable(path)); }

JsonValue EmptyObject(const std::string& path) {
  JsonValue value;
  value.kind = Kind::kObject;
  value.source = SourceOf(path);
  return value;
}

// An object from an optional file of the folder; an empty one when there is no such file.
JsonValue ReadOptionalFile(const std::string& path) {
  if (!FileExists(path)) return EmptyObject(path);
  JsonValue value = ReadJson(ReadFile(path, kSettingsKind), SourceOf(path));
  JsonObject(value, "");
  return value;
}

// Old files leave the type out; what is there tells it.
std::string ReadModelType(const JsonObject& model) {
  const std::optional<std::string> type = model.String("type");
  const JsonValue* vocab = model.Find("vocab");
  if (!type && model.Find("merges") != nullptr) return "BPE";
  if (!type && vocab != nullptr && vocab->kind == Kind::kArray) return "Unigram";
  if (!type) RefuseValue(model.value(), "model", "a model with a type, or with merges");
  if (*type != "BPE" && *type != "Unigram" && *type != "WordLevel") {
    Throw(StatusCode::kUnsupported, Field{model.PathOf("type")}, Where(model.value().source, model.value().line),
          "the tokenizer model ", Quoted(*type, 60), " is not supported; known are BPE, Unigram and WordLevel");
  }
  const Kind wanted = *type == "Unigram" ? Kind::kArray : Kind::kObject;
  if (vocab == nullptr || vocab->kind != wanted) {
    RefuseValue(vocab == nullptr ? model.value() : *vocab, vocab == nullptr ? "model" : "model.vocab",
                wanted == Kind::kArray ? "a list of [text, score] pairs (model.vocab)" : "an object {text: id}");
  }
  return *type;
}

}  // namespace

TokenizerFiles ReadTokenizerFiles(const std::string& folder) {
  const std::string path = folder + "/" + kTokenizerFileName;
  const JsonValue::Source source = SourceOf(path);
  TokenSink sink(source, TokenSink::Part::kVocabulary);
  JsonValue root = ReadJson(ReadFile(path, kTokenizerKind), source, &sink);
  sink.CheckWhole();
  JsonValue settings = ReadOptionalFile(folder + "/tokenizer_config.json");
  std::string model_type = ReadModelType(JsonObject(root, "").RequiredObject("model"));
  TokenTexts vocabulary(sink.TakeEntries(), *source);
  std::vector<AddedToken> added = ReadAddedTokens(JsonObject(root, ""), vocabulary);
  AppendAddedTokens(JsonObject(settings, ""), ReadOptionalFile(folder + "/added_tokens.json"), vocabulary, added);
  return {.folder = folder,
          .root = std::move(root),
          .settings = std::move(settings),
          .model_type = std::move(model_type),
          .vocabulary = std::move(vocabulary),
          .added_tokens = std::move(added)};
}

std::vector<Merge> ReadMerges(const std::string& folder) {
  const std::string path = folder + "/" + kTokenizerFileName;
  const JsonValue::Source source = SourceOf(path);
  TokenSink sink(source, TokenSink::Part::kMerges);
  ReadJson(ReadFile(path, kTokenizerKind), source, &sink);
  sink.CheckWhole();
  return sink.TakeMerges();
}

std::optional<std::string> TokenOfRole(const JsonValue& settings, const char* role) {
  const JsonValue* found = settings.Find(role);
  if (found != nullptr && found->kind == Kind::kObject) found = found->Find("content");
  if (found == nullptr || found->kind != Kind::kString) return std::nullopt;
  return found->text;
}

}  // namespace oga
