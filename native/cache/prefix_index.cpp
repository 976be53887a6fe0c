#include "cache/prefix_index.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace oga {

PrefixIndex::PrefixIndex(uint32_t blocks, uint32_t block_size_tokens)
    : block_size_(block_size_tokens),
      entries_(blocks),
      tokens_(size_t{blocks} * block_size_tokens),
      buckets_(std::bit_ceil(size_t{blocks} + 1), kUnmappedBlock) {}

std::span<const TokenId> PrefixIndex::Tokens(BlockId block) const noexcept {
  return std::span(tokens_).subspan(size_t{static_cast<uint32_t>(block)} * block_size_, block_size_);
}

BlockId PrefixIndex::Find(const BlockHash& hash, BlockId parent, uint64_t salt,
                          std::span<const TokenId> tokens) const noexcept {
  for (BlockId block = buckets_[Bucket(hash)]; block != kUnmappedBlock; block = entries_[block].next) {
    const Entry& entry = entries_[block];
    const bool same = entry.hash == hash && entry.parent == parent && entry.salt == salt;
    if (same && std::ranges::equal(Tokens(block), tokens)) return block;
  }
  return kUnmappedBlock;
}

void PrefixIndex::Publish(BlockId block, const BlockHash& hash, BlockId parent, uint64_t salt,
                          std::span<const TokenId> tokens) noexcept {
  BlockId& head = buckets_[Bucket(hash)];
  entries_[block] = {hash, salt, parent, head, 0, true};
  head = block;
  std::ranges::copy(tokens,
                    tokens_.begin() + static_cast<std::ptrdiff_t>(size_t{static_cast<uint32_t>(block)} * block_size_));
  if (parent != kUnmappedBlock) ++entries_[parent].children;
  ++published_;
}

void PrefixIndex::Remove(BlockId block) noexcept {
  Entry& entry = entries_[block];
  BlockId* link = &buckets_[Bucket(entry.hash)];
  while (*link != block) link = &entries_[*link].next;
  *link = entry.next;
  if (entry.parent != kUnmappedBlock) --entries_[entry.parent].children;
  entry = {};
  --published_;
}

void PrefixIndex::Validate() const {
  std::vector<uint32_t> children(entries_.size());
  std::vector<uint32_t> listed(entries_.size());
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    for (BlockId block = buckets_[bucket]; block != kUnmappedBlock; block = entries_[block].next) {
      CheckInvariant(entries_[block].published && Bucket(entries_[block].hash) == bucket, "P2",
                     "a bucket lists a block that does not belong there");
      CheckInvariant(++listed[block] == 1, "P2", "a block is listed twice");
    }
  }
  uint32_t published = 0;
  for (size_t block = 0; block < entries_.size(); ++block) {
    const Entry& entry = entries_[block];
    if (!entry.published) continue;
    ++published;
    CheckInvariant(listed[block] == 1, "P2", "a published block is not listed");
    if (entry.parent == kUnmappedBlock) continue;
    CheckInvariant(entries_[entry.parent].published, "P1", "a published block's parent is not published");
    ++children[entry.parent];
  }
  CheckInvariant(published == published_, "P2", "the count of published blocks is off");
  for (size_t block = 0; block < entries_.size(); ++block) {
    CheckInvariant(children[block] == entries_[block].children, "P3", "a block's count of children is off");
  }
}

}  // namespace oga
