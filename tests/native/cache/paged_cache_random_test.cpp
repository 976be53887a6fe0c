// Random moves on a PagedCache beside a model of what each request wrote: whatever is reserved, committed, rolled back,
// shared, truncated or dropped, every request reads back its own tokens through its table.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "native/cache/paged_cache_access.h"

namespace oga::testing {
namespace {

constexpr uint32_t kBlocks = 20;
constexpr uint32_t kBlockSize = 3;
constexpr RequestIndex kSlots = 6;

class CacheWorld {
 public:
  explicit CacheWorld(uint32_t seed) : random_(seed), cache_(kBlocks, kBlockSize), memory_(kBlocks * kBlockSize, -1) {
    cache_.EnsureTables(kSlots);
    sequences_.resize(kSlots);
  }

  void Move() {
    const RequestIndex index = Draw(kSlots);
    switch (Draw(8)) {
      case 0:
        cache_.Drop(index);
        sequences_[index].clear();
        break;
      case 1: {
        const uint32_t slots = Draw(cache_.filled_slots(index) + 2);
        cache_.Truncate(index, slots);
        sequences_[index].resize(cache_.filled_slots(index));
        break;
      }
      case 2: {
        const RequestIndex target = Draw(kSlots);
        if (target == index || cache_.table_blocks(target) > 0) break;
        cache_.Share(index, target);
        sequences_[target] = sequences_[index];
        break;
      }
      default: Step();
    }
    Check();
  }

 private:
  uint32_t Draw(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

  std::vector<RowPlan> DrawRows() {
    std::vector<RowPlan> rows;
    uint32_t free = cache_.pool().free_blocks();
    for (RequestIndex index = 0; index < kSlots; ++index) {
      if (Draw(3) == 0) continue;
      RowPlan row;
      row.index = index;
      row.past_tokens = cache_.filled_slots(index);
      row.scheduled_tokens = 1 + Draw(7);
      row.copies_tail = cache_.NextBlockProtected(index);
      const uint32_t covered = (row.past_tokens + row.scheduled_tokens + kBlockSize - 1) / kBlockSize;
      row.target_blocks = std::max(cache_.table_blocks(index), covered + Draw(2));
      const uint32_t wanted = row.target_blocks - cache_.table_blocks(index) + row.copies_tail;
      if (wanted > free) continue;
      free -= wanted;
      rows.push_back(row);
    }
    return rows;
  }

  // One step, as the engine and the model share it: copies first, then the writes; then a commit or a rollback.
  void Step() {
    const std::vector<RowPlan> rows = DrawRows();
    Reservation reservation = cache_.Reserve(PlanOf(rows));
    for (const BlockCopy& copy : reservation.copies()) {
      std::copy_n(memory_.begin() + copy.source * kBlockSize, kBlockSize, memory_.begin() + copy.target * kBlockSize);
    }
    std::vector<std::vector<int>> written(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      std::vector<BlockId> table(reservation.table_columns());
      reservation.FillTable(i, table);
      for (uint32_t t = 0; t < rows[i].scheduled_tokens; ++t) {
        const uint32_t position = rows[i].past_tokens + t;
        written[i].push_back(next_token_);
        memory_[table[position / kBlockSize] * kBlockSize + position % kBlockSize] = next_token_++;
      }
    }
    if (Draw(3) == 0) return reservation.Rollback();
    ASSERT_EQ(reservation.Commit(), CommitStatus::kCommitted);
    for (size_t i = 0; i < rows.size(); ++i) {
      std::vector<int>& sequence = sequences_[rows[i].index];
      sequence.insert(sequence.end(), written[i].begin(), written[i].end());
    }
  }

  void Check() {
    ASSERT_NO_THROW(cache_.Validate());
    for (RequestIndex index = 0; index < kSlots; ++index) {
      const std::vector<BlockId>& table = PagedCacheAccess::Table(cache_, index);
      ASSERT_EQ(cache_.filled_slots(index), sequences_[index].size());
      for (uint32_t position = 0; position < sequences_[index].size(); ++position) {
        const BlockId block = table[position / kBlockSize];
        ASSERT_EQ(memory_[block * kBlockSize + position % kBlockSize], sequences_[index][position]);
      }
    }
  }

  std::mt19937 random_;
  PagedCache cache_;
  std::vector<int> memory_;                  // the token in each slot of the pool
  std::vector<std::vector<int>> sequences_;  // what each request wrote and still holds
  int next_token_ = 0;
};

TEST(PagedCache, ReadsBackWhatEachRequestWroteWhateverHappensAround) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    CacheWorld world(seed);
    for (int move = 0; move < 500 && !::testing::Test::HasFatalFailure(); ++move) world.Move();
    ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace oga::testing
