// Reads strict JSON (RFC 8259) into a JsonValue tree.
//
// Any thread. The result does not depend on the process locale, not even when another thread changes it meanwhile.
#pragma once

#include <string_view>

#include "model/json_value.h"

namespace oga {

// Parses `text`, which is UTF-8 with or without a byte order mark. `source` names the text in messages.
//
// Throws Error{kInvalidArgument} naming the source, line and what is wrong: an empty text, a syntax error (comments and
// trailing commas among them; these give the column too), bytes that are not UTF-8, a number beyond a double, a name
// given twice in one object (by its path), nesting deeper than 64.
JsonValue ReadJson(std::string_view text, const JsonValue::Source& source);

}  // namespace oga
