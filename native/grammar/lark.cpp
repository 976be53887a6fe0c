#include "grammar/lark.h"

#include <algorithm>
#include <optional>

#include "grammar/grammar_errors.h"
#include "grammar/schema.h"

namespace oga::grammar {

namespace {

constexpr std::string_view kJsonMark = "%json";

size_t CountLines(std::string_view text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1; }

// The JSON object at the start of `text`, after white space; empty when there is none that ends.
std::string_view JsonObjectAt(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '{') return {};
  int depth = 0;
  bool in_string = false;
  for (size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return text.substr(0, i + 1);
    }
  }
  return {};
}

// The offset just behind the string, regular expression, special token or comment that begins at `at`; nothing when none
// does. It is where llguidance's own lexer ends them, for every grammar that it accepts.
std::optional<size_t> SkipLiteral(std::string_view text, size_t at) {
  const char opening = text[at];
  if (opening == '<') {
    const size_t end = text.find_first_of("<> \t\r\n", at + 1);
    if (end != std::string_view::npos && text[end] == '>') return end + 1;
    return std::nullopt;
  }
  if (opening == '#' || text.substr(at, 2) == "//") {
    const size_t end = text.find('\n', at);
    return end == std::string_view::npos ? text.size() : end;
  }
  if (opening != '"' && opening != '/') return std::nullopt;
  for (size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == opening) {
      return i + 1;
    } else if (opening == '"' && text[i] == '\n') {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string PrepareLark(std::string_view text) {
  if (const size_t lines = CountLines(text); lines > kMaxLarkLines) {
    RefuseGuidance("the Lark grammar has ", lines, " lines; at most ", kMaxLarkLines, " are allowed: make it smaller");
  }
  std::string prepared;
  size_t schema_bytes = 0;
  size_t at = 0;
  while (at < text.size()) {
    if (const std::optional<size_t> end = SkipLiteral(text, at)) {
      prepared += text.substr(at, *end - at);
      at = *end;
    } else if (text.substr(at).starts_with(kJsonMark)) {
      prepared += kJsonMark;
      at += kJsonMark.size();
      const std::string_view schema = JsonObjectAt(text.substr(at));
      if (!schema.empty()) prepared += ' ' + PrepareSchema(schema);
      schema_bytes += schema.size();
      at += schema.size();
    } else {
      prepared += text[at++];
    }
  }
  if (const size_t own_bytes = text.size() - schema_bytes; own_bytes > kMaxLarkBytes) {
    RefuseGuidance("the Lark grammar has ", own_bytes, " bytes beside its JSON schemas; at most ", kMaxLarkBytes,
                   " are allowed: make it smaller");
  }
  return prepared;
}

}  // namespace oga::grammar
