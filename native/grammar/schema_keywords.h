// Every keyword of JSON Schema, and what becomes of it: llguidance ignores a keyword that it does not know, and oga must
// never ignore a wish.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace oga::grammar {

enum class SchemaKeyword : uint8_t {
  kSchema,          // its value is a schema
  kItems,           // a schema, or in older drafts a list of schemas
  kSchemaList,      // a list of schemas
  kSchemaMap,       // an object whose values are schemas
  kPatternMap,      // the same; its names are patterns
  kType,            // the name of a type, or a list of names
  kInstance,        // a JSON value
  kInstanceList,    // a list of JSON values
  kNumber,          // a number
  kNumberOrBool,    // a number, or in draft 4 a boolean
  kCount,           // a whole number, not negative
  kPattern,         // a regular expression
  kFormat,          // the name of a format
  kNames,           // a list of strings
  kRef,             // a pointer into the document
  kDraft,           // the draft of the document
  kRootAnnotation,  // says nothing about text at the root, and changes what references mean elsewhere
  kAnnotation,      // says nothing about text
  kUnenforceable,   // cannot be enforced while text is generated
  kSettings,        // llguidance's own settings
  kUnknown,
};

struct SchemaKeywordRow {
  std::string_view name;
  SchemaKeyword keyword;
};

inline constexpr std::array kSchemaKeywords = std::to_array<SchemaKeywordRow>({
    {"$anchor", SchemaKeyword::kUnenforceable},
    {"$comment", SchemaKeyword::kAnnotation},
    {"$defs", SchemaKeyword::kSchemaMap},
    {"$dynamicAnchor", SchemaKeyword::kUnenforceable},
    {"$dynamicRef", SchemaKeyword::kUnenforceable},
    {"$id", SchemaKeyword::kRootAnnotation},
    {"$recursiveAnchor", SchemaKeyword::kUnenforceable},
    {"$recursiveRef", SchemaKeyword::kUnenforceable},
    {"$ref", SchemaKeyword::kRef},
    {"$schema", SchemaKeyword::kDraft},
    {"$vocabulary", SchemaKeyword::kUnenforceable},
    {"additionalItems", SchemaKeyword::kSchema},
    {"additionalProperties", SchemaKeyword::kSchema},
    {"allOf", SchemaKeyword::kSchemaList},
    {"anyOf", SchemaKeyword::kSchemaList},
    {"const", SchemaKeyword::kInstance},
    {"contains", SchemaKeyword::kUnenforceable},
    {"contentEncoding", SchemaKeyword::kUnenforceable},
    {"contentMediaType", SchemaKeyword::kUnenforceable},
    {"contentSchema", SchemaKeyword::kUnenforceable},
    {"default", SchemaKeyword::kAnnotation},
    {"definitions", SchemaKeyword::kSchemaMap},
    {"dependencies", SchemaKeyword::kUnenforceable},
    {"dependentRequired", SchemaKeyword::kUnenforceable},
    {"dependentSchemas", SchemaKeyword::kUnenforceable},
    {"deprecated", SchemaKeyword::kAnnotation},
    {"description", SchemaKeyword::kAnnotation},
    {"discriminator", SchemaKeyword::kAnnotation},  // OpenAPI: a hint beside oneOf, which decides alone
    {"else", SchemaKeyword::kUnenforceable},
    {"enum", SchemaKeyword::kInstanceList},
    {"example", SchemaKeyword::kAnnotation},
    {"examples", SchemaKeyword::kAnnotation},
    {"exclusiveMaximum", SchemaKeyword::kNumberOrBool},
    {"exclusiveMinimum", SchemaKeyword::kNumberOrBool},
    {"externalDocs", SchemaKeyword::kAnnotation},
    {"format", SchemaKeyword::kFormat},
    {"id", SchemaKeyword::kRootAnnotation},
    {"if", SchemaKeyword::kUnenforceable},
    {"items", SchemaKeyword::kItems},
    {"maxContains", SchemaKeyword::kUnenforceable},
    {"maxItems", SchemaKeyword::kCount},
    {"maxLength", SchemaKeyword::kCount},
    {"maxProperties", SchemaKeyword::kCount},
    {"maximum", SchemaKeyword::kNumber},
    {"minContains", SchemaKeyword::kUnenforceable},
    {"minItems", SchemaKeyword::kCount},
    {"minLength", SchemaKeyword::kCount},
    {"minProperties", SchemaKeyword::kCount},
    {"minimum", SchemaKeyword::kNumber},
    {"multipleOf", SchemaKeyword::kNumber},
    {"not", SchemaKeyword::kUnenforceable},
    {"nullable", SchemaKeyword::kUnenforceable},  // OpenAPI 3.0; "type" may list "null" instead
    {"oneOf", SchemaKeyword::kSchemaList},
    {"pattern", SchemaKeyword::kPattern},
    {"patternProperties", SchemaKeyword::kPatternMap},
    {"prefixItems", SchemaKeyword::kSchemaList},
    {"properties", SchemaKeyword::kSchemaMap},
    {"propertyNames", SchemaKeyword::kUnenforceable},
    {"readOnly", SchemaKeyword::kAnnotation},
    {"required", SchemaKeyword::kNames},
    {"then", SchemaKeyword::kUnenforceable},
    {"title", SchemaKeyword::kAnnotation},
    {"type", SchemaKeyword::kType},
    {"unevaluatedItems", SchemaKeyword::kUnenforceable},
    {"unevaluatedProperties", SchemaKeyword::kUnenforceable},
    {"uniqueItems", SchemaKeyword::kUnenforceable},
    {"writeOnly", SchemaKeyword::kAnnotation},
    {"x-guidance", SchemaKeyword::kSettings},
});

// The formats whose texts are enforced.
inline constexpr std::array kSchemaFormats = std::to_array<std::string_view>(
    {"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"});

}  // namespace oga::grammar
