// UTF-8, character by character, also where a text arrives in pieces that end inside one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace oga {

enum class Utf8Kind {
  kCharacter,   // a well-formed character
  kIncomplete,  // all bytes there are begin a character and do not finish it
  kInvalid,     // bytes that no continuation makes a character
};

struct Utf8Step {
  Utf8Kind kind;
  size_t length;  // kCharacter: its bytes; otherwise the bytes that one U+FFFD stands for
};

inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";  // U+FFFD

// What `bytes`, which are not empty, begin with. Of ill-formed bytes the longest part that begins a character is taken
// together, as the Unicode standard recommends and as Rust, Python and browsers do.
Utf8Step NextUtf8(std::string_view bytes);

// The code point of one well-formed character.
char32_t CodePointOf(std::string_view character);

// The offset of the first byte that is not part of a well-formed character; npos when there is none.
size_t FindInvalidUtf8(std::string_view bytes);

// Appends a code point, which is no surrogate.
void AppendUtf8(char32_t code_point, std::string& out);

}  // namespace oga
