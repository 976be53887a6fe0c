#include "text/pre_tokenizer.h"

#include <utility>

#include "base/error.h"
#include "base/printable_text.h"
#include "text/byte_alphabet.h"
#include "text/tokenizer_component.h"

namespace oga {

namespace {

[[noreturn]] void Refuse(const JsonObject& component, const std::string& what) {
  RefuseComponent(component, what, kEncodeElsewhere);
}

std::string WriteInAlphabet(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += AlphabetOf(static_cast<uint8_t>(byte));
  return text;
}

void AppendAll(const Pieces& pieces, std::vector<std::string>& out) {
  out.insert(out.end(), pieces.begin(), pieces.end());
}

}  // namespace

PreTokenizer::PreTokenizer(const JsonObject& root) {
  const JsonValue* found = root.Find("pre_tokenizer");
  if (found != nullptr) Read(JsonObject(*found, "pre_tokenizer"));
}

void PreTokenizer::Read(const JsonObject& component) {
  const std::string type = component.RequiredString("type");
  if (type == "Sequence") {
    const std::vector<JsonValue>* list = component.List("pretokenizers", "a list of pre-tokenizers");
    for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
      Read(JsonObject((*list)[i], JoinPath(component.PathOf("pretokenizers"), i)));
    }
  } else if (type == "ByteLevel") {
    steps_.push_back(
        ByteLevel{component.Boolean("add_prefix_space").value_or(true), component.Boolean("use_regex").value_or(true)});
  } else if (type == "Digits") {
    steps_.push_back(Digits{component.Boolean("individual_digits").value_or(false)});
  } else if (type == "Metaspace") {
    steps_.push_back(ReadMetaspace(component));
  } else if (type == "Split") {
    steps_.push_back(ReadSplit(component));
  } else {
    Refuse(component, Message("the pre-tokenizer ", Quoted(type, 60)));
  }
}

PreTokenizer::Step PreTokenizer::ReadMetaspace(const JsonObject& component) {
  const bool adds = component.Boolean("add_prefix_space").value_or(true);
  const std::string scheme = component.String("prepend_scheme").value_or(adds ? "always" : "never");
  Metaspace step{RequiredText(component, "replacement"), Metaspace::Scheme::kAlways,
                 component.Boolean("split").value_or(true)};
  if (scheme == "first") step.scheme = Metaspace::Scheme::kFirst;
  if (scheme == "never") step.scheme = Metaspace::Scheme::kNever;
  return step;
}

PreTokenizer::Step PreTokenizer::ReadSplit(const JsonObject& component) {
  const std::string behavior = component.RequiredString("behavior");
  if (component.Boolean("invert").value_or(false)) Refuse(component, "the pre-tokenizer 'Split' with invert");
  if (const std::optional<std::string> delimiter = StringPattern(component)) {
    if (behavior == "Isolated") return ByDelimiter{*delimiter, DelimiterBehavior::kIsolated};
    if (behavior == "MergedWithPrevious") return ByDelimiter{*delimiter, DelimiterBehavior::kMergedWithPrevious};
    if (behavior == "MergedWithNext") return ByDelimiter{*delimiter, DelimiterBehavior::kMergedWithNext};
    Refuse(component, Message("the pre-tokenizer 'Split' with the behavior ", Quoted(behavior, 60)));
  }
  const std::string expression = RequiredText(component.RequiredObject("pattern"), "Regex");
  const SplitPattern* pattern = FindSplitPattern(expression);
  if (pattern == nullptr || behavior != "Isolated") {
    Refuse(component,
           Message("the pre-tokenizer 'Split' by the expression ", Quoted(expression, 200), " (", behavior, ")"));
  }
  return ByPattern{*pattern};
}

std::vector<std::string> PreTokenizer::Split(std::string_view text, bool at_begin) const {
  std::vector<std::string> pieces{std::string(text)};
  for (const Step& step : steps_) {
    std::vector<std::string> next;
    for (size_t i = 0; i < pieces.size(); ++i) Apply(step, std::move(pieces[i]), at_begin && i == 0, next);
    pieces = std::move(next);
  }
  return pieces;
}

void PreTokenizer::Apply(const Step& step, std::string piece, bool at_begin, std::vector<std::string>& out) {
  if (const auto* level = std::get_if<ByteLevel>(&step)) {
    if (level->adds_space && !piece.starts_with(' ')) piece.insert(0, 1, ' ');
    const Pieces parts = level->splits ? SplitByPattern(piece, SplitPattern::kGpt2) : Pieces{piece};
    for (const std::string_view part : parts) out.push_back(WriteInAlphabet(part));
  } else if (const auto* space = std::get_if<Metaspace>(&step)) {
    piece = ReplaceAll(piece, " ", space->replacement);
    const bool may_add =
        space->scheme == Metaspace::Scheme::kAlways || (space->scheme == Metaspace::Scheme::kFirst && at_begin);
    if (may_add && !piece.starts_with(space->replacement)) piece.insert(0, space->replacement);
    AppendAll(
        space->splits ? SplitByDelimiter(piece, space->replacement, DelimiterBehavior::kMergedWithNext) : Pieces{piece},
        out);
  } else if (const auto* digits = std::get_if<Digits>(&step)) {
    AppendAll(SplitByDigits(piece, digits->one_by_one), out);
  } else if (const auto* pattern = std::get_if<ByPattern>(&step)) {
    AppendAll(SplitByPattern(piece, pattern->pattern), out);
  } else {
    const auto& delimiter = std::get<ByDelimiter>(step);
    AppendAll(SplitByDelimiter(piece, delimiter.delimiter, delimiter.behavior), out);
  }
}

}  // namespace oga
