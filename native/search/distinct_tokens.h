// The distinct tokens of a sequence, in first-seen order, for the repetition penalty.
//
// Owned by one Request; owner thread of its engine. Append is O(1) and allocates nothing, so that a step's commit
// cannot fail: whoever appends has called Reserve before. A rewind forgets all of it: the next turn starts a new one.
//
// D1  values() holds every token appended exactly once, in the order of its first appearance
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "step/ids.h"

namespace oga::search {

class DistinctTokens {
 public:
  explicit DistinctTokens(int32_t vocab_size);

  // Makes room for `tokens` further appends. May throw std::bad_alloc; changes nothing then.
  void Reserve(size_t tokens);

  // `token` is in [0, vocab_size) and room for it was reserved.
  void Append(TokenId token) noexcept;

  std::span<const TokenId> values() const noexcept { return values_; }

 private:
  size_t vocab_size_;
  std::vector<bool> seen_;  // one bit per vocabulary entry
  std::vector<TokenId> values_;
};

}  // namespace oga::search
