#include "search/suffix_matches.h"

#include <algorithm>

#include "base/check.h"

namespace oga::search {

void SuffixMatches::Reserve(size_t tokens) {
  if (tokens > lengths_.size()) lengths_.resize(std::max(tokens, 2 * lengths_.size()));
}

void SuffixMatches::Find(std::span<const TokenId> sequence) {
  const size_t size = sequence.size();
  OGA_CHECK(size <= lengths_.size());
  size_ = size;
  const auto backwards = [&](size_t i) { return sequence[size - 1 - i]; };
  // [begin, end) is the match that reaches farthest; inside it, what was found at its start need not be compared again.
  size_t begin = 0;
  size_t end = 0;
  for (size_t i = 1; i < size; ++i) {
    size_t length = i < end ? std::min<size_t>(end - i, lengths_[i - begin]) : 0;
    while (i + length < size && backwards(length) == backwards(i + length)) ++length;
    lengths_[i] = static_cast<uint32_t>(length);
    if (i + length > end) {
      begin = i;
      end = i + length;
    }
  }
}

}  // namespace oga::search
