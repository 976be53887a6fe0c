// What a character is, for cutting texts into pieces. The tables are generated; see unicode_classes_data.h.
#pragma once

#include <string_view>

namespace oga {

bool IsLetter(char32_t character);
bool IsNumber(char32_t character);
bool IsDigit(char32_t character);  // as the Digits pre-tokenizer has it
bool IsSpace(char32_t character);

// Whether canonical composition leaves a UTF-8 text as it is for sure. It may also do so when this is false.
bool IsComposed(std::string_view text);

}  // namespace oga
