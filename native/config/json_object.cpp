#include "config/json_object.h"

#include <utility>

namespace oga {

namespace {

using Kind = JsonValue::Kind;

constexpr double kLargestFloat = std::numeric_limits<float>::max();

std::string Wanted(IntegerRange range) {
  if (range.max == std::numeric_limits<int64_t>::max()) return Message("an integer, ", range.min, " or more");
  return Message("an integer from ", range.min, " to ", range.max);
}

std::string Wanted(RealRange range) {
  const char* lower = range.min_excluded ? "greater than " : "not less than ";
  if (range.max < kLargestFloat) return Message("a number ", lower, range.min, " and not greater than ", range.max);
  const std::string any = "a number that a 32-bit float can hold";
  return range.min <= -kLargestFloat ? any : Message(any, ", ", lower, range.min);
}

}  // namespace

Field FieldOf(const JsonValue& value, const std::string& path) { return Field{path.empty() ? *value.source : path}; }

void RefuseValue(const JsonValue& value, const std::string& path, const std::string& wanted) {
  ThrowAbout(StatusCode::kInvalidArgument, value, path, " is ", Describe(value), "; it must be ", wanted);
}

int64_t ReadInteger(const JsonValue& value, const std::string& path, IntegerRange range) {
  if (value.kind != Kind::kInteger || value.integer < range.min || value.integer > range.max) {
    RefuseValue(value, path, Wanted(range));
  }
  return value.integer;
}

const std::string& ReadString(const JsonValue& value, const std::string& path) {
  if (value.kind != Kind::kString) RefuseValue(value, path, "a string");
  if (value.text.find('\0') != std::string::npos) RefuseValue(value, path, "a string without NUL characters");
  return value.text;
}

JsonObject::JsonObject(const JsonValue& value, std::string path) : value_(&value), path_(std::move(path)) {
  if (value.kind != Kind::kObject) RefuseValue(value, path_, "an object");
}

const JsonValue* JsonObject::Find(const char* key) const {
  const JsonValue* found = value_->Find(key);
  return found == nullptr || found->kind == Kind::kNull ? nullptr : found;
}

const JsonValue& JsonObject::RequiredValue(const char* key, const std::string& wanted) const {
  const JsonValue* found = value_->Find(key);
  if (found == nullptr) {
    ThrowAbout(StatusCode::kInvalidArgument, *value_, PathOf(key), " is missing; it is required and must be ", wanted);
  }
  if (found->kind == Kind::kNull) RefuseValue(*found, PathOf(key), wanted);
  return *found;
}

std::optional<int64_t> JsonObject::Integer(const char* key, IntegerRange range) const {
  const JsonValue* found = Find(key);
  if (found == nullptr) return std::nullopt;
  return ReadInteger(*found, PathOf(key), range);
}

int64_t JsonObject::RequiredInteger(const char* key, IntegerRange range) const {
  return ReadInteger(RequiredValue(key, Wanted(range)), PathOf(key), range);
}

std::optional<float> JsonObject::Real(const char* key, RealRange range) const {
  const JsonValue* found = Find(key);
  if (found == nullptr) return std::nullopt;
  const bool is_number = found->kind == Kind::kInteger || found->kind == Kind::kReal;
  // The comparison comes before the rounding: a double beyond the largest float has no float to round to.
  const bool in_range = is_number && found->real >= range.min && found->real <= range.max;
  if (!in_range || (range.min_excluded && static_cast<float>(found->real) <= range.min)) {
    RefuseValue(*found, PathOf(key), Wanted(range));
  }
  return static_cast<float>(found->real);
}

std::optional<bool> JsonObject::Boolean(const char* key) const {
  const JsonValue* found = Find(key);
  if (found == nullptr) return std::nullopt;
  if (found->kind != Kind::kBoolean) RefuseValue(*found, PathOf(key), "true or false");
  return found->boolean;
}

std::optional<std::string> JsonObject::String(const char* key) const {
  const JsonValue* found = Find(key);
  if (found == nullptr) return std::nullopt;
  return ReadString(*found, PathOf(key));
}

std::string JsonObject::RequiredString(const char* key) const {
  const JsonValue& found = RequiredValue(key, "a string");
  if (ReadString(found, PathOf(key)).empty()) RefuseValue(found, PathOf(key), "a string that is not empty");
  return found.text;
}

std::optional<JsonObject> JsonObject::Object(const char* key) const {
  const JsonValue* found = Find(key);
  if (found == nullptr) return std::nullopt;
  return JsonObject(*found, PathOf(key));
}

JsonObject JsonObject::RequiredObject(const char* key) const {
  return JsonObject(RequiredValue(key, "an object"), PathOf(key));
}

const std::vector<JsonValue>* JsonObject::List(const char* key, const char* wanted) const {
  const JsonValue* found = Find(key);
  if (found == nullptr) return nullptr;
  if (found->kind != Kind::kArray) RefuseValue(*found, PathOf(key), wanted);
  return &found->elements;
}

}  // namespace oga
