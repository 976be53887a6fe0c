// The refusal of a turn's option: one place where its name becomes the error's field and begins the sentence.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace oga::search {

// Throws Error{kInvalidArgument} about the option `name`: RefuseOption("top_p", " is ", 2.0f, "; it must be ...").
template <typename... Parts>
[[noreturn]] void RefuseOption(std::string_view name, const Parts&... parts) {
  const std::string field(name);
  Throw(StatusCode::kInvalidArgument, Field{field}, field, parts...);
}

}  // namespace oga::search
