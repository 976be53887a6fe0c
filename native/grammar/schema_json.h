// The JSON text of a schema as a tree that keeps the order of names: the order of properties is that of the output.
#pragma once

#include <string_view>

#include "config/json_library.h"

namespace oga::grammar {

using Json = nlohmann::ordered_json;

// Throws Error{kInvalidArgument}: no JSON (with line and column), nested deeper than kMaxSchemaDepth, an object with a
// name given twice or more names than kMaxNames.
Json ReadSchemaJson(std::string_view text);

}  // namespace oga::grammar
