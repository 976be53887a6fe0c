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

// The grammar to compile for the host's grammar `text`. Throws Error{kInvalidArgument}: too many lines, or what
// PrepareSchema throws for a schema in it.
std::string PrepareLark(std::string_view text);

}  // namespace oga::grammar
