// Lark grammars made ready for llguidance: the JSON schemas written in them (%json {...}) are held to the same rules as
// schemas of their own.
//
// Any thread.
#pragma once

#include <string>
#include <string_view>

namespace oga::grammar {

// At most so many lines, and so at most so many rules: compiling recurses along a chain of rules.
inline constexpr size_t kMaxLarkLines = 4096;
// At most so much text, the schemas in it left out; as for kMaxRegexBytes, since rules may be one long expression.
inline constexpr size_t kMaxLarkBytes = 16 * 1024;

// The grammar to compile for the host's grammar `text`. Throws Error{kInvalidArgument}: too many lines or too much text, or what
// PrepareSchema throws for a schema in it.
std::string PrepareLark(std::string_view text);

}  // namespace oga::grammar
