// The scalar vocabulary of a step.
#pragma once

#include <cstdint>

namespace oga {

using TokenId = int32_t;     // in [0, vocabulary size)
using BlockId = int32_t;     // in [0, pool size); -1 is unmapped in tables that the model reads
using TurnId = uint64_t;     // 1, 2, 3 ... within a request; 0 is no turn
using RequestId = uint64_t;  // unique within an engine, never reused

// Dense index of an open request inside its engine: the key of every per-request table. Reused after the request is
// gone; an (index, generation) pair is what identifies a request across steps.
using RequestIndex = uint32_t;

inline constexpr BlockId kUnmappedBlock = -1;
inline constexpr RequestIndex kNoRequest = 0xffffffffu;

}  // namespace oga
