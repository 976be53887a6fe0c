#include "text/text_normalizer.h"

#include "base/error.h"
#include "base/printable_text.h"
#include "text/tokenizer_component.h"
#include "text/unicode_classes.h"

namespace oga {

namespace {

[[noreturn]] void Refuse(const JsonObject& component, const std::string& what) {
  RefuseComponent(component, what, kEncodeElsewhere);
}

}  // namespace

TextNormalizer::TextNormalizer(const JsonObject& root) {
  const JsonValue* found = root.Find("normalizer");
  if (found != nullptr) Read(JsonObject(*found, "normalizer"));
}

void TextNormalizer::Read(const JsonObject& component) {
  const std::string type = component.RequiredString("type");
  if (type == "Sequence") {
    const std::vector<JsonValue>* list = component.List("normalizers", "a list of normalizers");
    for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
      Read(JsonObject((*list)[i], JoinPath(component.PathOf("normalizers"), i)));
    }
  } else if (type == "Prepend") {
    steps_.push_back(Prepend{RequiredText(component, "prepend")});
  } else if (type == "Replace") {
    const std::optional<std::string> from = StringPattern(component);
    if (!from) Refuse(component, "the normalizer 'Replace' of a regular expression");
    steps_.push_back(Replace{*from, RequiredText(component, "content")});
  } else if (type == "NFC") {
    steps_.push_back(Compose{});
  } else {
    Refuse(component, Message("the normalizer ", Quoted(type, 60)));
  }
}

std::string TextNormalizer::Normalize(std::string_view text) const {
  std::string result(text);
  for (const auto& step : steps_) {
    if (const auto* prepend = std::get_if<Prepend>(&step)) {
      result.insert(0, prepend->text);
    } else if (const auto* replace = std::get_if<Replace>(&step)) {
      result = ReplaceAll(result, replace->from, replace->to);
    } else if (!IsComposed(result)) {
      Throw(StatusCode::kUnsupported, Field{kTextParameter}, "the text ", Quoted(result, 60),
            " holds characters that this tokenizer composes (NFC) and that are not composed here; ", kEncodeElsewhere);
    }
  }
  return result;
}

}  // namespace oga
