// llguidance's messages as one line for a host: without the drawings, states and stack traces it adds.
#pragma once

#include <string>
#include <string_view>

namespace oga::grammar {

// Of `regex parse error:` with the expression and a caret below it, the position of the caret and the reason.
std::string OneLine(std::string_view message);

// llguidance's whole message for a place where no token may come, after OneLine.
inline constexpr std::string_view kNoToken = "NoExtensionBias";

}  // namespace oga::grammar
