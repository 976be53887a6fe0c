// From the limits a person configured to the limits an engine runs under, and the memory that goes with them.
#pragma once

#include <cstdint>

#include "config/genai_config.h"
#include "memory/ledger.h"
#include "step/engine_limits.h"

namespace oga {

// Limits, and the claim on the key-value cache that num_blocks makes. Whoever drops it gives the memory back.
struct SizedLimits {
  EngineLimits limits;
  Lease cache;
};

// Configured limits as they are, the rest by default. `bytes_per_slot` are the keys and values of one token over all
// layers. Writes one info line: how many blocks, how many bytes, and why.
//
// When num_blocks is not configured, it is what requests can use, at most half of what the ledger has left; the claim is
// made in the same move, so that engines created at once share what is there. A configured num_blocks beyond the memory
// is kept: pages that are never used cost nothing, and whether the cache can be made is for its maker to say. Beyond
// OGA_MEMORY_LIMIT it is refused.
//
// Throws Error{kResourceExhausted} when not one block fits or the configured ones do not, and Error{kInvalidArgument}
// when the configured cache has more bytes than there are addresses.
SizedLimits ResolveEngineLimits(const GenaiConfig& config, uint64_t bytes_per_slot, Ledger& ledger);

}  // namespace oga
