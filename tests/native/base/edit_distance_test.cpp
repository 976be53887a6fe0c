#include "base/edit_distance.h"

#include <gtest/gtest.h>

namespace oga {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("abc", ""), 3u);
  EXPECT_EQ(EditDistance("block_size", "block_size"), 0u);
  EXPECT_EQ(EditDistance("block_sise", "block_size"), 1u);
  EXPECT_EQ(EditDistance("blok_size", "block_size"), 1u);
  EXPECT_EQ(EditDistance("blocck_size", "block_size"), 1u);
  EXPECT_EQ(EditDistance("bolck_size", "block_size"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
}

}  // namespace
}  // namespace oga
