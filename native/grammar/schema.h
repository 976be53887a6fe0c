// JSON schemas made ready for llguidance: every keyword is enforced, means nothing for the text, or is refused by name.
//
// Any thread. What is handed on is not the host's text but a schema built from it, because llguidance
//  - ignores keywords it does not know, and formats of values that are not strings;
//  - drops `prefixItems` beside `additionalItems`;
//  - rounds whole numbers beyond 2^53;
//  - lets every February have 29 days;
//  - lets `additionalProperties` write a name of `properties` with an escape, and write one name twice, which counts
//    twice for `minProperties`;
//  - reads patterns in ways of its own (schema_pattern.h);
//  - lets a schema weaken itself through "x-guidance", and white space go on for ever.
#pragma once

#include <string>
#include <string_view>

namespace oga::grammar {

// At most so many subschemas, each a link in what compiling follows by recursion.
inline constexpr int kMaxSubschemas = 4096;
inline constexpr int kMaxSchemaDepth = 64;
// At most so many names in one object or list of required ones, and so many patterns for names in the document:
// compiling takes time in the square of the former and the cube of the latter.
inline constexpr int kMaxNames = 2048;
inline constexpr int kMaxNamePatterns = 100;

// The schema to compile for the host's schema `text`. Throws Error{kInvalidArgument} naming the keyword and its place
// ("#/properties/age"), or line and column of what is no JSON.
std::string PrepareSchema(std::string_view text);

// The schema of any JSON object, made ready in the same way.
std::string AnyObjectSchema();

}  // namespace oga::grammar
