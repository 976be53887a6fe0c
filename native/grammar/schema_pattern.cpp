#include "grammar/schema_pattern.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"
#include "base/printable_text.h"
#include "grammar/grammar_spec.h"

namespace oga::grammar {

namespace {

constexpr unsigned char kFirstPrintable = 0x20;

// Sets of characters that have every control character but not both `"` and `\`.
constexpr std::array kControlSets = std::to_array<std::string_view>({"c", "cc", "cntrl", "control", "other"});

// "control" of " Control " and of "General_Category=control": names are compared loosely.
std::string LooseName(std::string_view name) {
  name = name.substr(name.find_first_of("=:") + 1);
  std::string loose;
  for (const char c : name) {
    if (c == ' ' || c == '_' || c == '-') continue;
    loose += c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  }
  return loose;
}

class PatternReader {
 public:
  explicit PatternReader(std::string_view pattern) : pattern_(pattern) {}

  PreparedPattern Read() {
    while (at_ < pattern_.size() && out_.fault.empty()) {
      const char c = pattern_[at_];
      const bool is_control = static_cast<unsigned char>(c) < kFirstPrintable && c != '\t' && c != '\n' && c != '\r';
      if (c == '\\') {
        ReadEscape();
      } else if (is_control) {
        RefuseControl();
      } else if (in_class_) {
        ReadInClass();
      } else if (c == '[') {
        OpenClass();
      } else {
        Copy(1);
      }
    }
    return std::move(out_);
  }

 private:
  std::string_view Rest(size_t offset = 0) const { return pattern_.substr(std::min(at_ + offset, pattern_.size())); }

  void Copy(size_t count) {
    out_.text += Rest().substr(0, count);
    at_ += count;
  }

  void RefuseControl() {
    if (in_class_ && is_negated_) return Copy(1);
    out_.fault = "names a control character by its number, which cannot be enforced; leave it out";
  }

  void OpenClass() {
    is_negated_ = Rest(1).starts_with('^');
    const size_t length = is_negated_ ? 2 : 1;
    if (Rest(length).starts_with(']')) {
      out_.fault = "begins a character class with ']', where engines of regular expressions differ; write '\\]'";
      return;
    }
    in_class_ = true;
    Copy(length);
    if (is_negated_) out_.text += "\\x01";
  }

  void ReadInClass() {
    const std::string_view pair = Rest().substr(0, 2);
    if (pair[0] == '[' || pair == "&&" || pair == "--" || pair == "~~") {
      out_.fault = Message("has ", Quoted(pair[0] == '[' ? pair.substr(0, 1) : pair),
                           " inside a character class, where engines of regular expressions differ; write it with a "
                           "backslash");
      return;
    }
    in_class_ = pair[0] != ']';
    Copy(1);
  }

  void ReadEscape() {
    const char kind = Rest(1).empty() ? '\0' : Rest(1)[0];
    if (kind == 'x' || kind == 'u' || kind == 'U') {
      ReadNumber(kind);
    } else if (kind == 'p' || kind == 'P') {
      ReadSet(kind == 'P');
    } else {
      Copy(std::min<size_t>(2, Rest().size()));
    }
  }

  // \x41 \u0041 \U00000041 \x{41}
  void ReadNumber(char kind) {
    std::string_view digits = Rest(2).substr(0, kind == 'x' ? 2 : kind == 'u' ? 4 : 8);
    if (Rest(2).starts_with('{')) digits = Rest(3).substr(0, Rest(3).find('}'));
    unsigned value = kFirstPrintable;
    std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (value < kFirstPrintable && !(in_class_ && is_negated_)) return RefuseControl();
    Copy(2);
  }

  // \pL \p{Greek} \P{^L}
  void ReadSet(bool is_complement) {
    std::string_view name = Rest(2).substr(0, 1);
    if (name == "{") name = Rest(3).substr(0, Rest(3).find('}'));
    if (name.starts_with('^')) {
      is_complement = !is_complement;
      name.remove_prefix(1);
    }
    const std::string loose = LooseName(name);
    const bool is_control_set = std::find(kControlSets.begin(), kControlSets.end(), loose) != kControlSets.end();
    // Letters, marks and numbers have no quote and no backslash, so what is not one has both.
    const bool is_safe_complement = !loose.empty() && (loose[0] == 'l' || loose[0] == 'm' || loose[0] == 'n');
    if (!(in_class_ && is_negated_) && (is_complement ? !is_safe_complement : is_control_set)) {
      out_.fault = Message("uses the set of characters ", Quoted(name, 40), is_complement ? " as a complement" : "",
                           ", which cannot be enforced exactly; list the characters");
      return;
    }
    Copy(2);
  }

  std::string_view pattern_;
  size_t at_ = 0;
  bool in_class_ = false;
  bool is_negated_ = false;
  PreparedPattern out_;
};

}  // namespace

PreparedPattern PreparePattern(std::string_view pattern) {
  if (pattern.size() > kMaxRegexBytes) {
    return {.text = {}, .fault = Message("has ", pattern.size(), " bytes; at most ", kMaxRegexBytes, " are allowed")};
  }
  return PatternReader(pattern).Read();
}

}  // namespace oga::grammar
