// What the readers of tokenizer.json components share: required texts, replacements, refusals by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/json_object.h"

namespace oga {

// The way out of everything that native encoding does not know.
inline constexpr const char* kEncodeElsewhere =
    "encode it in Python (oga.Tokenizer, or the tokenizers package) and pass token ids";

// What the public headers call the text to encode.
inline constexpr const char* kTextParameter = "str";

// Throws Error{kUnsupported}: "FILE, line 3: decoder.decoders[1]: WHAT is not supported; CONSEQUENCE".
[[noreturn]] void RefuseComponent(const JsonObject& component, const std::string& what, const char* consequence);

// A string that may hold anything; refused when absent or of another kind.
std::string RequiredText(const JsonObject& object, const char* key);

// Reads `pattern` as {"String": text}. Nothing when it is a regular expression.
std::optional<std::string> StringPattern(const JsonObject& component);

std::string ReplaceAll(std::string_view text, std::string_view from, std::string_view to);

}  // namespace oga
