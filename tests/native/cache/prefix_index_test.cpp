#include "cache/prefix_index.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/check.h"

namespace oga {
namespace {

constexpr BlockHash kSame = {7, 7};

std::vector<TokenId> Tokens(TokenId first) { return {first, first + 1, first + 2, first + 3}; }

TEST(PrefixIndex, FindsWhatWasPublished) {
  PrefixIndex index(8, 4);
  index.Publish(3, {1, 2}, kUnmappedBlock, 0, Tokens(10));
  EXPECT_EQ(index.Find({1, 2}, kUnmappedBlock, 0, Tokens(10)), 3);
  index.Validate();
}

TEST(PrefixIndex, TellsCollidingHashesApartByTokensSaltAndParent) {
  PrefixIndex index(8, 4);
  index.Publish(0, kSame, kUnmappedBlock, 0, Tokens(10));
  index.Publish(1, kSame, kUnmappedBlock, 0, Tokens(20));
  index.Publish(2, kSame, kUnmappedBlock, 5, Tokens(10));
  index.Publish(3, kSame, 0, 0, Tokens(30));
  index.Publish(4, kSame, 1, 0, Tokens(30));
  EXPECT_EQ(index.Find(kSame, kUnmappedBlock, 0, Tokens(10)), 0);
  EXPECT_EQ(index.Find(kSame, kUnmappedBlock, 0, Tokens(20)), 1);
  EXPECT_EQ(index.Find(kSame, kUnmappedBlock, 5, Tokens(10)), 2);
  EXPECT_EQ(index.Find(kSame, 0, 0, Tokens(30)), 3);
  EXPECT_EQ(index.Find(kSame, 1, 0, Tokens(30)), 4);
  EXPECT_EQ(index.Find(kSame, kUnmappedBlock, 0, Tokens(30)), kUnmappedBlock);
  EXPECT_EQ(index.Find(kSame, 2, 5, Tokens(30)), kUnmappedBlock);
  index.Validate();
}

TEST(PrefixIndex, ForgetsARemovedBlockAndKeepsTheOthersOfItsBucket) {
  PrefixIndex index(8, 4);
  for (BlockId block = 0; block < 4; ++block) index.Publish(block, kSame, kUnmappedBlock, 0, Tokens(10 * block));
  index.Remove(2);
  index.Validate();
  EXPECT_EQ(index.Find(kSame, kUnmappedBlock, 0, Tokens(20)), kUnmappedBlock);
  for (const BlockId block : {0, 1, 3}) EXPECT_EQ(index.Find(kSame, kUnmappedBlock, 0, Tokens(10 * block)), block);
  EXPECT_EQ(index.published_blocks(), 3u);
}

TEST(PrefixIndex, RandomPublicationsAndRemovalsStayConsistent) {
  std::mt19937 random(5);
  PrefixIndex index(64, 4);
  std::vector<BlockId> chain;  // a stack of blocks, each the parent of the next: removed leaf first
  for (int i = 0; i < 5000; ++i) {
    const BlockId next = static_cast<BlockId>(chain.size());
    if (chain.size() < 64 && random() % 2 == 0) {
      const BlockId parent = chain.empty() ? kUnmappedBlock : chain.back();
      index.Publish(next, {random() % 3, 0}, parent, 0, Tokens(next));
      chain.push_back(next);
    } else if (!chain.empty()) {
      index.Remove(chain.back());
      chain.pop_back();
    }
    index.Validate();
    ASSERT_EQ(index.published_blocks(), chain.size());
  }
}

TEST(PrefixIndex, NoticesAParentThatIsGone) {
  PrefixIndex index(8, 4);
  index.Publish(0, {1, 0}, kUnmappedBlock, 0, Tokens(1));
  index.Publish(1, {2, 0}, 0, 0, Tokens(2));
  index.Remove(0);
  try {
    index.Validate();
    FAIL() << "a missing parent went unnoticed";
  } catch (const ContractError& error) {
    EXPECT_NE(error.message().find("P1"), std::string::npos) << error.message();
  }
}

TEST(PrefixIndex, NoticesABlockPublishedTwice) {
  PrefixIndex index(8, 4);
  index.Publish(0, {1, 0}, kUnmappedBlock, 0, Tokens(1));
  index.Publish(0, {2, 0}, kUnmappedBlock, 0, Tokens(2));
  EXPECT_THROW(index.Validate(), ContractError);
}

}  // namespace
}  // namespace oga
