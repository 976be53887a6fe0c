// What refusals of grammars have in common: their field, and llguidance's messages as one line for a host, without the
// drawings, states and stack traces it adds.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace oga::grammar {

// The option of a turn that a grammar comes with.
inline constexpr const char* kGuidanceField = "guidance";

// Throws Error{kInvalidArgument} about the grammar that a host gave.
template <typename... Parts>
[[noreturn]] void RefuseGuidance(const Parts&... parts) {
  Throw(StatusCode::kInvalidArgument, Field{kGuidanceField}, parts...);
}

// Of `regex parse error:` with the expression and a caret below it, the position of the caret and the reason.
std::string OneLine(std::string_view message);

// llguidance's whole message for a place where no token may come, after OneLine.
inline constexpr std::string_view kNoToken = "NoExtensionBias";

}  // namespace oga::grammar
