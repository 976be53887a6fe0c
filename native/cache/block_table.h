// BlockTable: the blocks of one sequence, and the hashes of its full ones.
//
// Owned by PagedCache, one per request.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/block_hash.h"
#include "step/ids.h"

namespace oga {

struct BlockTable {
  std::vector<BlockId> blocks;   // physical block of each logical one
  std::vector<BlockHash> chain;  // of every full block of the sequence, computed or not; empty without a prefix cache
  uint64_t salt = 0;             // sequences share blocks only under the same salt
  uint32_t filled_slots = 0;
  uint32_t published_blocks = 0;  // leading blocks that are published
  uint64_t generation = 0;        // changes with every change of the above but `chain`
};

}  // namespace oga
