#include "cache/paged_cache.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace oga {

namespace {
uint32_t CeilDiv(uint32_t value, uint32_t divisor) { return (value + divisor - 1) / divisor; }
}  // namespace

PagedCache::PagedCache(uint32_t blocks, uint32_t block_size_slots) : block_size_(block_size_slots), pool_(blocks) {
  reserved_.reserve(blocks);
}

void PagedCache::EnsureSlots(size_t slots) {
  if (slots > tables_.size()) tables_.resize(slots);
}

void PagedCache::EnsureRows(size_t rows) {
  growth_.reserve(rows);
  copies_.reserve(rows);
}

Reservation PagedCache::Reserve(std::span<const RowPlan> rows) {
  OGA_CHECK(!live_);
  growth_.clear();
  reserved_.clear();
  copies_.clear();
  table_columns_ = 0;
  live_ = true;
  // From here on the destructor undoes whatever was taken when a row fails.
  Reservation reservation(this);
  for (const RowPlan& row : rows) ReserveRow(row);
  pool_generation_ = pool_.generation();
  return reservation;
}

void PagedCache::ReserveRow(const RowPlan& row) {
  Table& table = tables_[row.slot];
  RowGrowth growth;
  growth.slot = row.slot;
  growth.old_blocks = static_cast<uint32_t>(table.blocks.size());
  growth.first_reserved = static_cast<uint32_t>(reserved_.size());
  growth.new_blocks = row.target_blocks - growth.old_blocks;
  growth.filled_after_slots = row.past_tokens + row.scheduled_tokens;
  growth.table_generation = table.generation;
  OGA_CHECK(row.target_blocks >= growth.old_blocks && table.filled_slots == row.past_tokens);
  OGA_CHECK(growth.filled_after_slots <= row.target_blocks * block_size_);
  OGA_CHECK(row.copies_tail == NextBlockShared(row.slot));
  OGA_CHECK(pool_.free_blocks() >= growth.new_blocks + (row.copies_tail ? 1 : 0));

  if (row.target_blocks > table.blocks.capacity()) {
    table.blocks.reserve(std::max<size_t>(row.target_blocks, 2 * table.blocks.capacity()));
  }
  growth_.reserve(growth_.size() + 1);
  copies_.reserve(copies_.size() + 1);
  for (uint32_t i = 0; i < growth.new_blocks; ++i) reserved_.push_back(pool_.Reserve());
  if (row.copies_tail) {
    growth.copied_block = static_cast<int32_t>(row.past_tokens / block_size_);
    growth.copy = pool_.Reserve();
    copies_.push_back({table.blocks[growth.copied_block], growth.copy});
  }
  growth_.push_back(growth);
  table_columns_ = std::max(table_columns_, row.target_blocks);
}

bool PagedCache::NothingMoved() const noexcept {
  if (pool_.generation() != pool_generation_) return false;
  return std::all_of(growth_.begin(), growth_.end(), [this](const RowGrowth& growth) {
    const Table& table = tables_[growth.slot];
    return table.generation == growth.table_generation && table.blocks.size() == growth.old_blocks &&
           table.blocks.capacity() >= growth.old_blocks + growth.new_blocks;
  });
}

void PagedCache::PublishRow(const RowGrowth& growth) noexcept {
  Table& table = tables_[growth.slot];
  for (uint32_t i = 0; i < growth.new_blocks; ++i) {
    const BlockId block = reserved_[growth.first_reserved + i];
    pool_.Commit(block);
    table.blocks.push_back(block);
  }
  if (growth.copied_block >= 0) {
    pool_.Release(table.blocks[growth.copied_block]);
    pool_.Commit(growth.copy);
    table.blocks[growth.copied_block] = growth.copy;
  }
  table.filled_slots = growth.filled_after_slots;
  ++table.generation;
}

void PagedCache::EndReservation() noexcept {
  growth_.clear();
  reserved_.clear();
  copies_.clear();
  live_ = false;
}

void PagedCache::ReturnReserved() noexcept {
  // In reverse, so that the free list is as it was.
  for (auto growth = growth_.rbegin(); growth != growth_.rend(); ++growth) {
    if (growth->copied_block >= 0) pool_.Return(growth->copy);
    for (uint32_t i = growth->new_blocks; i > 0; --i) pool_.Return(reserved_[growth->first_reserved + i - 1]);
  }
}

bool PagedCache::NextBlockShared(RequestSlot slot) const noexcept {
  const Table& table = tables_[slot];
  const uint32_t next = table.filled_slots / block_size_;
  return next < table.blocks.size() && pool_.share_count(table.blocks[next]) > 1;
}

void PagedCache::Drop(RequestSlot slot) noexcept { Truncate(slot, 0); }

void PagedCache::Truncate(RequestSlot slot, uint32_t slots) noexcept {
  Table& table = tables_[slot];
  const uint32_t keep = CeilDiv(slots, block_size_);
  while (table.blocks.size() > keep) {
    pool_.Release(table.blocks.back());
    table.blocks.pop_back();
  }
  table.filled_slots = std::min(table.filled_slots, slots);
  ++table.generation;
}

void PagedCache::Share(RequestSlot source, RequestSlot target) {
  const Table& from = tables_[source];
  Table& to = tables_[target];
  OGA_CHECK(to.blocks.empty() && source != target);
  const uint32_t blocks = CeilDiv(from.filled_slots, block_size_);
  to.blocks.reserve(blocks);
  for (uint32_t i = 0; i < blocks; ++i) {
    pool_.Share(from.blocks[i]);
    to.blocks.push_back(from.blocks[i]);
  }
  to.filled_slots = from.filled_slots;
  ++to.generation;
}

void PagedCache::Validate() const {
  pool_.Validate();
  std::vector<uint32_t> owners(pool_.total_blocks());
  for (const Table& table : tables_) {
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
  }
  for (uint32_t block = 0; block < pool_.total_blocks(); ++block) {
    CheckInvariant(owners[block] == pool_.share_count(static_cast<BlockId>(block)), "C1",
                   "a block's owners and its share count differ");
  }
  CheckInvariant(live_ || pool_.reserved_blocks() == 0, "C4", "blocks are reserved without a reservation");
}

std::span<const BlockCopy> Reservation::copies() const noexcept { return cache_->copies_; }

uint32_t Reservation::table_columns() const noexcept { return cache_->table_columns_; }

void Reservation::FillTable(size_t row, std::span<BlockId> out) const noexcept {
  const PagedCache::RowGrowth& growth = cache_->growth_[row];
  const std::vector<BlockId>& committed = cache_->tables_[growth.slot].blocks;
  auto end = std::copy(committed.begin(), committed.end(), out.begin());
  const auto reserved = cache_->reserved_.begin() + growth.first_reserved;
  end = std::copy(reserved, reserved + growth.new_blocks, end);
  std::fill(end, out.end(), kUnmappedBlock);
  if (growth.copied_block >= 0) out[growth.copied_block] = growth.copy;
}

CommitStatus Reservation::Commit() noexcept {
  if (cache_ == nullptr || !cache_->NothingMoved()) return CommitStatus::kInconsistent;
  for (const PagedCache::RowGrowth& growth : cache_->growth_) cache_->PublishRow(growth);
  std::exchange(cache_, nullptr)->EndReservation();
  return CommitStatus::kCommitted;
}

void Reservation::Rollback() noexcept {
  if (cache_ == nullptr) return;
  cache_->ReturnReserved();
  std::exchange(cache_, nullptr)->EndReservation();
}

}  // namespace oga
