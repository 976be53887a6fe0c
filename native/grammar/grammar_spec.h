// What the text of a turn must look like, as a host asks for it. Plain values; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "step/ids.h"

namespace oga::grammar {

enum class GrammarKind {
  kJsonSchema,  // `text` is a JSON schema; the output is one JSON value that it accepts
  kJsonObject,  // any JSON object; `text` is empty
  kRegex,       // `text` is a regular expression; the whole output matches it
  kLark,        // `text` is a grammar in llguidance's variant of Lark's language
  kDelimited,   // free text; what stands between the two tokens matches the Lark grammar `text`; any number of times
};

// At most so much text of a JSON schema, or of a Lark grammar with the schemas in it.
inline constexpr size_t kMaxGrammarBytes = 256 * 1024;
// At most so much of one regular expression, also as a pattern of a schema: llguidance's limit on work does not see that
// each piece of work grows with the expression, so that the worst texts take time in the square of their length.
inline constexpr size_t kMaxRegexBytes = 8 * 1024;

struct GrammarSpec {
  GrammarKind kind = GrammarKind::kJsonObject;
  std::string text;
  TokenId opening_token = -1;  // of kDelimited
  TokenId closing_token = -1;

  bool operator==(const GrammarSpec&) const = default;
};

// A spec for the whole turn, for the setter of an option: `type` is json_schema, json_object, regex or lark_grammar
// (lark for short). Checks what the values alone can tell; the grammar is read when it is compiled. Throws
// Error{kInvalidArgument} naming the type or the fault: empty text, a NUL or bytes that are not UTF-8, more than may be.
GrammarSpec MakeGrammarSpec(std::string_view type, std::string_view text);

// The same for guidance between two tokens, which must differ and not be negative.
GrammarSpec MakeDelimitedSpec(TokenId opening_token, TokenId closing_token, std::string_view lark);

// The name of a kind in messages: "JSON schema", "regular expression", "Lark grammar".
const char* NameOf(GrammarKind kind);

}  // namespace oga::grammar
