// The normalizer of a tokenizer.json: what happens to a text before it is cut into pieces.
//
// Known are Prepend, Replace of a string, NFC, and sequences of them; anything else is refused by name.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/json_object.h"

namespace oga {

class TextNormalizer {
 public:
  // Reads `normalizer`. Throws Error{kUnsupported} naming the component and its place.
  explicit TextNormalizer(const JsonObject& root);

  bool empty() const { return steps_.empty(); }

  // `text` is UTF-8 and not empty. Throws Error{kUnsupported} for a text that NFC would have to change: composing
  // needs tables that are not built in.
  std::string Normalize(std::string_view text) const;

 private:
  struct Prepend {
    std::string text;
  };
  struct Replace {
    std::string from;
    std::string to;
  };
  struct Compose {};

  void Read(const JsonObject& component);

  std::vector<std::variant<Prepend, Replace, Compose>> steps_;
};

}  // namespace oga
