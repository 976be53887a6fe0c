#include "cache/block_hash.h"

#include <gtest/gtest.h>

#include <vector>

namespace oga {
namespace {

// The published vectors of SipHash-2-4-128: key 00 01 .. 0f, message 00 01 .. of the given length. Here the first 24
// bytes are the parent and the salt, the rest are tokens.
TEST(BlockHash, IsSipHashOfParentSaltAndTokens) {
  const HashKey key = {0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull};
  const BlockHash parent = {0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull};
  const uint64_t salt = 0x1716151413121110ull;
  const auto tokens = [](int count) {
    std::vector<TokenId> values;
    for (int i = 0; i < count; ++i) values.push_back(0x1b1a1918 + 0x04040404 * i);
    return values;
  };
  EXPECT_EQ(SipHashBlock(key, parent, salt, tokens(0)), (BlockHash{0xd850bd78ae79b42dull, 0xad32618a178a2a88ull}));
  EXPECT_EQ(SipHashBlock(key, parent, salt, tokens(1)), (BlockHash{0x884b576816da6406ull, 0xf4ae587302f335b9ull}));
  EXPECT_EQ(SipHashBlock(key, parent, salt, tokens(2)), (BlockHash{0x3efcea5eca56397cull, 0x68eb4665559d3e36ull}));
  EXPECT_EQ(SipHashBlock(key, parent, salt, tokens(9)), (BlockHash{0x53f128eb000c04e3ull, 0x40e772d8cb73ca66ull}));
}

TEST(BlockHash, DependsOnEveryPart) {
  const std::vector<TokenId> tokens = {1, 2, 3, 4};
  const BlockHash hash = SipHashBlock({1, 2}, {3, 4}, 5, tokens);
  EXPECT_FALSE(hash == SipHashBlock({9, 2}, {3, 4}, 5, tokens));
  EXPECT_FALSE(hash == SipHashBlock({1, 2}, {3, 9}, 5, tokens));
  EXPECT_FALSE(hash == SipHashBlock({1, 2}, {3, 4}, 9, tokens));
  EXPECT_FALSE(hash == SipHashBlock({1, 2}, {3, 4}, 5, std::vector<TokenId>{2, 1, 3, 4}));
}

TEST(BlockHash, DrawsAnotherKeyEachTime) {
  const HashKey a = HashKey::Draw();
  const HashKey b = HashKey::Draw();
  EXPECT_FALSE(a.low == b.low && a.high == b.high);
}

}  // namespace
}  // namespace oga
