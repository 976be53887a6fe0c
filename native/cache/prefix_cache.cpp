// The prefix cache part of PagedCache: block hashes, publication and lookup.
#include <algorithm>

#include "cache/paged_cache.h"

namespace oga {

void PagedCache::ResetSequence(RequestIndex index, uint64_t salt) noexcept {
  tables_[index].chain.clear();
  tables_[index].salt = salt;
}

void PagedCache::ReserveHashes(RequestIndex index, uint64_t tokens) {
  if (!prefix_.enabled) return;
  std::vector<BlockHash>& chain = tables_[index].chain;
  const uint64_t blocks = tokens / block_size_;
  if (blocks > chain.capacity()) chain.reserve(std::max<uint64_t>(blocks, 2 * chain.capacity()));
}

void PagedCache::UpdateHashes(RequestIndex index, std::span<const TokenId> sequence) noexcept {
  if (!prefix_.enabled) return;
  BlockTable& table = tables_[index];
  const size_t full = sequence.size() / block_size_;
  if (table.chain.size() > full) table.chain.resize(full);
  while (table.chain.size() < full) {
    const BlockHash parent = table.chain.empty() ? BlockHash{} : table.chain.back();
    const auto tokens = sequence.subspan(table.chain.size() * block_size_, block_size_);
    table.chain.push_back(prefix_.hash(prefix_.key, parent, table.salt, tokens));
  }
}

void PagedCache::Publish(RequestIndex index, std::span<const TokenId> sequence) noexcept {
  if (!prefix_.enabled) return;
  BlockTable& table = tables_[index];
  const uint32_t full = std::min<uint32_t>(table.filled_slots / block_size_, static_cast<uint32_t>(table.chain.size()));
  for (uint32_t i = table.published_blocks; i < full; ++i) {
    const BlockId parent = i == 0 ? kUnmappedBlock : table.blocks[i - 1];
    const auto tokens = sequence.subspan(size_t{i} * block_size_, block_size_);
    const BlockId known = index_.Find(table.chain[i], parent, table.salt, tokens);
    if (known == kUnmappedBlock) {
      index_.Publish(table.blocks[i], table.chain[i], parent, table.salt, tokens);
    } else {
      // Somebody else computed the same block meanwhile: keep one of the two.
      pool_.Share(known);
      Release(table.blocks[i]);
      table.blocks[i] = known;
    }
    table.published_blocks = i + 1;
  }
}

PrefixHit PagedCache::Find(RequestIndex index, std::span<const TokenId> sequence, std::vector<BlockId>& found) const {
  PrefixHit hit;
  if (!prefix_.enabled) return hit;
  const BlockTable& table = tables_[index];
  // The last token is always computed: its logits are what the request waits for.
  const size_t most = std::min(table.chain.size(), (sequence.size() - 1) / block_size_);
  BlockId parent = kUnmappedBlock;
  for (size_t i = 0; i < most; ++i) {
    const BlockId block =
        index_.Find(table.chain[i], parent, table.salt, sequence.subspan(i * block_size_, block_size_));
    if (block == kUnmappedBlock) break;
    found.push_back(block);
    ++hit.blocks;
    hit.retired_blocks += pool_.IsRetired(block);
    parent = block;
  }
  return hit;
}

// Compares hashes only: a false yes costs the follower a wait, never a wrong block.
bool PagedCache::WillPublish(RequestIndex leader, RequestIndex follower, uint32_t blocks) const noexcept {
  const BlockTable& first = tables_[leader];
  const BlockTable& second = tables_[follower];
  return blocks < first.chain.size() && blocks < second.chain.size() && first.salt == second.salt &&
         first.chain[blocks] == second.chain[blocks];
}

void PagedCache::DropRetired() noexcept {
  while (pool_.retired_blocks() > 0) {
    const BlockId block = pool_.OldestRetired();
    index_.Remove(block);
    pool_.Evict(block);
  }
}

}  // namespace oga
