#include "grammar/grammar_errors.h"

#include <algorithm>
#include <optional>

#include "base/printable_text.h"

namespace oga::grammar {

namespace {

constexpr size_t kMaxMessageBytes = 400;
constexpr std::string_view kRegexError = "regex parse error:\n";
constexpr std::string_view kReason = "\nerror: ";
constexpr size_t kIndent = 4;  // of the expression and its caret

std::string_view LineAt(std::string_view text, size_t begin) {
  return text.substr(begin, text.find('\n', begin) - begin);
}

// "regex parse error at character 1: unclosed character class"; nothing for an expression of several lines, which the
// library draws in another way.
std::optional<std::string> RegexError(std::string_view message) {
  const size_t mark = message.find(kRegexError);
  const size_t reason = message.find(kReason);
  if (mark == std::string_view::npos || reason == std::string_view::npos || reason < mark) return std::nullopt;
  const std::string_view drawing = message.substr(mark + kRegexError.size(), reason - mark - kRegexError.size());
  const size_t caret_line = drawing.rfind('\n');
  if (caret_line == std::string_view::npos || drawing.find('\n') != caret_line) return std::nullopt;
  const size_t caret = drawing.substr(caret_line + 1).find('^');
  if (caret == std::string_view::npos || caret < kIndent) return std::nullopt;
  return Message("regex parse error at character ", caret - kIndent + 1, ": ",
                 Printable(LineAt(message, reason + kReason.size())));
}

}  // namespace

std::string OneLine(std::string_view message) {
  if (std::optional<std::string> error = RegexError(message)) return *error;
  for (const std::string_view mark : {"<backtrace>", "<state>", "<grammar>", "<non-verbose/>"}) {
    message = message.substr(0, message.find(mark));
  }
  std::string line;
  size_t begin = 0;
  while (begin < message.size() && line.size() < kMaxMessageBytes) {
    const std::string_view part = LineAt(message, begin);
    begin += part.size() + 1;
    // The library shows the lines around a fault as "   3 | text" and points at it from below.
    const size_t first = part.find_first_not_of(' ');
    if (first == std::string_view::npos || part[first] == '^') continue;
    const size_t bar = part.find(" | ");
    const bool is_drawing = bar != std::string_view::npos && first > 0 &&
                            part.substr(first, bar - first).find_first_not_of("0123456789") == std::string_view::npos;
    if (is_drawing) continue;
    if (!line.empty()) line += ' ';
    line += part.substr(first);
  }
  line.resize(std::min(line.size(), kMaxMessageBytes));
  line.resize(line.find_last_not_of(' ') + 1);
  return Printable(line);
}

}  // namespace oga::grammar
