#include "grammar/grammar_spec.h"

#include <algorithm>
#include <array>

#include "base/edit_distance.h"
#include "base/printable_text.h"
#include "base/utf8.h"
#include "grammar/grammar_errors.h"

namespace oga::grammar {

namespace {

struct TypeName {
  std::string_view name;
  GrammarKind kind;
};

constexpr std::array<TypeName, 5> kTypes{{{"json_schema", GrammarKind::kJsonSchema},
                                          {"json_object", GrammarKind::kJsonObject},
                                          {"regex", GrammarKind::kRegex},
                                          {"lark_grammar", GrammarKind::kLark},
                                          {"lark", GrammarKind::kLark}}};

[[noreturn]] void RefuseType(std::string_view type) {
  if (type.empty()) {
    RefuseGuidance("the guidance type is empty; it must be json_schema, json_object, regex or lark_grammar");
  }
  const auto nearest = std::min_element(kTypes.begin(), kTypes.end(), [&](const TypeName& a, const TypeName& b) {
    return EditDistance(type.substr(0, 40), a.name) < EditDistance(type.substr(0, 40), b.name);
  });
  RefuseGuidance("guidance type ", Quoted(type, 80),
                 " is not known; it must be json_schema, json_object, regex or lark_grammar (the nearest is ",
                 std::string(nearest->name), ")");
}

void CheckText(GrammarKind kind, std::string_view text) {
  const char* const name = NameOf(kind);
  if (text.empty()) RefuseGuidance("the ", name, " is empty; give its text");
  const size_t most = kind == GrammarKind::kRegex ? kMaxRegexBytes : kMaxGrammarBytes;
  if (text.size() > most) {
    RefuseGuidance("the ", name, " has ", text.size(), " bytes; at most ", most, " are allowed: make it smaller",
                   kind == GrammarKind::kRegex ? ", or list words in the enum of a JSON schema" : "");
  }
  if (const size_t at = text.find('\0'); at != std::string_view::npos) {
    RefuseGuidance("the ", name, " has a NUL at byte ", at, "; it must be text");
  }
  if (const size_t at = FindInvalidUtf8(text); at != std::string_view::npos) {
    RefuseGuidance("the ", name, " is not UTF-8 at byte ", at, "; encode it as UTF-8");
  }
}

}  // namespace

const char* NameOf(GrammarKind kind) {
  switch (kind) {
    case GrammarKind::kJsonSchema: return "JSON schema";
    case GrammarKind::kJsonObject: return "JSON object grammar";
    case GrammarKind::kRegex: return "regular expression";
    case GrammarKind::kLark:
    case GrammarKind::kDelimited: return "Lark grammar";
  }
  return "grammar";
}

GrammarSpec MakeGrammarSpec(std::string_view type, std::string_view text) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeName& row) { return row.name == type; });
  if (found == kTypes.end()) RefuseType(type);
  if (found->kind != GrammarKind::kJsonObject) {
    CheckText(found->kind, text);
  } else if (!text.empty()) {
    RefuseGuidance("guidance of type json_object takes no text, and ", Quoted(text, 80),
                   " was given; pass \"\", or use json_schema");
  }
  return GrammarSpec{.kind = found->kind, .text = std::string(text)};
}

GrammarSpec MakeDelimitedSpec(TokenId opening_token, TokenId closing_token, std::string_view lark) {
  if (opening_token < 0 || closing_token < 0 || opening_token == closing_token) {
    RefuseGuidance("delimited guidance has the opening token ", opening_token, " and the closing token ", closing_token,
                   "; they must be two different ids of the vocabulary");
  }
  CheckText(GrammarKind::kDelimited, lark);
  return GrammarSpec{.kind = GrammarKind::kDelimited,
                     .text = std::string(lark),
                     .opening_token = opening_token,
                     .closing_token = closing_token};
}

}  // namespace oga::grammar
