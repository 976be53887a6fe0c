// Sets of token ids as bits: bit i % 32 of word i / 32 is token i. The layout is the one grammar compilers fill.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "step/ids.h"

namespace oga::search {

constexpr size_t BitmaskWords(size_t tokens) { return (tokens + 31) / 32; }

inline bool HasBit(std::span<const uint32_t> mask, TokenId token) {
  return (mask[static_cast<size_t>(token) / 32] >> (token % 32) & 1u) != 0;
}
inline void SetBit(std::span<uint32_t> mask, TokenId token) {
  mask[static_cast<size_t>(token) / 32] |= 1u << (token % 32);
}
inline void ClearBit(std::span<uint32_t> mask, TokenId token) {
  mask[static_cast<size_t>(token) / 32] &= ~(1u << (token % 32));
}

}  // namespace oga::search
