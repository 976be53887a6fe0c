// BlockPool: who owns each block of the paged key-value cache.
//
//        Reserve                 Commit                 Share / Release
//  free ---------> reserved ---------------> committed <---------------> (share count)
//   ^    Return       |                          |  last share released
//   +-----------------+--------------------------+
//
// Owned by PagedCache; owner thread of the engine. Moves numbers only: no memory of the cache itself is touched here.
//
// B1  each block is in exactly one of free, reserved, committed
// B2  a committed block has a share count of at least 1, any other has 0
// B3  the counts of free, reserved and shared blocks equal what the states say
#pragma once

#include <cstdint>
#include <vector>

#include "step/ids.h"

namespace oga {

class BlockPool {
 public:
  explicit BlockPool(uint32_t blocks);

  uint32_t total_blocks() const noexcept { return static_cast<uint32_t>(shares_.size()); }
  uint32_t free_blocks() const noexcept { return static_cast<uint32_t>(free_.size()); }
  uint32_t reserved_blocks() const noexcept { return reserved_; }
  uint32_t shared_blocks() const noexcept { return shared_; }  // committed with more than one owner

  // Changes with every move; lets a reservation see that nothing moved behind its back.
  uint64_t generation() const noexcept { return generation_; }

  // free -> reserved. A block must be free.
  BlockId Reserve() noexcept;
  // reserved -> free.
  void Return(BlockId block) noexcept;
  // reserved -> committed, with one owner.
  void Commit(BlockId block) noexcept;
  // One more owner of a committed block.
  void Share(BlockId block) noexcept;
  // One owner less; the last one frees the block.
  void Release(BlockId block) noexcept;

  uint32_t share_count(BlockId block) const noexcept;

  void Validate() const;

 private:
  static constexpr int32_t kFree = 0;
  static constexpr int32_t kReserved = -1;

  std::vector<int32_t> shares_;  // by block: kFree, kReserved, or the share count of a committed block
  std::vector<BlockId> free_;    // a stack, so that recently used blocks are used again first
  uint32_t reserved_ = 0;
  uint32_t shared_ = 0;
  uint64_t generation_ = 0;
};

}  // namespace oga
