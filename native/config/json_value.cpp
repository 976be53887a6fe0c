#include "config/json_value.h"

#include <algorithm>

#include "base/error.h"
#include "base/printable_text.h"

namespace oga {

namespace {

constexpr size_t kMaxShownBytes = 60;

bool IsPlainWord(std::string_view name) {
  static constexpr std::string_view kWordCharacters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !name.empty() && name.find_first_not_of(kWordCharacters) == std::string_view::npos;
}

}  // namespace

const JsonValue* JsonValue::Find(std::string_view name) const {
  const auto has_name = [&](const JsonMember& member) { return member.name == name; };
  const auto found = std::find_if(members.begin(), members.end(), has_name);
  return found == members.end() ? nullptr : &found->value;
}

JsonValue* JsonValue::Find(std::string_view name) {
  return const_cast<JsonValue*>(static_cast<const JsonValue*>(this)->Find(name));
}

void MergeOver(JsonValue& base, const JsonValue& overlay) {
  if (base.kind != JsonValue::Kind::kObject || overlay.kind != JsonValue::Kind::kObject) {
    base = overlay;
    return;
  }
  for (const JsonMember& member : overlay.members) {
    if (JsonValue* existing = base.Find(member.name)) {
      MergeOver(*existing, member.value);
    } else {
      base.members.push_back(member);
    }
  }
}

std::string Describe(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::kNull: return "null";
    case JsonValue::Kind::kBoolean: return value.boolean ? "true" : "false";
    case JsonValue::Kind::kInteger:
    case JsonValue::Kind::kReal:
      return value.text.size() <= kMaxShownBytes ? value.text : value.text.substr(0, kMaxShownBytes) + "...";
    case JsonValue::Kind::kString: return Message("the string ", Quoted(value.text, kMaxShownBytes));
    case JsonValue::Kind::kArray:
      if (value.elements.empty()) return "an empty list";
      return Message("a list of ", value.elements.size(), value.elements.size() == 1 ? " value" : " values");
    case JsonValue::Kind::kObject: return "an object";
  }
  return "";
}

std::string Where(const JsonValue::Source& source, int line) {
  return line > 0 ? Message(*source, ", line ", line, ": ") : Message(*source, ": ");
}

std::string JoinPath(const std::string& parent, std::string_view name) {
  if (!IsPlainWord(name)) return Message(parent, "[", Quoted(name, kMaxShownBytes), "]");
  return parent.empty() ? std::string(name) : Message(parent, ".", std::string(name));
}

std::string JoinPath(const std::string& parent, size_t index) { return Message(parent, "[", index, "]"); }

}  // namespace oga
