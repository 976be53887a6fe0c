// How often each token occurs in a turn's output, in first-seen order, for the presence and frequency penalties.
//
// Owned by one Request; owner thread of its engine. Append is O(1) and allocates nothing, so that a step's commit
// cannot fail: whoever appends has called Reserve before. A hash table, because a counter per vocabulary entry would
// cost a request a megabyte.
//
// T1  values() holds every token appended once, in the order of its first appearance, with the number of its appends
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "step/ids.h"

namespace oga::search {

struct TokenCount {
  TokenId token = 0;
  uint32_t count = 0;

  friend bool operator==(const TokenCount&, const TokenCount&) = default;
};

class TokenCounts {
 public:
  explicit TokenCounts(int32_t vocab_size) : vocab_size_(static_cast<size_t>(vocab_size)) {}

  // Makes room for `tokens` further appends. May throw std::bad_alloc; changes nothing then.
  void Reserve(size_t tokens);

  // `token` is in [0, vocab_size) and room for it was reserved.
  void Append(TokenId token) noexcept;

  std::span<const TokenCount> values() const noexcept { return values_; }

 private:
  size_t vocab_size_;
  std::vector<TokenCount> values_;
  std::vector<uint32_t> slots_;  // index into values_ plus one, 0 for none; a power of two, at most half full
};

}  // namespace oga::search
