#include "text/text_splits.h"

#include <algorithm>
#include <cstdint>

#include "base/utf8.h"
#include "text/unicode_classes.h"

namespace oga {

namespace {

struct NamedPattern {
  std::string_view text;
  SplitPattern pattern;
};

constexpr NamedPattern kPatterns[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", SplitPattern::kGpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     SplitPattern::kLlama3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     SplitPattern::kQwen2},
};

enum class Class : uint8_t { kLetter, kNumber, kSpace, kOther };

Class ClassOf(char32_t character) {
  if (IsLetter(character)) return Class::kLetter;
  if (IsNumber(character)) return Class::kNumber;
  return IsSpace(character) ? Class::kSpace : Class::kOther;
}

struct Character {
  size_t at;  // in the text
  char32_t code_point;
  Class kind;
};

std::vector<Character> Classify(std::string_view text) {
  std::vector<Character> characters;
  characters.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = NextUtf8(text.substr(at)).length;
    const char32_t code_point = CodePointOf(text.substr(at, length));
    characters.push_back({at, code_point, ClassOf(code_point)});
    at += length;
  }
  return characters;
}

// Finds the end of each match. Alternatives are tried in the order of the expression; where a quantifier has to give
// characters back, the rule that comes of it stands at the function.
class PatternMatcher {
 public:
  PatternMatcher(const std::vector<Character>& text, SplitPattern pattern) : text_(text), pattern_(pattern) {}

  size_t EndOfMatch(size_t begin) const {
    const size_t contraction = EndOfContraction(begin);
    if (contraction > begin) return contraction;
    return pattern_ == SplitPattern::kGpt2 ? EndOfGpt2(begin) : EndOfLlama3(begin);
  }

 private:
  bool Is(size_t at, Class kind) const { return at < text_.size() && text_[at].kind == kind; }
  bool IsNewline(size_t at) const {
    return at < text_.size() && (text_[at].code_point == U'\r' || text_[at].code_point == U'\n');
  }

  size_t EndOfRun(size_t at, Class kind, size_t longest = SIZE_MAX) const {
    const size_t begin = at;
    while (Is(at, kind) && at - begin < longest) ++at;
    return at;
  }

  // 's 't 're 've 'm 'll 'd; only GPT-2 minds the case. U+017F is a small s of old.
  size_t EndOfContraction(size_t begin) const {
    if (text_[begin].code_point != U'\'') return begin;
    const auto letter = [&](size_t at) -> char32_t {
      if (at >= text_.size()) return 0;
      const char32_t found = text_[at].code_point;
      if (pattern_ == SplitPattern::kGpt2) return found;
      if (found == 0x17f) return U's';
      return found >= U'A' && found <= U'Z' ? found + (U'a' - U'A') : found;
    };
    const char32_t first = letter(begin + 1);
    const char32_t second = letter(begin + 2);
    if (first == U's' || first == U't' || first == U'm' || first == U'd') return begin + 2;
    const bool is_pair =
        (first == U'r' && second == U'e') || (first == U'v' && second == U'e') || (first == U'l' && second == U'l');
    return is_pair ? begin + 3 : begin;
  }

  size_t EndOfGpt2(size_t begin) const {
    const size_t word = begin + (text_[begin].code_point == U' ' ? 1 : 0);
    for (const Class kind : {Class::kLetter, Class::kNumber, Class::kOther}) {
      if (Is(word, kind)) return EndOfRun(word, kind);
    }
    return EndOfSpaces(begin);
  }

  size_t EndOfLlama3(size_t begin) const {
    const Class kind = text_[begin].kind;
    if (kind == Class::kLetter) return EndOfRun(begin, Class::kLetter);
    if (kind != Class::kNumber && !IsNewline(begin) && Is(begin + 1, Class::kLetter)) {
      return EndOfRun(begin + 1, Class::kLetter);
    }
    if (kind == Class::kNumber) return EndOfRun(begin, Class::kNumber, pattern_ == SplitPattern::kLlama3 ? 3 : 1);
    const size_t others = begin + (text_[begin].code_point == U' ' ? 1 : 0);
    if (Is(others, Class::kOther)) {
      size_t end = EndOfRun(others, Class::kOther);
      while (IsNewline(end)) ++end;
      return end;
    }
    size_t end = EndOfRun(begin, Class::kSpace);
    while (end > begin && !IsNewline(end - 1)) --end;  // \s*[\r\n]+ ends with the last line break of the run
    return end > begin ? end : EndOfSpaces(begin);
  }

  // \s+(?!\S)|\s+ leaves the last space of a run to the word behind it.
  size_t EndOfSpaces(size_t begin) const {
    const size_t end = EndOfRun(begin, Class::kSpace);
    return end == text_.size() || end == begin + 1 ? end : end - 1;
  }

  const std::vector<Character>& text_;
  const SplitPattern pattern_;
};

}  // namespace

const SplitPattern* FindSplitPattern(std::string_view regular_expression) {
  for (const NamedPattern& known : kPatterns) {
    if (known.text == regular_expression) return &known.pattern;
  }
  return nullptr;
}

Pieces SplitByPattern(std::string_view text, SplitPattern pattern) {
  const std::vector<Character> characters = Classify(text);
  const PatternMatcher matcher(characters, pattern);
  Pieces pieces;
  for (size_t begin = 0; begin < characters.size();) {
    const size_t end = matcher.EndOfMatch(begin);
    const size_t end_byte = end == characters.size() ? text.size() : characters[end].at;
    pieces.push_back(text.substr(characters[begin].at, end_byte - characters[begin].at));
    begin = end;
  }
  return pieces;
}

Pieces SplitByDigits(std::string_view text, bool one_by_one) {
  Pieces pieces;
  size_t begin = 0;
  bool was_digit = false;
  for (size_t at = 0; at < text.size();) {
    const size_t length = NextUtf8(text.substr(at)).length;
    const bool is_digit = IsDigit(CodePointOf(text.substr(at, length)));
    if (at > begin && (is_digit != was_digit || (is_digit && one_by_one))) {
      pieces.push_back(text.substr(begin, at - begin));
      begin = at;
    }
    was_digit = is_digit;
    at += length;
  }
  if (begin < text.size()) pieces.push_back(text.substr(begin));
  return pieces;
}

Pieces SplitByDelimiter(std::string_view text, std::string_view delimiter, DelimiterBehavior behavior) {
  struct Part {
    size_t begin;
    size_t end;
    bool is_delimiter;
  };
  std::vector<Part> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t found = std::min(text.find(delimiter, begin), text.size());
    if (found > begin) parts.push_back({begin, found, false});
    if (found < text.size()) parts.push_back({found, found + delimiter.size(), true});
    begin = found + delimiter.size();
  }
  Pieces pieces;
  for (size_t i = 0; i < parts.size(); ++i) {
    Part part = parts[i];
    const bool next_is_delimiter = i + 1 < parts.size() && parts[i + 1].is_delimiter;
    const bool joins_next =
        behavior == DelimiterBehavior::kMergedWithPrevious && !part.is_delimiter && next_is_delimiter;
    const bool takes_next = behavior == DelimiterBehavior::kMergedWithNext && part.is_delimiter &&
                            i + 1 < parts.size() && !parts[i + 1].is_delimiter;
    if (joins_next || takes_next) part.end = parts[++i].end;
    pieces.push_back(text.substr(part.begin, part.end - part.begin));
  }
  return pieces;
}

}  // namespace oga
