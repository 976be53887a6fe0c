// From the limits a person configured to the limits an engine runs under.
#pragma once

#include <cstdint>

#include "config/genai_config.h"
#include "memory/host_memory.h"
#include "step/engine_limits.h"

namespace oga {

// Configured limits as they are, the rest by default, and num_blocks, when it is not configured, from the memory that
// is available at this moment. `bytes_per_slot` are the keys and values of one token over all layers. Writes one info
// line: how many blocks, how many bytes, and why.
//
// Throws Error{kResourceExhausted} when not one block fits, and Error{kInvalidArgument} when the configured cache has
// more bytes than there are addresses. A configured num_blocks beyond the memory is kept: pages that are never used
// cost nothing, and whether the cache can be made is for its maker to say.
EngineLimits ResolveEngineLimits(const GenaiConfig& config, uint64_t bytes_per_slot);
EngineLimits ResolveEngineLimits(const GenaiConfig& config, uint64_t bytes_per_slot, const HostMemory& memory);

}  // namespace oga
