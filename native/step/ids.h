// The scalar vocabulary of a step.
#pragma once

#include <cstdint>

namespace oga {

using TokenId = int32_t;     // in [0, vocabulary size)
using BlockId = int32_t;     // in [0, pool size); -1 is unmapped in tables that the model reads
using TurnId = uint64_t;     // 1, 2, 3 ... within a request; 0 is no turn
using RequestId = uint64_t;  // unique within an engine, never reused

// Dense index of a live request inside its engine: the key of every per-request table. Reused after the request is
// gone; a (slot, generation) pair is what identifies a request across steps.
using RequestSlot = uint32_t;

inline constexpr BlockId kUnmappedBlock = -1;
inline constexpr RequestSlot kNoSlot = 0xffffffffu;

}  // namespace oga
