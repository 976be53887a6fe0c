#include "cache/block_pool.h"

#include "base/check.h"

namespace oga {

BlockPool::BlockPool(uint32_t blocks) : shares_(blocks, kFree), links_(blocks) {
  free_.reserve(blocks);
  for (uint32_t i = blocks; i > 0; --i) free_.push_back(static_cast<BlockId>(i - 1));
}

BlockId BlockPool::Reserve() noexcept {
  const BlockId block = free_.back();
  free_.pop_back();
  shares_[block] = kReserved;
  ++reserved_;
  ++generation_;
  return block;
}

void BlockPool::Return(BlockId block) noexcept {
  shares_[block] = kFree;
  free_.push_back(block);
  --reserved_;
  ++generation_;
}

void BlockPool::Commit(BlockId block) noexcept {
  shares_[block] = 1;
  --reserved_;
  ++generation_;
}

void BlockPool::Share(BlockId block) noexcept {
  if (shares_[block] == kRetired) {
    Unlink(block);
    shares_[block] = 0;
  }
  ++shares_[block];
  ++generation_;
}

void BlockPool::Release(BlockId block, bool keep) noexcept {
  const int32_t left = --shares_[block];
  if (left == 0 && keep) {
    shares_[block] = kRetired;
    LinkNewest(block);
  } else if (left == 0) {
    free_.push_back(block);
  }
  ++generation_;
}

void BlockPool::Evict(BlockId block) noexcept {
  Unlink(block);
  shares_[block] = kFree;
  free_.push_back(block);
  ++generation_;
}

void BlockPool::LinkNewest(BlockId block) noexcept {
  links_[block] = {newest_, kUnmappedBlock};
  (newest_ == kUnmappedBlock ? oldest_ : links_[newest_].newer) = block;
  newest_ = block;
  ++retired_;
}

void BlockPool::Unlink(BlockId block) noexcept {
  const Links links = links_[block];
  (links.older == kUnmappedBlock ? oldest_ : links_[links.older].newer) = links.newer;
  (links.newer == kUnmappedBlock ? newest_ : links_[links.newer].older) = links.older;
  --retired_;
}

uint32_t BlockPool::share_count(BlockId block) const noexcept {
  return shares_[block] > 0 ? static_cast<uint32_t>(shares_[block]) : 0;
}

void BlockPool::Validate() const {
  uint32_t free = 0;
  uint32_t reserved = 0;
  uint32_t retired = 0;
  for (const int32_t shares : shares_) {
    CheckInvariant(shares >= 0 || shares == kReserved || shares == kRetired, "B2", "a share count is negative");
    free += shares == kFree;
    reserved += shares == kReserved;
    retired += shares == kRetired;
  }
  std::vector<bool> listed(shares_.size());
  for (const BlockId block : free_) {
    CheckInvariant(block >= 0 && static_cast<size_t>(block) < shares_.size(), "B1", "the free list holds no block");
    CheckInvariant(shares_[block] == kFree && !listed[block], "B1", "a listed block is not free, or is listed twice");
    listed[block] = true;
  }
  CheckInvariant(free == free_.size(), "B1", "a free block is not listed");
  uint32_t linked = 0;
  for (BlockId block = oldest_; block != kUnmappedBlock && linked <= retired; block = links_[block].newer) {
    CheckInvariant(shares_[block] == kRetired, "B1", "a block among the retired is not retired");
    ++linked;
  }
  CheckInvariant(linked == retired && retired == retired_, "B3", "the count of retired blocks is off");
  CheckInvariant(reserved == reserved_, "B3", "the count of reserved blocks is off");
}

}  // namespace oga
