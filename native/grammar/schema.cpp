#include "grammar/schema.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/edit_distance.h"
#include "base/error.h"
#include "base/printable_text.h"
#include "grammar/grammar_errors.h"
#include "grammar/schema_json.h"
#include "grammar/schema_keywords.h"
#include "grammar/schema_pattern.h"
#include "grammar/schema_values.h"

namespace oga::grammar {

namespace {

// One stretch of white space has at most 40 characters: enough to indent, and a model cannot stay inside it. An escape
// \uXXXX is not offered: it could spell a name that the schema gives to another property.
constexpr const char* kSettings =
    R"({"whitespace_pattern":"[\\x20\\x0A\\x0D\\x09]{1,40}","json_allowed_escapes":"nrbtf\\\""})";
constexpr int kMaxInstances = 20000;  // values of enum in the whole document

SchemaKeyword KeywordOf(std::string_view name) {
  for (const SchemaKeywordRow& row : kSchemaKeywords) {
    if (row.name == name) return row.keyword;
  }
  return name.starts_with("x-") ? SchemaKeyword::kAnnotation : SchemaKeyword::kUnknown;
}

class SchemaBuilder {
 public:
  Json Build(const Json& root) {
    if (root.is_object() && root.contains("$schema")) is_old_draft_ = !IsNewest(root["$schema"]);
    Json built = Schema(root);
    CheckReferences();
    if (built.is_boolean()) built = built.get<bool>() ? Json::object() : Json::object({{"enum", Json::array()}});
    built["x-guidance"] = Json::parse(kSettings);
    return built;
  }

 private:
  static bool IsNewest(const Json& draft) {
    return draft.is_string() && draft.get_ref<const std::string&>().find("2020-12") != std::string::npos;
  }

  // "#/properties/a"
  std::string Place() const {
    std::string place = "#";
    for (const std::string& step : path_) {
      place += '/';
      for (const char c : step) place += c == '/' ? "~1" : c == '~' ? "~0" : std::string(1, c);
    }
    return place;
  }

  template <typename... Parts>
  [[noreturn]] void Refuse(std::string_view name, const Parts&... parts) const {
    RefuseGuidance("the keyword ", Quoted(name, 60), " at ", Printable(Place()).substr(0, 300), " of the JSON schema ",
                   parts...);
  }

  void RefuseFault(std::string_view name, const std::string& fault) const {
    if (!fault.empty()) Refuse(name, fault);
  }

  [[noreturn]] void RefuseUnknown(std::string_view name) const {
    const auto* const nearest = std::min_element(
        kSchemaKeywords.begin(), kSchemaKeywords.end(), [&](const SchemaKeywordRow& a, const SchemaKeywordRow& b) {
          return EditDistance(name.substr(0, 40), a.name) < EditDistance(name.substr(0, 40), b.name);
        });
    Refuse(name, "is not known, so it cannot be enforced; remove it, write 'x-' before a note of your own",
           EditDistance(name.substr(0, 40), nearest->name) <= 2
               ? Message(", or write '", std::string(nearest->name), "' if that is meant")
               : "");
  }

  Json Schema(const Json& schema) {
    if (++subschemas_ > kMaxSubschemas) {
      RefuseGuidance("the JSON schema has more than ", kMaxSubschemas, " subschemas; make it smaller");
    }
    places_.insert(Place());
    if (schema.is_boolean()) return schema;
    if (!schema.is_object()) {
      RefuseGuidance("the JSON schema has at ", Printable(Place()).substr(0, 300), " ", schema.type_name(),
                     "; a schema is an object, true or false");
    }
    Json built = Json::object();
    for (const auto& [name, value] : schema.items()) AddKeyword(name, value, built);
    CheckTogether(schema);
    if (schema.contains("format")) AddBeside(PatternBeside(schema["format"].get_ref<const std::string&>()), built);
    return built;
  }

  void AddKeyword(const std::string& name, const Json& value, Json& built) {
    switch (KeywordOf(name)) {
      case SchemaKeyword::kSchema:
      case SchemaKeyword::kItems:
      case SchemaKeyword::kSchemaList:
      case SchemaKeyword::kSchemaMap:
      case SchemaKeyword::kPatternMap: built[name] = Nested(name, value); return;
      case SchemaKeyword::kFormat:
        RefuseFault(name, FaultOfFormat(value));
        built[name] = value;
        return;
      case SchemaKeyword::kPattern:
        if (!value.is_string()) Refuse(name, "must be a string");
        built[name] = Pattern(name, value.get_ref<const std::string&>());
        return;
      case SchemaKeyword::kRef:
        RefuseFault(name, FaultOfReference(value));
        references_.push_back({value.get<std::string>(), Place()});
        built[name] = value;
        return;
      case SchemaKeyword::kDraft:
        if (!path_.empty()) Refuse(name, "may stand at the root only");
        RefuseFault(name, FaultOfDraft(value));
        return;
      case SchemaKeyword::kRootAnnotation:
        if (!path_.empty()) Refuse(name, "may stand at the root only: references into the document would change");
        return;
      case SchemaKeyword::kAnnotation: return;
      case SchemaKeyword::kUnenforceable:
        Refuse(name,
               "cannot be enforced while text is generated; remove it, and check the finished text if you need it");
      case SchemaKeyword::kSettings: Refuse(name, "is not for schemas of hosts: oga chooses llguidance's settings");
      case SchemaKeyword::kUnknown: RefuseUnknown(name);
      default: CheckValue(name, value); built[name] = value;
    }
  }

  // Keywords whose values are no schemas.
  void CheckValue(const std::string& name, const Json& value) {
    switch (KeywordOf(name)) {
      case SchemaKeyword::kType:
        if (!value.is_string() && !value.is_array()) Refuse(name, "must be the name of a type or a list of names");
        return;
      case SchemaKeyword::kInstance: return RefuseFault(name, FaultOfInstance(value));
      case SchemaKeyword::kInstanceList:
        if (!value.is_array()) Refuse(name, "must be a list");
        CountInstances(name, value.size());
        return RefuseFault(name, FaultOfInstance(value));
      case SchemaKeyword::kNumber: return RefuseFault(name, FaultOfNumber(value));
      case SchemaKeyword::kNumberOrBool: return value.is_boolean() ? void() : RefuseFault(name, FaultOfNumber(value));
      case SchemaKeyword::kCount: return RefuseFault(name, FaultOfCount(value));
      case SchemaKeyword::kNames:
        if (!value.is_array() || !std::all_of(value.begin(), value.end(), [](const Json& n) { return n.is_string(); }))
          Refuse(name, "must be a list of strings");
        if (value.size() > static_cast<size_t>(kMaxNames)) Refuse(name, "has more than ", kMaxNames, " names");
        return;
      default: RefuseUnknown(name);
    }
  }

  void CountInstances(const std::string& name, size_t count) {
    instances_ += count;
    if (instances_ > static_cast<size_t>(kMaxInstances)) {
      Refuse(name, "brings the values listed in the document to more than ", kMaxInstances, "; make the lists shorter");
    }
  }

  Json Nested(const std::string& name, const Json& value) {
    const SchemaKeyword keyword = KeywordOf(name);
    const bool is_list =
        keyword == SchemaKeyword::kSchemaList || (keyword == SchemaKeyword::kItems && value.is_array());
    const bool is_map = keyword == SchemaKeyword::kSchemaMap || keyword == SchemaKeyword::kPatternMap;
    if (is_list && !value.is_array()) Refuse(name, "must be a list of schemas");
    if (is_map && !value.is_object()) Refuse(name, "must be an object of schemas");
    if (keyword == SchemaKeyword::kPatternMap) CountNamePatterns(name, value.size());
    path_.push_back(name);
    Json built = is_list ? Json::array() : Json::object();
    if (is_list) {
      for (size_t i = 0; i < value.size(); ++i) built.push_back(At(std::to_string(i), value[i]));
    } else if (is_map) {
      for (const auto& [key, schema] : value.items()) {
        built[keyword == SchemaKeyword::kPatternMap ? Pattern(key, key) : key] = At(key, schema);
      }
    } else {
      built = Schema(value);
    }
    path_.pop_back();
    return built;
  }

  void CountNamePatterns(const std::string& name, size_t count) {
    name_patterns_ += count;
    if (name_patterns_ > static_cast<size_t>(kMaxNamePatterns)) {
      Refuse(name, "brings the patterns for names in the document to more than ", kMaxNamePatterns,
             "; join some of them, or list the names in 'properties'");
    }
  }

  std::string Pattern(const std::string& name, const std::string& pattern) const {
    PreparedPattern prepared = PreparePattern(pattern);
    RefuseFault(name, prepared.fault);
    return std::move(prepared.text);
  }

  Json At(const std::string& step, const Json& schema) {
    path_.push_back(step);
    Json built = Schema(schema);
    path_.pop_back();
    return built;
  }

  static void AddBeside(const std::string& pattern, Json& built) {
    if (pattern.empty()) return;
    if (!built.contains("pattern")) {
      built["pattern"] = pattern;
      return;
    }
    if (!built.contains("allOf")) built["allOf"] = Json::array();
    built["allOf"].push_back(Json::object({{"pattern", pattern}}));
  }

  // What is right alone and cannot be enforced together.
  void CheckTogether(const Json& schema) const {
    const bool has_list = schema.contains("items") && schema["items"].is_array();
    if (schema.contains("additionalItems") && (!has_list || schema.contains("prefixItems"))) {
      Refuse("additionalItems", "acts only beside a list of 'items'; write 'prefixItems' and 'items'");
    }
    if (schema.contains("prefixItems") && (has_list || is_old_draft_)) {
      Refuse("prefixItems", "belongs to draft 2020-12, in which 'items' is one schema");
    }
    if (schema.contains("minProperties")) {
      const size_t required = schema.contains("required") ? schema["required"].size() : 0;
      if (schema["minProperties"].get<double>() > static_cast<double>(required + 1)) {
        Refuse("minProperties", "can be enforced up to one more than the names in 'required' (", required,
               "): a name that is not listed may be written twice; lower it, or list names in 'required'");
      }
    }
  }

  // A reference to what is no schema (a list of properties, a value of enum) would be compiled unseen.
  void CheckReferences() const {
    for (const auto& [pointer, place] : references_) {
      if (pointer == "#" || places_.contains(pointer)) continue;
      RefuseGuidance("the keyword '$ref' at ", Printable(place).substr(0, 300), " of the JSON schema points to ",
                     Quoted(pointer, 200), ", where the document has no schema");
    }
  }

  struct Reference {
    std::string pointer;
    std::string place;
  };

  std::vector<std::string> path_;
  std::set<std::string> places_;
  std::vector<Reference> references_;
  int subschemas_ = 0;
  size_t instances_ = 0;
  size_t name_patterns_ = 0;
  bool is_old_draft_ = false;
};

}  // namespace

std::string PrepareSchema(std::string_view text) { return SchemaBuilder().Build(ReadSchemaJson(text)).dump(); }

std::string AnyObjectSchema() { return PrepareSchema(R"({"type":"object"})"); }

}  // namespace oga::grammar
