#include "search/token_counts.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace oga::search {

namespace {

// The slot of `token`, or the free one where it belongs. There is always a free one.
uint32_t& SlotOf(std::span<uint32_t> slots, std::span<const TokenCount> values, TokenId token) {
  const size_t mask = slots.size() - 1;
  size_t slot = static_cast<size_t>(static_cast<uint32_t>(token) * 0x9E3779B1u) & mask;
  while (slots[slot] != 0 && values[slots[slot] - 1].token != token) slot = (slot + 1) & mask;
  return slots[slot];
}

}  // namespace

void TokenCounts::Reserve(size_t tokens) {
  const size_t needed = values_.size() + std::min(tokens, vocab_size_ - values_.size());
  if (needed <= values_.capacity() && 2 * needed <= slots_.size()) return;
  const size_t room = std::min(std::max(needed, 2 * values_.capacity()), vocab_size_);
  std::vector<uint32_t> slots(std::bit_ceil(2 * room + 1));
  for (size_t i = 0; i < values_.size(); ++i) {
    SlotOf(slots, values_, values_[i].token) = static_cast<uint32_t>(i + 1);
  }
  values_.reserve(room);
  slots_ = std::move(slots);
}

void TokenCounts::Append(TokenId token) noexcept {
  uint32_t& slot = SlotOf(slots_, values_, token);
  if (slot == 0) {
    values_.push_back({token, 0});
    slot = static_cast<uint32_t>(values_.size());
  }
  ++values_[slot - 1].count;
}

}  // namespace oga::search
