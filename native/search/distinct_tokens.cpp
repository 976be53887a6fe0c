#include "search/distinct_tokens.h"

#include <algorithm>

namespace oga::search {

DistinctTokens::DistinctTokens(int32_t vocab_size)
    : vocab_size_(static_cast<size_t>(vocab_size)), seen_(vocab_size_, false) {}

void DistinctTokens::Reserve(size_t tokens) {
  // There are never more values than vocabulary entries, however long the sequence grows.
  const size_t needed = values_.size() + std::min(tokens, vocab_size_ - values_.size());
  if (needed <= values_.capacity()) return;
  // vector::reserve takes exactly what it is told; a caller that reserves one token per step would copy every time.
  values_.reserve(std::min(std::max(needed, 2 * values_.capacity()), vocab_size_));
}

void DistinctTokens::Append(TokenId token) noexcept {
  const auto index = static_cast<size_t>(token);
  if (seen_[index]) return;
  seen_[index] = true;
  values_.push_back(token);
}

}  // namespace oga::search
