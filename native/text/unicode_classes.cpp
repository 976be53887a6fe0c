#include "text/unicode_classes.h"

#include <algorithm>
#include <span>

#include "base/utf8.h"
#include "text/unicode_classes_data.h"

namespace oga {

namespace {

bool Contains(std::span<const CodePointRange> ranges, char32_t character) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), character,
                       [](char32_t wanted, const CodePointRange& range) { return wanted < range.begin; });
  return after != ranges.begin() && character <= std::prev(after)->end;
}

}  // namespace

bool IsLetter(char32_t character) { return Contains(kLetters, character); }
bool IsNumber(char32_t character) { return Contains(kNumbers, character); }
bool IsDigit(char32_t character) { return Contains(kDigits, character); }
bool IsSpace(char32_t character) { return Contains(kSpaces, character); }

bool IsComposed(std::string_view text) {
  while (!text.empty()) {
    const Utf8Step step = NextUtf8(text);
    if (Contains(kChangedByComposition, CodePointOf(text.substr(0, step.length)))) return false;
    text.remove_prefix(step.length);
  }
  return true;
}

}  // namespace oga
