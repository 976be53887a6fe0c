// Every key of genai_config.json that oga knows, as data, and the one rule for the others: inside `engine` a mistyped
// limit must not silently be a default, so an unknown key is an error; anywhere else it is ignored with a note, because
// exporters add keys faster than runtimes learn them.
#pragma once

#include <string_view>

#include "config/config_notes.h"
#include "config/json_value.h"

namespace oga {

// Throws Error{kInvalidArgument} for an unknown key inside `engine`, naming it, its line and the nearest known key.
// Adds unknown keys elsewhere to `notes`. Wrong types are left to the readers.
void CheckKeys(const JsonValue& root, ConfigNotes& notes);

// The path of the `engine` key that is spelled most like `name`, preferring the object at `parent_path`.
std::string_view NearestEngineKey(std::string_view parent_path, std::string_view name);

}  // namespace oga
