#include "base/printable_text.h"

#include <cstdint>

#include "base/utf8.h"

namespace oga {

namespace {

// The bytes of the well-formed character at the start of `bytes`; 0 when there is none.
size_t CharacterLength(std::string_view bytes) {
  const Utf8Step step = NextUtf8(bytes);
  return step.kind == Utf8Kind::kCharacter ? step.length : 0;
}

bool IsControl(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<uint8_t>(character[1]) < 0xa0;
}

void AppendEscaped(std::string& out, std::string_view bytes) {
  static constexpr char kHexDigits[] = "0123456789abcdef";
  for (const char byte : bytes) {
    const auto value = static_cast<uint8_t>(byte);
    out += {'\\', 'x', kHexDigits[value >> 4], kHexDigits[value & 15]};
  }
}

}  // namespace

std::string Printable(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t length = CharacterLength(bytes);
    const std::string_view character = bytes.substr(0, length == 0 ? 1 : length);
    if (length == 0 || IsControl(character)) {
      AppendEscaped(out, character);
    } else {
      out += character;
    }
    bytes.remove_prefix(character.size());
  }
  return out;
}

std::string Quoted(std::string_view bytes, size_t max_bytes) {
  size_t end = 0;
  while (end < bytes.size() && end < max_bytes) {
    const size_t length = CharacterLength(bytes.substr(end));
    end += length == 0 ? 1 : length;
  }
  return "'" + Printable(bytes.substr(0, end)) + (end < bytes.size() ? "...'" : "'");
}

}  // namespace oga
