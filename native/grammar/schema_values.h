// The values of JSON Schema keywords: whether they are what llguidance enforces exactly.
#pragma once

#include <string>
#include <string_view>

#include "grammar/schema_json.h"

namespace oga::grammar {

// Why a value is refused, as the end of a sentence ("must be a whole number from 0 on"); empty when it is not.
std::string FaultOfCount(const Json& value);
std::string FaultOfNumber(const Json& value);
std::string FaultOfFormat(const Json& value);
std::string FaultOfDraft(const Json& value);
std::string FaultOfReference(const Json& value);

// Of a value that the output may have to equal: numbers in it that a double does not hold.
std::string FaultOfInstance(const Json& value);

// What a format's own expression leaves open: that only leap years have a 29 February. Empty for other formats.
std::string PatternBeside(std::string_view format);

}  // namespace oga::grammar
