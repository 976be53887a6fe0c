#include "cache/paged_cache.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace oga {

namespace {
uint32_t CeilDiv(uint32_t value, uint32_t divisor) { return (value + divisor - 1) / divisor; }
}  // namespace

PagedCache::PagedCache(uint32_t blocks, uint32_t block_size_slots, const PrefixCacheOptions& prefix)
    : block_size_(block_size_slots),
      pool_(blocks),
      prefix_(prefix),
      index_(prefix.enabled ? blocks : 0, block_size_slots) {
  reserved_.reserve(blocks);
}

void PagedCache::EnsureTables(size_t count) {
  if (count > tables_.size()) tables_.resize(count);
}

void PagedCache::EnsureRows(size_t rows) {
  growth_.reserve(rows);
  copies_.reserve(rows);
}

Reservation PagedCache::Reserve(const StepPlan& plan) {
  OGA_CHECK(!reserving_);
  growth_.clear();
  hits_.clear();
  reserved_.clear();
  copies_.clear();
  table_columns_ = 0;
  growth_.reserve(plan.rows.size());
  copies_.reserve(plan.rows.size());
  hits_.reserve(plan.hits.size());
  reserving_ = true;
  // From here on the destructor undoes whatever was taken when a row fails.
  Reservation reservation(this);
  // Before anything is taken: taking may evict retired blocks, and a row's own beginning may be among them.
  ShareHits(plan);
  for (size_t i = 0; i < plan.rows.size(); ++i) ReserveRow(plan.rows[i], growth_[i]);
  pool_generation_ = pool_.generation();
  return reservation;
}

void PagedCache::ShareHits(const StepPlan& plan) {
  for (const RowPlan& row : plan.rows) {
    RowGrowth growth;
    growth.index = row.index;
    growth.first_hit = static_cast<uint32_t>(hits_.size());
    OGA_CHECK(row.hit_blocks == 0 || tables_[row.index].blocks.empty());
    for (uint32_t i = 0; i < row.hit_blocks; ++i) {
      const BlockId block = plan.hits[row.first_hit + i];
      OGA_CHECK(index_.Published(block));
      pool_.Share(block);
      hits_.push_back(block);
      ++growth.hit_blocks;
    }
    growth_.push_back(growth);
  }
}

void PagedCache::ReserveRow(const RowPlan& row, RowGrowth& growth) {
  BlockTable& table = tables_[row.index];
  growth.old_blocks = static_cast<uint32_t>(table.blocks.size());
  growth.first_reserved = static_cast<uint32_t>(reserved_.size());
  growth.filled_after_slots = row.past_tokens + row.scheduled_tokens;
  growth.table_generation = table.generation;
  const uint32_t held = growth.old_blocks + growth.hit_blocks;
  OGA_CHECK(row.target_blocks >= held);
  OGA_CHECK(table.filled_slots + growth.hit_blocks * block_size_ == row.past_tokens);
  OGA_CHECK(growth.filled_after_slots <= uint64_t{row.target_blocks} * block_size_);
  OGA_CHECK(row.copies_tail == NextBlockProtected(row.index));
  const uint32_t new_blocks = row.target_blocks - held;
  OGA_CHECK(pool_.available_blocks() >= new_blocks + (row.copies_tail ? 1 : 0));

  if (row.target_blocks > table.blocks.capacity()) {
    table.blocks.reserve(std::max<size_t>(row.target_blocks, 2 * table.blocks.capacity()));
  }
  for (; growth.new_blocks < new_blocks; ++growth.new_blocks) reserved_.push_back(Take());
  if (row.copies_tail) {
    growth.copied_block = static_cast<int32_t>(row.past_tokens / block_size_);
    growth.copy = Take();
    copies_.push_back({table.blocks[growth.copied_block], growth.copy});
  }
  table_columns_ = std::max(table_columns_, row.target_blocks);
}

BlockId PagedCache::Take() noexcept {
  if (pool_.free_blocks() == 0) {
    const BlockId oldest = pool_.OldestRetired();
    index_.Remove(oldest);
    pool_.Evict(oldest);
    ++counters_.evictions;
  }
  return pool_.Reserve();
}

void PagedCache::Release(BlockId block) noexcept { pool_.Release(block, index_.Published(block)); }

bool PagedCache::NothingMoved() const noexcept {
  if (pool_.generation() != pool_generation_) return false;
  return std::all_of(growth_.begin(), growth_.end(), [this](const RowGrowth& growth) {
    const BlockTable& table = tables_[growth.index];
    const size_t after = size_t{growth.old_blocks} + growth.hit_blocks + growth.new_blocks;
    return table.generation == growth.table_generation && table.blocks.size() == growth.old_blocks &&
           table.blocks.capacity() >= after;
  });
}

void PagedCache::CommitRow(const RowGrowth& growth) noexcept {
  BlockTable& table = tables_[growth.index];
  for (uint32_t i = 0; i < growth.hit_blocks; ++i) table.blocks.push_back(hits_[growth.first_hit + i]);
  if (prefix_.enabled && growth.old_blocks == 0) {
    ++counters_.queries;
    counters_.hits += growth.hit_blocks > 0;
    counters_.tokens_saved += uint64_t{growth.hit_blocks} * block_size_;
    table.published_blocks = growth.hit_blocks;
  }
  for (uint32_t i = 0; i < growth.new_blocks; ++i) {
    const BlockId block = reserved_[growth.first_reserved + i];
    pool_.Commit(block);
    table.blocks.push_back(block);
  }
  if (growth.copied_block >= 0) {
    Release(table.blocks[growth.copied_block]);
    pool_.Commit(growth.copy);
    table.blocks[growth.copied_block] = growth.copy;
  }
  table.filled_slots = growth.filled_after_slots;
  ++table.generation;
}

void PagedCache::EndReservation() noexcept {
  growth_.clear();
  hits_.clear();
  reserved_.clear();
  copies_.clear();
  reserving_ = false;
}

void PagedCache::ReturnReserved() noexcept {
  // In reverse: the free list is as it was, and a row's blocks retire from the end.
  for (auto growth = growth_.rbegin(); growth != growth_.rend(); ++growth) {
    if (growth->copy != kUnmappedBlock) pool_.Return(growth->copy);
    for (uint32_t i = growth->new_blocks; i > 0; --i) pool_.Return(reserved_[growth->first_reserved + i - 1]);
  }
  for (auto hit = hits_.rbegin(); hit != hits_.rend(); ++hit) Release(*hit);
}

bool PagedCache::NextBlockProtected(RequestIndex index) const noexcept {
  const BlockTable& table = tables_[index];
  const uint32_t next = table.filled_slots / block_size_;
  if (next >= table.blocks.size()) return false;
  return pool_.share_count(table.blocks[next]) > 1 || index_.Published(table.blocks[next]);
}

void PagedCache::Drop(RequestIndex index) noexcept { Truncate(index, 0); }

void PagedCache::Truncate(RequestIndex index, uint32_t slots) noexcept {
  BlockTable& table = tables_[index];
  const uint32_t keep = CeilDiv(slots, block_size_);
  while (table.blocks.size() > keep) {
    Release(table.blocks.back());
    table.blocks.pop_back();
  }
  table.filled_slots = std::min(table.filled_slots, slots);
  table.published_blocks = std::min(table.published_blocks, slots / block_size_);
  ++table.generation;
}

void PagedCache::Share(RequestIndex source, RequestIndex target) {
  const BlockTable& from = tables_[source];
  BlockTable& to = tables_[target];
  OGA_CHECK(to.blocks.empty() && source != target);
  const uint32_t blocks = CeilDiv(from.filled_slots, block_size_);
  to.blocks.reserve(blocks);
  for (uint32_t i = 0; i < blocks; ++i) {
    pool_.Share(from.blocks[i]);
    to.blocks.push_back(from.blocks[i]);
  }
  to.filled_slots = from.filled_slots;
  to.published_blocks = from.published_blocks;
  ++to.generation;
}

void PagedCache::Validate() const {
  pool_.Validate();
  index_.Validate();
  std::vector<uint32_t> owners(pool_.total_blocks());
  for (const BlockTable& table : tables_) {
    CheckInvariant(uint64_t{table.filled_slots} <= uint64_t{table.blocks.size()} * block_size_, "C2",
                   "a table does not cover its filled slots");
    for (const BlockId block : table.blocks) {
      CheckInvariant(block >= 0 && static_cast<uint32_t>(block) < pool_.total_blocks(), "C1", "a table holds no block");
      ++owners[block];
    }
    std::vector<BlockId> sorted = table.blocks;
    std::sort(sorted.begin(), sorted.end());
    CheckInvariant(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(), "C3",
                   "a block appears twice in a table");
    ValidatePublished(table);
  }
  for (const BlockId block : hits_) ++owners[block];
  uint32_t published = 0;
  for (uint32_t i = 0; i < pool_.total_blocks(); ++i) {
    const BlockId block = static_cast<BlockId>(i);
    CheckInvariant(owners[i] == pool_.share_count(block), "C1", "a block's owners and its share count differ");
    const bool kept = pool_.IsRetired(block);
    CheckInvariant(!kept || index_.Published(block), "C5", "a retired block is not published");
    published += index_.Published(block);
    CheckInvariant(!index_.Published(block) || kept || owners[i] > 0, "C5", "a published block is free");
  }
  CheckInvariant(published == index_.published_blocks(), "C5", "the index counts other blocks");
  CheckInvariant(reserving_ || pool_.reserved_blocks() == 0, "C4", "blocks are reserved without a reservation");
}

void PagedCache::ValidatePublished(const BlockTable& table) const {
  CheckInvariant(uint64_t{table.published_blocks} * block_size_ <= table.filled_slots, "C5",
                 "a block that is not full is published");
  for (uint32_t i = 0; i < table.published_blocks; ++i) {
    CheckInvariant(index_.Published(table.blocks[i]), "C5", "a leading block is not published");
  }
}

std::span<const BlockCopy> Reservation::copies() const noexcept { return cache_->copies_; }

uint32_t Reservation::table_columns() const noexcept { return cache_->table_columns_; }

void Reservation::FillTable(size_t row, std::span<BlockId> out) const noexcept {
  const PagedCache::RowGrowth& growth = cache_->growth_[row];
  const std::vector<BlockId>& committed = cache_->tables_[growth.index].blocks;
  auto end = std::copy(committed.begin(), committed.end(), out.begin());
  const auto hits = cache_->hits_.begin() + growth.first_hit;
  end = std::copy(hits, hits + growth.hit_blocks, end);
  const auto reserved = cache_->reserved_.begin() + growth.first_reserved;
  end = std::copy(reserved, reserved + growth.new_blocks, end);
  std::fill(end, out.end(), kUnmappedBlock);
  if (growth.copied_block >= 0) out[growth.copied_block] = growth.copy;
}

CommitStatus Reservation::Commit() noexcept {
  if (cache_ == nullptr || !cache_->NothingMoved()) return CommitStatus::kInconsistent;
  for (const PagedCache::RowGrowth& growth : cache_->growth_) cache_->CommitRow(growth);
  std::exchange(cache_, nullptr)->EndReservation();
  return CommitStatus::kCommitted;
}

void Reservation::Rollback() noexcept {
  if (cache_ == nullptr) return;
  cache_->ReturnReserved();
  std::exchange(cache_, nullptr)->EndReservation();
}

}  // namespace oga
