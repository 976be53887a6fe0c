// The JSON library, included here alone, so that every file sees it with the same settings.
#pragma once

// The parser asserts that strtod consumed a whole number, which is false while another thread changes the locale. A host
// must not be ended for it. json_reader.cpp reads numbers by itself.
#define JSON_ASSERT(condition) static_cast<void>(0)
#include <nlohmann/json.hpp>
