// Cutting a text into pieces, each of which a model encodes by itself.
//
// Pure functions over UTF-8. The regular expressions are those that byte-level vocabularies are trained with; they are
// known by their exact text, since there is no general engine for them here.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

namespace oga {

using Pieces = std::vector<std::string_view>;

enum class SplitPattern {
  kGpt2,    // contractions, words, numbers and others with a space in front, spaces
  kLlama3,  // any contractions, words, up to three digits, others up to the end of a line, lines, spaces
  kQwen2,   // as kLlama3 with single digits
};

// The pattern with that text; nullptr when it is none of them.
const SplitPattern* FindSplitPattern(std::string_view regular_expression);

// The matches of the pattern, one behind the other: every character is in one.
Pieces SplitByPattern(std::string_view text, SplitPattern pattern);

// Digits apart from the rest: one by one, or in runs.
Pieces SplitByDigits(std::string_view text, bool one_by_one);

enum class DelimiterBehavior { kIsolated, kMergedWithPrevious, kMergedWithNext };

// Pieces between occurrences of `delimiter`, which stands alone or with a neighbour. Of several in a row only the one
// that touches the neighbour joins it.
Pieces SplitByDelimiter(std::string_view text, std::string_view delimiter, DelimiterBehavior behavior);

}  // namespace oga
