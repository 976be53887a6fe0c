// Reads strict JSON (RFC 8259) into a JsonValue tree.
//
// Any thread. The result does not depend on the process locale, not even when another thread changes it meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "config/json_value.h"

namespace oga {

// A scalar inside a list or object that a JsonSink takes.
struct JsonLeaf {
  JsonValue::Kind kind;
  std::string_view name;  // its key; empty in a list
  std::string_view text;  // of a string; of a number, as it is written
  int64_t integer;        // of an integer
  size_t depth;           // 1: directly in what was taken
  size_t index;           // its place among its siblings
  int line;
};

// Takes the content of lists and objects that are too large for a tree of values: in the tree they are empty.
class JsonSink {
 public:
  virtual ~JsonSink() = default;

  // Whether to take the list or object at `path`, written as in messages ("model.vocab").
  virtual bool Takes(const std::string& path) = 0;

  // Every scalar in it, in the order written. Names may repeat.
  virtual void OnLeaf(const JsonLeaf& leaf) = 0;
};

// Parses `text`, which is UTF-8 with or without a byte order mark. `source` names the text in messages.
//
// Throws Error{kInvalidArgument} naming the source, line and what is wrong: an empty text, a syntax error (comments and
// trailing commas among them; these give the column too), bytes that are not UTF-8, a number beyond a double, a name
// given twice in one object (by its path), nesting deeper than 64.
JsonValue ReadJson(std::string_view text, const JsonValue::Source& source, JsonSink* sink = nullptr);

}  // namespace oga
