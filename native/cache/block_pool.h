// BlockPool: who owns each block of the paged key-value cache.
//
//        Reserve                 Commit                 Share / Release
//  free ---------> reserved ---------------> committed <---------------> (share count)
//   ^    Return       |                       |     ^ |
//   +-----------------+    last share released|     | | last share released, content worth keeping
//   +-----------------------------------------+     | v
//   +<------------------------------------------- retired
//                        Evict                Revive
//
// A retired block has no owner but keeps its published content until somebody needs the room. Retired blocks are evicted
// in the order they retired. Tables release their blocks from the end, and whoever holds a block holds the ones before
// it too, so a block always retires after every block that continues it: the oldest retired block is a leaf.
//
// Owned by PagedCache; owner thread of the engine. Moves numbers only: no memory of the cache itself is touched here.
// Everything but the constructor is O(1) and allocates nothing.
//
// B1  each block is in exactly one of free, reserved, committed, retired
// B2  a committed block has a share count of at least 1, any other has none
// B3  the counts of free, reserved and retired blocks equal what the states say
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
  uint32_t retired_blocks() const noexcept { return retired_; }
  uint32_t available_blocks() const noexcept { return free_blocks() + retired_; }  // what a reservation may take
  uint32_t reserved_blocks() const noexcept { return reserved_; }

  // Changes with every move; lets a reservation see that nothing moved behind its back.
  uint64_t generation() const noexcept { return generation_; }

  // free -> reserved. A block must be free.
  BlockId Reserve() noexcept;
  // reserved -> free.
  void Return(BlockId block) noexcept;
  // reserved -> committed, with one owner.
  void Commit(BlockId block) noexcept;
  // One more owner of a committed block, or the first of a retired one.
  void Share(BlockId block) noexcept;
  // One owner less. The last one frees the block, or retires it when `keep`.
  void Release(BlockId block, bool keep) noexcept;
  // The block that retired first; one must be retired.
  BlockId OldestRetired() const noexcept { return oldest_; }
  // retired -> free.
  void Evict(BlockId block) noexcept;

  uint32_t share_count(BlockId block) const noexcept;
  bool IsRetired(BlockId block) const noexcept { return shares_[block] == kRetired; }

  void Validate() const;

 private:
  static constexpr int32_t kFree = 0;
  // Two apart, so that one release too many is no valid state.
  static constexpr int32_t kReserved = -2;
  static constexpr int32_t kRetired = -4;

  struct Links {
    BlockId older = kUnmappedBlock;
    BlockId newer = kUnmappedBlock;
  };

  void Unlink(BlockId block) noexcept;
  void LinkNewest(BlockId block) noexcept;

  std::vector<int32_t> shares_;  // by block: one of the constants above, or the share count of a committed block
  std::vector<BlockId> free_;    // a stack, so that recently used blocks are used again first
  std::vector<Links> links_;     // of retired blocks
  BlockId oldest_ = kUnmappedBlock;
  BlockId newest_ = kUnmappedBlock;
  uint32_t reserved_ = 0;
  uint32_t retired_ = 0;
  uint64_t generation_ = 0;
};

}  // namespace oga
