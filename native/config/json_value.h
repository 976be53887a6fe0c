// A JSON document as a tree of plain values, each of which remembers where it was written.
//
// Values of a config and of its overlays live in one merged tree; the origin of each value is what lets a message name
// the text and the line that have to be corrected. Immutable once read, apart from MergeOver.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace oga {

struct JsonMember;

struct JsonValue {
  enum class Kind { kNull, kBoolean, kInteger, kReal, kString, kArray, kObject };

  // Where a value was written. Shared by all values of one text, so that its address identifies the text.
  using Source = std::shared_ptr<const std::string>;

  Kind kind = Kind::kNull;
  bool boolean = false;
  int64_t integer = 0;              // kInteger: any number without a fraction that fits, however it is spelled
  double real = 0;                  // kInteger and kReal
  std::string text;                 // kString: the string; kInteger and kReal: the number as written
  std::vector<JsonValue> elements;  // kArray
  std::vector<JsonMember> members;  // kObject, in the order written, no name twice
  Source source;
  int line = 0;  // from 1; 0 for a value that no text holds

  // The member of that name, also when it is null; nullptr when there is none or this is no object.
  const JsonValue* Find(std::string_view name) const;
  JsonValue* Find(std::string_view name);
};

struct JsonMember {
  std::string name;
  int line = 0;
  JsonValue value;
};

// Merges `overlay` into `base`: objects merge member by member, any other value (null too) replaces.
void MergeOver(JsonValue& base, const JsonValue& overlay);

// The value for a message: "2.5", "'text'", "a list of 3 values", "an object", "null".
std::string Describe(const JsonValue& value);

// "SOURCE, line 12: ", the start of every message about a value.
std::string Where(const JsonValue::Source& source, int line);

// `parent`.`name`, with a name that is not a plain word quoted.
std::string JoinPath(const std::string& parent, std::string_view name);
std::string JoinPath(const std::string& parent, size_t index);

}  // namespace oga
