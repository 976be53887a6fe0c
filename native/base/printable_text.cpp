#include "base/printable_text.h"

#include <cstdint>

namespace oga {

namespace {

struct LeadByte {
  size_t length;
  uint32_t payload;
  uint32_t smallest;  // a smaller code point in this length is an overlong form
};

LeadByte ReadLeadByte(uint8_t byte) {
  if (byte < 0x80) return {1, byte, 0};
  if (byte >= 0xc2 && byte < 0xe0) return {2, byte & 0x1fu, 0x80};
  if (byte >= 0xe0 && byte < 0xf0) return {3, byte & 0x0fu, 0x800};
  if (byte >= 0xf0 && byte < 0xf5) return {4, byte & 0x07u, 0x10000};
  return {0, 0, 0};
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

size_t Utf8CharacterLength(std::string_view bytes) {
  if (bytes.empty()) return 0;
  const LeadByte lead = ReadLeadByte(static_cast<uint8_t>(bytes[0]));
  if (lead.length == 0 || lead.length > bytes.size()) return 0;
  uint32_t code_point = lead.payload;
  for (size_t i = 1; i < lead.length; ++i) {
    const auto byte = static_cast<uint8_t>(bytes[i]);
    if ((byte & 0xc0) != 0x80) return 0;
    code_point = code_point << 6 | (byte & 0x3fu);
  }
  const bool is_surrogate = code_point >= 0xd800 && code_point < 0xe000;
  if (code_point < lead.smallest || code_point > 0x10ffff || is_surrogate) return 0;
  return lead.length;
}

std::string Printable(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t length = Utf8CharacterLength(bytes);
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
    const size_t length = Utf8CharacterLength(bytes.substr(end));
    end += length == 0 ? 1 : length;
  }
  return "'" + Printable(bytes.substr(0, end)) + (end < bytes.size() ? "...'" : "'");
}

}  // namespace oga
