#include "cache/block_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

#include "support/invariants.h"

namespace oga::testing {
namespace {

BlockId TakeCommitted(BlockPool& pool) {
  const BlockId block = pool.Reserve();
  pool.Commit(block);
  return block;
}

TEST(BlockPool, HandsOutEveryBlockOnce) {
  BlockPool pool(5);
  std::set<BlockId> blocks;
  while (pool.free_blocks() > 0) blocks.insert(pool.Reserve());
  EXPECT_EQ(blocks, (std::set<BlockId>{0, 1, 2, 3, 4}));
  EXPECT_EQ(pool.reserved_blocks(), 5u);
  pool.Validate();
}

TEST(BlockPool, UsesTheBlockThatCameBackLastFirst) {
  BlockPool pool(4);
  const BlockId a = TakeCommitted(pool);
  const BlockId b = TakeCommitted(pool);
  pool.Release(a, /*keep=*/false);
  pool.Release(b, /*keep=*/false);
  EXPECT_EQ(pool.Reserve(), b);
  EXPECT_EQ(pool.Reserve(), a);
}

TEST(BlockPool, AReservedBlockReturnsOrIsCommitted) {
  BlockPool pool(2);
  const BlockId returned = pool.Reserve();
  const BlockId kept = pool.Reserve();
  EXPECT_EQ(pool.free_blocks(), 0u);
  EXPECT_EQ(pool.share_count(kept), 0u) << "a reserved block has no owner yet";
  pool.Return(returned);
  pool.Commit(kept);
  EXPECT_EQ(pool.free_blocks(), 1u);
  EXPECT_EQ(pool.reserved_blocks(), 0u);
  EXPECT_EQ(pool.share_count(kept), 1u);
  EXPECT_EQ(pool.share_count(returned), 0u);
  pool.Validate();
}

TEST(BlockPool, TheLastOwnerFreesASharedBlock) {
  BlockPool pool(1);
  const BlockId block = TakeCommitted(pool);
  pool.Share(block);
  pool.Share(block);
  EXPECT_EQ(pool.share_count(block), 3u);
  pool.Release(block, /*keep=*/false);
  EXPECT_EQ(pool.share_count(block), 2u);
  pool.Release(block, /*keep=*/false);
  EXPECT_EQ(pool.share_count(block), 1u);
  EXPECT_EQ(pool.free_blocks(), 0u);
  pool.Release(block, /*keep=*/false);
  EXPECT_EQ(pool.free_blocks(), 1u);
  pool.Validate();
}

TEST(BlockPool, EveryMoveChangesItsGeneration) {
  BlockPool pool(1);
  std::set<uint64_t> generations{pool.generation()};
  const BlockId block = pool.Reserve();
  generations.insert(pool.generation());
  pool.Return(block);
  generations.insert(pool.generation());
  pool.Reserve();
  generations.insert(pool.generation());
  pool.Commit(block);
  generations.insert(pool.generation());
  pool.Share(block);
  generations.insert(pool.generation());
  pool.Release(block, /*keep=*/false);
  generations.insert(pool.generation());
  EXPECT_EQ(generations.size(), 7u);
}

TEST(BlockPool, KeepsItsInvariantsThroughRandomMoves) {
  std::mt19937 random(1);
  BlockPool pool(12);
  std::map<BlockId, int> committed;  // owners of each
  std::vector<BlockId> reserved;
  for (int move = 0; move < 20000; ++move) {
    const auto owner = committed.empty() ? committed.end() : std::next(committed.begin(), random() % committed.size());
    switch (random() % 5) {
      case 0:
        if (pool.free_blocks() > 0) reserved.push_back(pool.Reserve());
        break;
      case 1:
        if (reserved.empty()) break;
        pool.Return(reserved.back());
        reserved.pop_back();
        break;
      case 2:
        if (reserved.empty()) break;
        pool.Commit(reserved.back());
        committed[reserved.back()] = 1;
        reserved.pop_back();
        break;
      case 3:
        if (owner == committed.end()) break;
        pool.Share(owner->first);
        ++owner->second;
        break;
      default:
        if (owner == committed.end()) break;
        pool.Release(owner->first, /*keep=*/false);
        if (--owner->second == 0) committed.erase(owner);
    }
    ASSERT_NO_THROW(pool.Validate());
    ASSERT_EQ(pool.free_blocks(), 12 - reserved.size() - committed.size());
    for (const auto& [block, owners] : committed) ASSERT_EQ(pool.share_count(block), static_cast<uint32_t>(owners));
  }
}

TEST(BlockPool, ValidateNamesB1WhenABlockIsFreedTwice) {
  BlockPool pool(3);
  const BlockId block = pool.Reserve();
  pool.Return(block);
  pool.Return(block);
  EXPECT_TRUE(Breaks(pool, "B1"));
}

TEST(BlockPool, ValidateNamesB2WhenABlockWithoutAnOwnerIsReleased) {
  BlockPool pool(3);
  pool.Release(pool.Reserve(), /*keep=*/false);
  EXPECT_TRUE(Breaks(pool, "B2"));
}

TEST(BlockPool, ValidateNamesB3WhenABlockIsCommittedTwice) {
  BlockPool pool(3);
  pool.Reserve();
  pool.Commit(TakeCommitted(pool));
  EXPECT_TRUE(Breaks(pool, "B3"));
}

}  // namespace
}  // namespace oga::testing
