#include "text/byte_alphabet.h"

#include <array>

#include "base/utf8.h"

namespace oga {

namespace {

constexpr char32_t kFirstOfOthers = 0x100;
constexpr size_t kCharacters = kFirstOfOthers + 68;  // there are 68 bytes that do not stand for themselves

bool StandsForItself(char32_t byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
}

struct Alphabet {
  std::array<std::string, 256> characters;
  std::array<int16_t, kCharacters> bytes;  // -1: no byte

  Alphabet() {
    bytes.fill(-1);
    char32_t next = kFirstOfOthers;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const char32_t character = StandsForItself(byte) ? byte : next++;
      AppendUtf8(character, characters[byte]);
      bytes[character] = static_cast<int16_t>(byte);
    }
  }
};

const Alphabet& GetAlphabet() {
  static const Alphabet alphabet;
  return alphabet;
}

}  // namespace

std::string_view AlphabetOf(uint8_t byte) { return GetAlphabet().characters[byte]; }

std::optional<std::string> BytesOfAlphabet(std::string_view text) {
  const Alphabet& alphabet = GetAlphabet();
  std::string bytes;
  while (!text.empty()) {
    const Utf8Step step = NextUtf8(text);
    if (step.kind != Utf8Kind::kCharacter) return std::nullopt;
    const char32_t character = CodePointOf(text.substr(0, step.length));
    if (character >= kCharacters || alphabet.bytes[character] < 0) return std::nullopt;
    bytes += static_cast<char>(alphabet.bytes[character]);
    text.remove_prefix(step.length);
  }
  return bytes;
}

}  // namespace oga
