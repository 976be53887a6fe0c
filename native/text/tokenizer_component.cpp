#include "text/tokenizer_component.h"

#include "base/error.h"

namespace oga {

void RefuseComponent(const JsonObject& component, const std::string& what, const char* consequence) {
  Throw(StatusCode::kUnsupported, FieldOf(component.value(), component.path()),
        Where(component.value().source, component.value().line), component.path(), ": ", what, " is not supported; ",
        consequence);
}

std::string RequiredText(const JsonObject& object, const char* key) {
  const JsonValue* found = object.Find(key);
  if (found == nullptr || found->kind != JsonValue::Kind::kString) {
    RefuseValue(found == nullptr ? object.value() : *found, object.PathOf(key), "a string");
  }
  return found->text;
}

std::optional<std::string> StringPattern(const JsonObject& component) {
  const JsonObject pattern = component.RequiredObject("pattern");
  if (pattern.Find("String") == nullptr) return std::nullopt;
  return RequiredText(pattern, "String");
}

std::string ReplaceAll(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  size_t at = 0;
  while (!from.empty()) {
    const size_t found = text.find(from, at);
    if (found == std::string_view::npos) break;
    out.append(text, at, found - at).append(to);
    at = found + from.size();
  }
  return out.append(text, at);
}

}  // namespace oga
