// PrefixIndex: the published blocks, found by what they contain.
//
// A published block is full, committed or retired, and never written again. It is found by its chained hash and then
// compared: its own tokens, its salt, and the published block before it. Comparing the parent block compares the whole
// beginning, since the parent was itself found this way. A collision of hashes therefore costs a comparison, never a
// wrong answer.
//
// Owned by PagedCache; owner thread. All memory is allocated in the constructor. Find is O(1) on average; so are Publish
// and Remove.
//
// P1  a published block's parent is published
// P2  a published block is in exactly the bucket of its hash
// P3  the children counted on a block are the published blocks that name it as their parent
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/block_hash.h"
#include "step/ids.h"

namespace oga {

class PrefixIndex {
 public:
  // An index of no blocks publishes nothing.
  PrefixIndex(uint32_t blocks, uint32_t block_size_tokens);

  bool Published(BlockId block) const noexcept { return !entries_.empty() && entries_[block].published; }
  uint32_t published_blocks() const noexcept { return published_; }

  // The block with these tokens after `parent` (kUnmappedBlock for a first block); kUnmappedBlock when there is none.
  BlockId Find(const BlockHash& hash, BlockId parent, uint64_t salt, std::span<const TokenId> tokens) const noexcept;

  // The block is not published yet and Find knows no other with this content; its parent is published.
  void Publish(BlockId block, const BlockHash& hash, BlockId parent, uint64_t salt,
               std::span<const TokenId> tokens) noexcept;

  // The block is published and has no children.
  void Remove(BlockId block) noexcept;

  void Validate() const;

 private:
  struct Entry {
    BlockHash hash;
    uint64_t salt = 0;
    BlockId parent = kUnmappedBlock;
    BlockId next = kUnmappedBlock;  // in its bucket
    uint32_t children = 0;
    bool published = false;
  };

  size_t Bucket(const BlockHash& hash) const noexcept { return hash.low & (buckets_.size() - 1); }
  std::span<const TokenId> Tokens(BlockId block) const noexcept;

  uint32_t block_size_;
  uint32_t published_ = 0;
  std::vector<Entry> entries_;    // by block
  std::vector<TokenId> tokens_;   // by block, block_size_ each
  std::vector<BlockId> buckets_;  // heads; a power of two
};

}  // namespace oga
