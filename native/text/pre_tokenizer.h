// The pre-tokenizer of a tokenizer.json: cuts a normalised text into the pieces that the model encodes one by one.
//
// Known are ByteLevel, Digits, Metaspace, Split by a string or by one of the expressions of text/text_splits.h, and
// sequences of them; anything else is refused by name.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/json_object.h"
#include "text/text_splits.h"

namespace oga {

class PreTokenizer {
 public:
  // Reads `pre_tokenizer`. Throws Error{kUnsupported} naming the component and its place.
  explicit PreTokenizer(const JsonObject& root);

  // The pieces of a text, which is not empty. `at_begin` tells a text that nothing stands before from one behind an
  // added token.
  std::vector<std::string> Split(std::string_view text, bool at_begin) const;

 private:
  struct ByteLevel {
    bool adds_space;
    bool splits;
  };
  struct Digits {
    bool one_by_one;
  };
  struct Metaspace {
    enum class Scheme { kAlways, kFirst, kNever };
    std::string replacement;
    Scheme scheme;
    bool splits;
  };
  struct ByPattern {
    SplitPattern pattern;
  };
  struct ByDelimiter {
    std::string delimiter;
    DelimiterBehavior behavior;
  };
  using Step = std::variant<ByteLevel, Digits, Metaspace, ByPattern, ByDelimiter>;

  void Read(const JsonObject& component);
  static Step ReadMetaspace(const JsonObject& component);
  static Step ReadSplit(const JsonObject& component);
  static void Apply(const Step& step, std::string piece, bool at_begin, std::vector<std::string>& out);

  std::vector<Step> steps_;
};

}  // namespace oga
