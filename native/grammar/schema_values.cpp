#include "grammar/schema_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "base/edit_distance.h"
#include "base/error.h"
#include "base/printable_text.h"
#include "grammar/schema_keywords.h"

namespace oga::grammar {

namespace {

constexpr int64_t kLargestExact = int64_t{1} << 53;  // beyond it llguidance rounds
constexpr double kLargestCount = 1e9;

constexpr std::array kDrafts = std::to_array<std::string_view>(
    {"https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2019-09/schema",
     "http://json-schema.org/draft-07/schema", "http://json-schema.org/draft-06/schema",
     "http://json-schema.org/draft-04/schema"});

// Years 0001 to 9999, and those of them with a 29 February.
constexpr const char* kYears = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])";
constexpr const char* kLeapYears = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)";

bool IsExact(const Json& number) {
  if (number.is_number_unsigned()) return number.get<uint64_t>() <= static_cast<uint64_t>(kLargestExact);
  if (number.is_number_integer()) {
    const auto value = number.get<int64_t>();
    return value >= -kLargestExact && value <= kLargestExact;
  }
  return std::abs(number.get<double>()) <= static_cast<double>(kLargestExact);
}

}  // namespace

std::string FaultOfCount(const Json& value) {
  const bool is_whole = value.is_number() && std::trunc(value.get<double>()) == value.get<double>();
  if (is_whole && value.get<double>() >= 0 && value.get<double>() <= kLargestCount) return {};
  return "must be a whole number from 0 to 1000000000";
}

std::string FaultOfNumber(const Json& value) {
  if (!value.is_number()) return "must be a number";
  if (IsExact(value)) return {};
  return "must be a number between -2^53 and 2^53, which is what can be enforced exactly";
}

std::string FaultOfFormat(const Json& value) {
  if (!value.is_string()) return "must be a string";
  const std::string& name = value.get_ref<const std::string&>();
  if (std::find(kSchemaFormats.begin(), kSchemaFormats.end(), name) != kSchemaFormats.end()) return {};
  std::string known;
  for (const std::string_view format : kSchemaFormats) known += (known.empty() ? "" : ", ") + std::string(format);
  return Message("names ", Quoted(name, 60), ", which cannot be enforced; enforced are ", known);
}

std::string FaultOfDraft(const Json& value) {
  std::string_view name;
  if (value.is_string()) name = value.get_ref<const std::string&>();
  if (name.ends_with('#')) name.remove_suffix(1);
  for (const std::string_view draft : kDrafts) {
    const size_t scheme = draft.find(':');
    const size_t found = name.find(':');
    const bool same = found != std::string_view::npos && name.substr(found) == draft.substr(scheme) &&
                      (name.substr(0, found) == "https" || name.substr(0, found) == "http");
    if (same) return {};
  }
  return "must name one of the drafts 4, 6, 7, 2019-09 or 2020-12 of JSON Schema, such as "
         "'https://json-schema.org/draft/2020-12/schema'";
}

std::string FaultOfReference(const Json& value) {
  if (value.is_string()) {
    const std::string& pointer = value.get_ref<const std::string&>();
    const bool is_local = pointer == "#" || pointer.starts_with("#/");
    if (is_local && pointer.find_first_of("~%") == std::string::npos) return {};
  }
  return "must be '#' or a pointer into the same document ('#/$defs/name', without ~ and %)";
}

std::string FaultOfInstance(const Json& value) {
  if (value.is_number()) {
    if (IsExact(value)) return {};
    return "holds a number beyond 2^53, which cannot be enforced exactly";
  }
  if (value.is_structured()) {
    for (const Json& part : value) {
      if (std::string fault = FaultOfInstance(part); !fault.empty()) return fault;
    }
  }
  return {};
}

std::string PatternBeside(std::string_view format) {
  if (format != "date" && format != "date-time") return {};
  return Message("^(?:", kYears, "-(?:0[13-9]|1[0-2])|", kYears, "-02-(?:[01][0-9]|2[0-8])|", kLeapYears, "-02-29)");
}

}  // namespace oga::grammar
