// PagedCache: the block tables of all requests over one BlockPool, the prefix cache, and the one reservation of the step
// at hand.
//
// A table lists the physical block of each logical block of a sequence. Between steps it changes only by Drop, Truncate
// and Share; within a step by Reserve, then Commit or Rollback:
//
//   Reserve   shares the prefix blocks that the plan found and takes new blocks for every row, all or nothing; committed
//             tables stay as they are. Taking may evict retired blocks, which no output shows.
//   Commit    checks that nothing moved since, then appends the blocks to the tables and advances their filled slots
//   Rollback  returns the blocks; also the destructor of an uncommitted reservation
//   Publish   after the commit: blocks that became full are found by later requests with the same beginning
//
// A published block is never written: whoever would, gets a copy of it first, as with a shared one.
//
// Owned by one Engine; owner thread. Commit, Rollback and Publish are noexcept and allocate nothing: room was made
// before.
//
// C1  every block of a table is committed; the sum of all tables' entries equals the sum of share counts
// C2  a table covers its filled slots: filled <= blocks * block size
// C3  a block appears at most once in a table
// C4  blocks are reserved only while a reservation is outstanding
// C5  a table's leading published blocks are full and published, each the parent of the next; retired blocks are
//     published
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/block_hash.h"
#include "cache/block_pool.h"
#include "cache/block_table.h"
#include "cache/prefix_index.h"
#include "cache/reservation.h"
#include "step/execution_batch.h"
#include "step/plan.h"
#include "step/prefix_view.h"

namespace oga {

namespace testing {
struct PagedCacheAccess;
}

struct PrefixCacheOptions {
  bool enabled = false;
  HashKey key;
  BlockHashFunction hash = SipHashBlock;
};

struct PrefixCounters {
  uint64_t queries = 0;       // admissions that looked for their beginning
  uint64_t hits = 0;          // of them, ones that found some
  uint64_t tokens_saved = 0;  // not computed again
  uint64_t evictions = 0;     // retired blocks that gave way
};

class PagedCache {
 public:
  PagedCache(uint32_t blocks, uint32_t block_size_slots, const PrefixCacheOptions& prefix = {});

  const BlockPool& pool() const noexcept { return pool_; }
  bool prefix_caching() const noexcept { return prefix_.enabled; }
  const PrefixCounters& prefix_counters() const noexcept { return counters_; }

  // Makes tables for the indices below `count`, or room for reservations of `rows` rows. May throw std::bad_alloc; changes
  // nothing visible then.
  void EnsureTables(size_t count);
  void EnsureRows(size_t rows);

  // All or nothing. The plan was made from this cache's state: a shortage is a ContractError.
  Reservation Reserve(const StepPlan& plan);

  uint32_t table_blocks(RequestIndex index) const noexcept {
    return static_cast<uint32_t>(tables_[index].blocks.size());
  }
  uint32_t filled_slots(RequestIndex index) const noexcept { return tables_[index].filled_slots; }

  // Whether the block that the next token of this request goes into must be copied before it is written.
  bool NextBlockProtected(RequestIndex index) const noexcept;

  // Gives up all blocks of a request, or all beyond the first `slots` token slots.
  void Drop(RequestIndex index) noexcept;
  void Truncate(RequestIndex index, uint32_t slots) noexcept;

  // Makes `target`, which owns nothing, share every filled block of `source`. May throw std::bad_alloc; changes nothing
  // then.
  void Share(RequestIndex source, RequestIndex target);

  // --- The prefix cache; without effect when it is off ---------------------------------------------------------------
  // Begins a sequence: no tokens, this salt.
  void ResetSequence(RequestIndex index, uint64_t salt) noexcept;
  uint64_t salt(RequestIndex index) const noexcept { return tables_[index].salt; }
  // Makes room for the block hashes of a sequence of `tokens`. May throw std::bad_alloc.
  void ReserveHashes(RequestIndex index, uint64_t tokens);
  // Computes the hashes of the full blocks of `sequence` that are not known yet, or forgets those beyond it. Room was
  // reserved.
  void UpdateHashes(RequestIndex index, std::span<const TokenId> sequence) noexcept;
  // Makes the full blocks of a committed table findable. `sequence` is the request's, whose hashes are up to date.
  void Publish(RequestIndex index, std::span<const TokenId> sequence) noexcept;
  // See PrefixView. `sequence` is the request's.
  PrefixHit Find(RequestIndex index, std::span<const TokenId> sequence, std::vector<BlockId>& found) const;
  bool WillPublish(RequestIndex leader, RequestIndex follower, uint32_t blocks) const noexcept;
  // Forgets every block that no request owns.
  void DropRetired() noexcept;

  void Validate() const;

 private:
  friend class Reservation;
  friend struct testing::PagedCacheAccess;

  // What one row adds to its table.
  struct RowGrowth {
    RequestIndex index = kNoRequest;
    uint32_t old_blocks = 0;
    uint32_t first_hit = 0;  // index into hits_
    uint32_t hit_blocks = 0;
    uint32_t first_reserved = 0;  // index into reserved_
    uint32_t new_blocks = 0;
    uint32_t filled_after_slots = 0;
    uint64_t table_generation = 0;
    int32_t copied_block = -1;  // logical index of the protected block that is replaced by its copy
    BlockId copy = kUnmappedBlock;
  };

  void ShareHits(const StepPlan& plan);
  void ReserveRow(const RowPlan& row, RowGrowth& growth);
  BlockId Take() noexcept;
  void Release(BlockId block) noexcept;
  bool NothingMoved() const noexcept;
  void CommitRow(const RowGrowth& growth) noexcept;
  void EndReservation() noexcept;
  void ReturnReserved() noexcept;
  void ValidatePublished(const BlockTable& table) const;

  uint32_t block_size_;
  BlockPool pool_;
  PrefixCacheOptions prefix_;
  PrefixIndex index_;
  PrefixCounters counters_;
  std::vector<BlockTable> tables_;  // by index

  bool reserving_ = false;  // there is a reservation that has not ended
  uint64_t pool_generation_ = 0;
  uint32_t table_columns_ = 0;
  std::vector<RowGrowth> growth_;
  std::vector<BlockId> hits_;  // shared for rows of the reservation
  std::vector<BlockId> reserved_;
  std::vector<BlockCopy> copies_;
};

}  // namespace oga
