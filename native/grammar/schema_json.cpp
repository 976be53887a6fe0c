#include "grammar/schema_json.h"

#include <string>
#include <unordered_set>
#include <vector>

#include "base/printable_text.h"
#include "grammar/grammar_errors.h"
#include "grammar/schema.h"

namespace oga::grammar {

namespace {

// Watches over the parser, whose tree would hide a repeated name and look names up one after the other.
class Guard {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start) {
      if (depth >= kMaxSchemaDepth) {
        RefuseGuidance("the JSON schema is nested deeper than ", kMaxSchemaDepth,
                       " levels; move its inner parts into $defs");
      }
      const auto level = static_cast<size_t>(depth) + 1;
      if (names_.size() <= level) names_.resize(level + 1);
      names_[level].clear();
    } else if (event == Json::parse_event_t::key) {
      AddName(names_.at(static_cast<size_t>(depth)), parsed.get_ref<const std::string&>());
    }
    return true;
  }

 private:
  static void AddName(std::unordered_set<std::string>& names, const std::string& name) {
    if (!names.insert(name).second) {
      RefuseGuidance("the JSON schema has the name ", Quoted(name, 80), " twice in one object; remove one of them");
    }
    if (names.size() > static_cast<size_t>(kMaxNames)) {
      RefuseGuidance("the JSON schema has an object with more than ", kMaxNames, " names; make it smaller");
    }
  }

  std::vector<std::unordered_set<std::string>> names_;
};

// "line 1, column 5: syntax error ..." of "[json.exception.parse_error.101] parse error at line 1, column 5: syntax ...".
std::string ReasonOf(const nlohmann::json::exception& error) {
  std::string_view text = error.what();
  for (const std::string_view mark : {std::string_view("] "), std::string_view("parse error at ")}) {
    if (const size_t at = text.find(mark); at != std::string_view::npos) text = text.substr(at + mark.size());
  }
  return Printable(text.substr(0, 400));
}

}  // namespace

Json ReadSchemaJson(std::string_view text) {
  Guard guard;
  try {
    return Json::parse(text.begin(), text.end(),
                       [&](int depth, Json::parse_event_t event, Json& parsed) { return guard(depth, event, parsed); });
  } catch (const nlohmann::json::exception& error) {
    RefuseGuidance("the JSON schema is no JSON: ", ReasonOf(error));
  }
}

}  // namespace oga::grammar
