// PagedCache: the block tables of all requests over one BlockPool, and the one reservation of the step at hand.
//
// A table lists the physical block of each logical block of a sequence. Between steps it changes only by Drop, Truncate
// and Share; within a step by Reserve, then Commit or Rollback:
//
//   Reserve   takes blocks from the pool for every row of a plan, all or nothing; committed tables stay as they are
//   Commit    checks that nothing moved since, then appends the blocks to the tables and advances their filled slots
//   Rollback  returns the blocks; also the destructor of an uncommitted reservation
//
// Owned by one Engine; owner thread. Commit and Rollback are noexcept and allocate nothing: room was made in Reserve.
//
// C1  every block of a table is committed; the sum of all tables' entries equals the sum of share counts
// C2  a table covers its filled slots: filled <= blocks * block size
// C3  a block appears at most once in a table
// C4  blocks are reserved only while a reservation is live
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cache/block_pool.h"
#include "step/execution_batch.h"
#include "step/plan.h"

namespace oga {

class PagedCache;
namespace testing {
struct PagedCacheAccess;
}

enum class CommitStatus { kCommitted, kInconsistent };

// The live reservation. Rolls back unless committed.
class Reservation {
 public:
  explicit Reservation(PagedCache* cache) : cache_(cache) {}
  Reservation(Reservation&& other) noexcept : cache_(std::exchange(other.cache_, nullptr)) {}
  Reservation& operator=(Reservation&&) = delete;
  ~Reservation() { Rollback(); }

  // Blocks that must be copied before the step may write them.
  std::span<const BlockCopy> copies() const noexcept;

  // The widest table of the plan's rows, in blocks.
  uint32_t table_columns() const noexcept;

  // Writes the table of row `row` of the plan, reserved blocks included, and fills the rest with kUnmappedBlock.
  void FillTable(size_t row, std::span<BlockId> out) const noexcept;

  // Publishes the blocks. kInconsistent, with nothing published, when anything moved since Reserve.
  CommitStatus Commit() noexcept;
  void Rollback() noexcept;

 private:
  PagedCache* cache_ = nullptr;
};

class PagedCache {
 public:
  PagedCache(uint32_t blocks, uint32_t block_size_slots);

  const BlockPool& pool() const noexcept { return pool_; }

  // Makes tables for slots below `slots`, or room for reservations of `rows` rows. May throw std::bad_alloc; changes
  // nothing visible then.
  void EnsureSlots(size_t slots);
  void EnsureRows(size_t rows);

  // All or nothing. The plan was made from this cache's state: a shortage is a ContractError.
  Reservation Reserve(std::span<const RowPlan> rows);

  uint32_t table_blocks(RequestSlot slot) const noexcept { return static_cast<uint32_t>(tables_[slot].blocks.size()); }
  uint32_t filled_slots(RequestSlot slot) const noexcept { return tables_[slot].filled_slots; }

  // Whether the block that the next token of this request goes into has another owner too.
  bool NextBlockShared(RequestSlot slot) const noexcept;

  // Gives up all blocks of a request, or all beyond the first `slots` token slots.
  void Drop(RequestSlot slot) noexcept;
  void Truncate(RequestSlot slot, uint32_t slots) noexcept;

  // Makes `target`, which owns nothing, share every filled block of `source`. May throw std::bad_alloc; changes nothing
  // then.
  void Share(RequestSlot source, RequestSlot target);

  void Validate() const;

 private:
  friend class Reservation;
  friend struct testing::PagedCacheAccess;

  struct Table {
    std::vector<BlockId> blocks;
    uint32_t filled_slots = 0;
    uint64_t generation = 0;
  };

  // What one row adds to its table.
  struct RowGrowth {
    RequestSlot slot = kNoSlot;
    uint32_t old_blocks = 0;
    uint32_t first_reserved = 0;  // index into reserved_
    uint32_t new_blocks = 0;
    uint32_t filled_after_slots = 0;
    uint64_t table_generation = 0;
    int32_t copied_block = -1;  // logical index of the shared block that is replaced by its copy
    BlockId copy = kUnmappedBlock;
  };

  void ReserveRow(const RowPlan& row);
  bool NothingMoved() const noexcept;
  void PublishRow(const RowGrowth& growth) noexcept;
  void EndReservation() noexcept;
  void ReturnReserved() noexcept;

  uint32_t block_size_;
  BlockPool pool_;
  std::vector<Table> tables_;  // by slot

  bool live_ = false;  // a reservation is live
  uint64_t pool_generation_ = 0;
  uint32_t table_columns_ = 0;
  std::vector<RowGrowth> growth_;
  std::vector<BlockId> reserved_;
  std::vector<BlockCopy> copies_;
};

}  // namespace oga
