#include "cache/paged_cache.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "native/cache/paged_cache_access.h"
#include "support/invariants.h"

namespace oga::testing {
namespace {

using Blocks = std::vector<BlockId>;

constexpr uint32_t kBlocks = 8;
constexpr uint32_t kBlockSize = 4;

class PagedCacheTest : public ::testing::Test {
 protected:
  PagedCacheTest() : cache(kBlocks, kBlockSize) { cache.EnsureTables(4); }
  ~PagedCacheTest() override { EXPECT_NO_THROW(cache.Validate()); }

  // A row that computes `tokens` more tokens of a request.
  RowPlan Row(RequestIndex index, uint32_t tokens) const {
    RowPlan row;
    row.index = index;
    row.past_tokens = cache.filled_slots(index);
    row.scheduled_tokens = tokens;
    row.target_blocks = std::max(cache.table_blocks(index), (row.past_tokens + tokens + kBlockSize - 1) / kBlockSize);
    row.copies_tail = cache.NextBlockProtected(index);
    return row;
  }

  void Grow(RequestIndex index, uint32_t tokens) {
    const std::vector<RowPlan> rows{Row(index, tokens)};
    ASSERT_EQ(cache.Reserve(PlanOf(rows)).Commit(), CommitStatus::kCommitted);
  }

  Blocks Table(RequestIndex index) const { return PagedCacheAccess::Table(cache, index); }

  static Blocks TableOf(const Reservation& reservation, size_t row) {
    Blocks table(reservation.table_columns(), 77);
    reservation.FillTable(row, table);
    return table;
  }

  PagedCache cache;
};

TEST_F(PagedCacheTest, ACommitPublishesTheBlocksOfEveryRow) {
  const std::vector<RowPlan> rows{Row(0, 5), Row(2, 3)};
  Reservation reservation = cache.Reserve(PlanOf(rows));
  EXPECT_EQ(cache.table_blocks(0), 0u) << "nothing is visible before the commit";
  EXPECT_EQ(cache.pool().reserved_blocks(), 3u);
  const Blocks first = TableOf(reservation, 0);
  const Blocks second = TableOf(reservation, 1);
  EXPECT_EQ(reservation.Commit(), CommitStatus::kCommitted);
  EXPECT_EQ(Table(0), first);
  EXPECT_EQ(Table(2), Blocks(second.begin(), second.begin() + 1));
  EXPECT_EQ(second[1], kUnmappedBlock);
  EXPECT_EQ(cache.filled_slots(0), 5u);
  EXPECT_EQ(cache.filled_slots(2), 3u);
  EXPECT_EQ(cache.pool().free_blocks(), kBlocks - 3);
}

TEST_F(PagedCacheTest, ARollbackLeavesEverythingAsItWas) {
  Grow(0, 6);
  const Blocks before = Table(0);
  const std::vector<RowPlan> rows{Row(0, 7), Row(1, 9)};
  Blocks reserved;
  {
    const Reservation reservation = cache.Reserve(PlanOf(rows));
    reserved = TableOf(reservation, 1);
  }
  EXPECT_EQ(Table(0), before);
  EXPECT_EQ(cache.filled_slots(0), 6u);
  EXPECT_EQ(cache.pool().free_blocks(), kBlocks - 2);
  EXPECT_EQ(cache.pool().reserved_blocks(), 0u);
  const Reservation again = cache.Reserve(PlanOf(rows));
  EXPECT_EQ(TableOf(again, 1), reserved) << "the free list has its old order";
}

TEST_F(PagedCacheTest, ATableListsCommittedThenReservedBlocks) {
  Grow(0, 8);
  Grow(1, 4);
  const std::vector<RowPlan> rows{Row(0, 5), Row(1, 1)};
  const Reservation reservation = cache.Reserve(PlanOf(rows));
  EXPECT_EQ(reservation.table_columns(), 4u) << "the widest row decides";
  const Blocks wide = TableOf(reservation, 0);
  EXPECT_EQ(Blocks(wide.begin(), wide.begin() + 2), Table(0));
  const Blocks narrow = TableOf(reservation, 1);
  EXPECT_EQ(narrow[0], Table(1)[0]);
  EXPECT_NE(narrow[1], kUnmappedBlock);
  EXPECT_EQ(Blocks(narrow.begin() + 2, narrow.end()), Blocks(2, kUnmappedBlock));
}

TEST_F(PagedCacheTest, APromptKeepsTheBlocksSetAsideForItsLaterChunks) {
  RowPlan row = Row(0, 4);
  row.target_blocks = 5;
  EXPECT_EQ(cache.Reserve(PlanOf(std::vector{row})).Commit(), CommitStatus::kCommitted);
  EXPECT_EQ(cache.table_blocks(0), 5u);
  EXPECT_EQ(cache.filled_slots(0), 4u);
  const std::vector<RowPlan> next{Row(0, 16)};
  Reservation reservation = cache.Reserve(PlanOf(next));
  EXPECT_EQ(cache.pool().reserved_blocks(), 0u);
  EXPECT_EQ(reservation.Commit(), CommitStatus::kCommitted);
  cache.Truncate(0, cache.filled_slots(0));
  EXPECT_EQ(cache.table_blocks(0), 5u);
}

TEST_F(PagedCacheTest, AShortageIsRefusedAndTakesNothing) {
  Grow(0, 20);
  const std::vector<RowPlan> rows{Row(1, 8), Row(2, 8)};
  EXPECT_THROW(cache.Reserve(PlanOf(rows)), ContractError);
  EXPECT_EQ(cache.pool().free_blocks(), 3u);
  EXPECT_EQ(cache.pool().reserved_blocks(), 0u);
  Grow(1, 8);
}

TEST_F(PagedCacheTest, APlanOfAnotherStateIsRefused) {
  Grow(0, 6);
  RowPlan other_past = Row(0, 1);
  other_past.past_tokens = 5;
  RowPlan other_tail = Row(0, 1);
  other_tail.copies_tail = true;
  RowPlan too_short = Row(0, 3);
  too_short.target_blocks = 2;
  RowPlan shrinks = Row(0, 1);
  shrinks.target_blocks = 1;
  for (const RowPlan& row : {other_past, other_tail, too_short, shrinks}) {
    EXPECT_THROW(cache.Reserve(PlanOf(std::vector{row})), ContractError);
    EXPECT_EQ(cache.pool().free_blocks(), kBlocks - 2);
  }
}

TEST_F(PagedCacheTest, OneReservationIsLiveAtATime) {
  const std::vector<RowPlan> rows{Row(0, 5)};
  Reservation reservation = cache.Reserve(PlanOf(rows));
  EXPECT_THROW(cache.Reserve(PlanOf(rows)), ContractError);
  EXPECT_EQ(reservation.Commit(), CommitStatus::kCommitted) << "the refused one did not touch it";
}

TEST_F(PagedCacheTest, ACommitRefusesWhenAnythingMoved) {
  Grow(0, 6);
  Grow(1, 6);
  const std::vector<RowPlan> rows{Row(0, 7)};
  const std::vector<void (*)(PagedCache&)> moves{
      [](PagedCache& cache) { cache.Drop(1); },
      [](PagedCache& cache) { cache.Truncate(0, 6); },
      [](PagedCache& cache) { cache.Share(0, 2); },
  };
  for (const auto move : moves) {
    Reservation reservation = cache.Reserve(PlanOf(rows));
    move(cache);
    EXPECT_EQ(reservation.Commit(), CommitStatus::kInconsistent);
    EXPECT_EQ(cache.filled_slots(0), 6u);
    EXPECT_EQ(cache.table_blocks(0), 2u);
    reservation.Rollback();
    EXPECT_EQ(cache.pool().reserved_blocks(), 0u);
    EXPECT_NO_THROW(cache.Validate());
  }
}

TEST_F(PagedCacheTest, ASecondCommitIsRefused) {
  const std::vector<RowPlan> rows{Row(0, 5)};
  Reservation reservation = cache.Reserve(PlanOf(rows));
  EXPECT_EQ(reservation.Commit(), CommitStatus::kCommitted);
  EXPECT_EQ(reservation.Commit(), CommitStatus::kInconsistent);
  EXPECT_EQ(cache.table_blocks(0), 2u);
}

TEST_F(PagedCacheTest, OnlyTheLastHolderOfAReservationUndoesIt) {
  const std::vector<RowPlan> rows{Row(0, 5)};
  Reservation first = cache.Reserve(PlanOf(rows));
  {
    const Reservation second = std::move(first);
    EXPECT_EQ(cache.pool().reserved_blocks(), 2u);
  }
  EXPECT_EQ(cache.pool().reserved_blocks(), 0u);
  first.Rollback();
  EXPECT_EQ(cache.pool().free_blocks(), kBlocks);
}

TEST_F(PagedCacheTest, TruncatingKeepsTheBlocksBefore) {
  Grow(0, 15);
  const Blocks before = Table(0);
  cache.Truncate(0, 9);
  EXPECT_EQ(Table(0), Blocks(before.begin(), before.begin() + 3));
  EXPECT_EQ(cache.filled_slots(0), 9u);
  cache.Truncate(0, 8);
  EXPECT_EQ(cache.table_blocks(0), 2u);
  cache.Truncate(0, 100);
  EXPECT_EQ(cache.filled_slots(0), 8u) << "truncating never adds";
  cache.Drop(0);
  EXPECT_EQ(cache.pool().free_blocks(), kBlocks);
}

TEST_F(PagedCacheTest, AForkSharesEveryFilledBlock) {
  Grow(0, 10);
  cache.Share(0, 1);
  EXPECT_EQ(Table(1), Table(0));
  EXPECT_EQ(cache.filled_slots(1), 10u);
  EXPECT_EQ(cache.pool().free_blocks(), kBlocks - 3);
  for (const BlockId block : Table(0)) EXPECT_EQ(cache.pool().share_count(block), 2u);
  EXPECT_TRUE(cache.NextBlockProtected(0));
  EXPECT_TRUE(cache.NextBlockProtected(1));
  EXPECT_THROW(cache.Share(0, 1), ContractError) << "the target owns blocks already";
  EXPECT_THROW(cache.Share(3, 3), ContractError);
}

TEST_F(PagedCacheTest, ASharedTailIsCopiedBeforeItIsWritten) {
  Grow(0, 10);
  cache.Share(0, 1);
  const Blocks parent = Table(0);
  const std::vector<RowPlan> rows{Row(1, 4)};
  Reservation reservation = cache.Reserve(PlanOf(rows));
  ASSERT_EQ(reservation.copies().size(), 1u);
  const BlockCopy copy = reservation.copies()[0];
  EXPECT_EQ(copy.source, parent[2]);
  EXPECT_EQ(TableOf(reservation, 0)[2], copy.target) << "the step writes the copy";
  EXPECT_EQ(Table(1), parent) << "the committed table stays until the commit";
  EXPECT_EQ(reservation.Commit(), CommitStatus::kCommitted);
  EXPECT_EQ(Table(0), parent);
  EXPECT_EQ(Table(1), (Blocks{parent[0], parent[1], copy.target, Table(1)[3]}));
  EXPECT_FALSE(cache.NextBlockProtected(0));
  EXPECT_FALSE(cache.NextBlockProtected(1));
}

TEST_F(PagedCacheTest, ARolledBackCopyLeavesTheTailShared) {
  Grow(0, 10);
  cache.Share(0, 1);
  const std::vector<RowPlan> rows{Row(1, 4)};
  cache.Reserve(PlanOf(rows)).Rollback();
  EXPECT_EQ(Table(0), Table(1));
  EXPECT_TRUE(cache.NextBlockProtected(1));
  EXPECT_EQ(cache.pool().free_blocks(), kBlocks - 3);
}

TEST_F(PagedCacheTest, TwoOwnersThatWriteInOneStepBothCopy) {
  Grow(0, 6);
  cache.Share(0, 1);
  const BlockId shared = Table(0)[1];
  const std::vector<RowPlan> rows{Row(0, 1), Row(1, 1)};
  Reservation reservation = cache.Reserve(PlanOf(rows));
  EXPECT_EQ(reservation.copies().size(), 2u);
  EXPECT_EQ(reservation.Commit(), CommitStatus::kCommitted);
  EXPECT_NE(Table(0)[1], Table(1)[1]);
  EXPECT_NE(Table(0)[1], shared);
  EXPECT_NE(Table(1)[1], shared);
  EXPECT_EQ(cache.pool().free_blocks(), kBlocks - 3) << "nobody owns the old tail any more";
}

TEST_F(PagedCacheTest, AtABlockBorderNothingIsCopied) {
  Grow(0, 8);
  cache.Share(0, 1);
  EXPECT_FALSE(cache.NextBlockProtected(1));
  const std::vector<RowPlan> rows{Row(1, 1)};
  Reservation reservation = cache.Reserve(PlanOf(rows));
  EXPECT_TRUE(reservation.copies().empty());
  EXPECT_EQ(reservation.Commit(), CommitStatus::kCommitted);
  cache.Truncate(1, 7);
  EXPECT_TRUE(cache.NextBlockProtected(1)) << "now its next token goes into a shared block";
}

TEST_F(PagedCacheTest, TheLastOwnerFreesSharedBlocks) {
  Grow(0, 10);
  cache.Share(0, 1);
  cache.Share(1, 2);
  cache.Drop(0);
  cache.Drop(2);
  EXPECT_EQ(cache.pool().free_blocks(), kBlocks - 3);
  EXPECT_FALSE(cache.NextBlockProtected(1));
  cache.Drop(1);
  EXPECT_EQ(cache.pool().free_blocks(), kBlocks);
}

// A cache of its own, since the fixture checks that its one is sound.
class BrokenPagedCache : public ::testing::Test {
 protected:
  BrokenPagedCache() : cache(kBlocks, kBlockSize) {
    cache.EnsureTables(2);
    RowPlan row;
    row.index = 0;
    row.scheduled_tokens = 6;
    row.target_blocks = 2;
    EXPECT_EQ(cache.Reserve(PlanOf(std::vector{row})).Commit(), CommitStatus::kCommitted);
    cache.Validate();
  }

  Blocks& table() { return PagedCacheAccess::Table(cache, 0); }
  BlockPool& pool() { return PagedCacheAccess::Pool(cache); }

  PagedCache cache;
};

TEST_F(BrokenPagedCache, ValidateNamesC1WhenATableLosesABlock) {
  table().erase(table().begin());
  PagedCacheAccess::FilledSlots(cache, 0) = 4;
  EXPECT_TRUE(Breaks(cache, "C1"));
}

TEST_F(BrokenPagedCache, ValidateNamesC1WhenATableHoldsABlockThatDoesNotExist) {
  table()[0] = kUnmappedBlock;
  EXPECT_TRUE(Breaks(cache, "C1"));
}

TEST_F(BrokenPagedCache, ValidateNamesC2WhenMoreIsFilledThanCovered) {
  PagedCacheAccess::FilledSlots(cache, 0) = 9;
  EXPECT_TRUE(Breaks(cache, "C2"));
}

TEST_F(BrokenPagedCache, ValidateNamesC3WhenABlockAppearsTwice) {
  pool().Share(table()[0]);
  table().push_back(table()[0]);
  EXPECT_TRUE(Breaks(cache, "C3"));
}

TEST_F(BrokenPagedCache, ValidateNamesC4WhenABlockIsReservedOutsideAReservation) {
  pool().Reserve();
  EXPECT_TRUE(Breaks(cache, "C4"));
}

TEST_F(BrokenPagedCache, ValidateSeesThroughToThePool) {
  pool().Return(7);
  EXPECT_TRUE(Breaks(cache, "B1"));
}

}  // namespace
}  // namespace oga::testing
