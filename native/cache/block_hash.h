// The identity of a full block's content: a keyed 128-bit hash chained over the block before it and its own tokens.
//
// SipHash-2-4 with 128-bit output (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012). Keyed per engine, so
// that nobody can build prompts that collide; and a collision would only cost time, because tokens are compared too.
#pragma once

#include <cstdint>
#include <span>

#include "step/ids.h"

namespace oga {

struct BlockHash {
  uint64_t low = 0;
  uint64_t high = 0;

  bool operator==(const BlockHash&) const = default;
};

struct HashKey {
  uint64_t low = 0;
  uint64_t high = 0;

  static HashKey Draw();  // from the system's entropy
};

// Hashes a block after its parent (zero for the first). Tests pass a weak one to make collisions.
using BlockHashFunction = BlockHash (*)(const HashKey& key, const BlockHash& parent, uint64_t salt,
                                        std::span<const TokenId> tokens) noexcept;

BlockHash SipHashBlock(const HashKey& key, const BlockHash& parent, uint64_t salt,
                       std::span<const TokenId> tokens) noexcept;

}  // namespace oga
