#include "base/utf8.h"

#include <algorithm>

namespace oga {

namespace {

struct Lead {
  size_t length;  // of the character; 0: no character begins with the byte
  uint8_t low;    // bounds of the second byte, which exclude overlong forms, surrogates and what is beyond U+10FFFF
  uint8_t high;
};

Lead ReadLead(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xc2) return {0, 0, 0};
  if (byte < 0xe0) return {2, 0x80, 0xbf};
  if (byte < 0xf0) return {3, uint8_t(byte == 0xe0 ? 0xa0 : 0x80), uint8_t(byte == 0xed ? 0x9f : 0xbf)};
  if (byte < 0xf5) return {4, uint8_t(byte == 0xf0 ? 0x90 : 0x80), uint8_t(byte == 0xf4 ? 0x8f : 0xbf)};
  return {0, 0, 0};
}

}  // namespace

Utf8Step NextUtf8(std::string_view bytes) {
  const Lead lead = ReadLead(static_cast<uint8_t>(bytes[0]));
  if (lead.length == 0) return {Utf8Kind::kInvalid, 1};
  const size_t available = std::min(lead.length, bytes.size());
  for (size_t i = 1; i < available; ++i) {
    const auto byte = static_cast<uint8_t>(bytes[i]);
    const bool continues = i == 1 ? byte >= lead.low && byte <= lead.high : (byte & 0xc0) == 0x80;
    if (!continues) return {Utf8Kind::kInvalid, i};
  }
  return {available == lead.length ? Utf8Kind::kCharacter : Utf8Kind::kIncomplete, available};
}

char32_t CodePointOf(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first;
  char32_t code_point = first & (0x7fu >> character.size());
  for (const char byte : character.substr(1)) code_point = code_point << 6 | (static_cast<uint8_t>(byte) & 0x3fu);
  return code_point;
}

size_t FindInvalidUtf8(std::string_view bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    const Utf8Step step = NextUtf8(bytes.substr(at));
    if (step.kind != Utf8Kind::kCharacter) return at;
    at += step.length;
  }
  return std::string_view::npos;
}

void AppendUtf8(char32_t code_point, std::string& out) {
  const auto continuation = [&](int shift) { return static_cast<char>(0x80 | (code_point >> shift & 0x3f)); };
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    out += {static_cast<char>(0xc0 | code_point >> 6), continuation(0)};
  } else if (code_point < 0x10000) {
    out += {static_cast<char>(0xe0 | code_point >> 12), continuation(6), continuation(0)};
  } else {
    out += {static_cast<char>(0xf0 | code_point >> 18), continuation(12), continuation(6), continuation(0)};
  }
}

}  // namespace oga
