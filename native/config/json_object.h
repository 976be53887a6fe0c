// Typed reading of one JSON object. Every refusal names the text and line, the JSON path, what was found and what was
// wanted.
//
// A view: the JsonValue must outlive it. One rule for absence: a key that is null counts as left out, so that an
// overlay can take a value back.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/json_value.h"

namespace oga {

struct IntegerRange {
  int64_t min;
  int64_t max;
};

struct RealRange {
  double min;
  double max = std::numeric_limits<float>::max();
  bool min_excluded = false;
};

class JsonObject {
 public:
  // Throws when `value` is not an object. `path` is empty for the root.
  JsonObject(const JsonValue& value, std::string path);

  // The value of a key, or nullptr when the key is absent or null.
  const JsonValue* Find(const char* key) const;

  std::optional<int64_t> Integer(const char* key, IntegerRange range) const;
  int64_t RequiredInteger(const char* key, IntegerRange range) const;
  // Rounded to float, which is what sampling computes in; the range holds for the rounded value.
  std::optional<float> Real(const char* key, RealRange range) const;
  std::optional<bool> Boolean(const char* key) const;
  // Refuses an embedded NUL, which would end the string early for every C interface behind us.
  std::optional<std::string> String(const char* key) const;
  std::string RequiredString(const char* key) const;  // not empty
  std::optional<JsonObject> Object(const char* key) const;
  JsonObject RequiredObject(const char* key) const;
  // The elements of a list; nullptr when absent or null.
  const std::vector<JsonValue>* List(const char* key, const char* wanted) const;

  const JsonValue& value() const { return *value_; }
  const std::string& path() const { return path_; }
  std::string PathOf(const char* key) const { return JoinPath(path_, key); }

 private:
  const JsonValue& RequiredValue(const char* key, const std::string& wanted) const;

  const JsonValue* value_;
  std::string path_;
};

// An integer within the range, or the refusal; for elements of lists.
int64_t ReadInteger(const JsonValue& value, const std::string& path, IntegerRange range);

// A string without NUL, or the refusal.
const std::string& ReadString(const JsonValue& value, const std::string& path);

// What an error about a value names: its path, or the text it stands in when it is all of that text.
Field FieldOf(const JsonValue& value, const std::string& path);

// Throws "SOURCE, line 3: PATH" and the parts, with the path as the error's field.
template <typename... Parts>
[[noreturn]] void ThrowAbout(StatusCode code, const JsonValue& value, const std::string& path, const Parts&... parts) {
  Throw(code, FieldOf(value, path), Where(value.source, value.line), path.empty() ? "the top level" : path, parts...);
}

// "SOURCE, line 3: PATH is FOUND; it must be WANTED".
[[noreturn]] void RefuseValue(const JsonValue& value, const std::string& path, const std::string& wanted);

}  // namespace oga
