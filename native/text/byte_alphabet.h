// The characters with which byte-level vocabularies write bytes: printable ones of Latin-1 for themselves, U+0100 and
// following for the others, in order (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace oga {

// The character of a byte, in UTF-8.
std::string_view AlphabetOf(uint8_t byte);

// The bytes that `text` writes; nothing when it holds a character that stands for no byte.
std::optional<std::string> BytesOfAlphabet(std::string_view text);

}  // namespace oga
