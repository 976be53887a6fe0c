// The post-processor of a tokenizer.json: the special tokens that stand around every text.
//
// Known are ByteLevel, TemplateProcessing and sequences of them; anything else is refused by name, when special tokens
// are asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/json_object.h"
#include "step/ids.h"

namespace oga {

struct SpecialFrame {
  std::vector<TokenId> before;
  std::vector<TokenId> after;
};

// Reads `post_processor`. Throws Error{kUnsupported} naming the component and its place.
SpecialFrame ReadSpecialFrame(const JsonObject& root);

}  // namespace oga
