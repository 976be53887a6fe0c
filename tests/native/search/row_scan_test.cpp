#include "search/row_scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace oga::search {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Below, at and above whole steps.
constexpr size_t kSizes[] = {1, 3, 4, 15, 16, 17, 31, 32, 47, 100};

std::vector<float> Falling(size_t size) {
  std::vector<float> row(size);
  for (size_t i = 0; i < size; ++i) row[i] = -1.0f - static_cast<float>(i);
  return row;
}

TEST(RowScan, FindsTheHighestWhereverItIs) {
  for (const size_t size : kSizes) {
    for (size_t place = 0; place < size; ++place) {
      std::vector<float> row = Falling(size);
      row[place] = 5.0f;
      const RowRange range = RangeOf(row);
      EXPECT_FALSE(range.bad);
      EXPECT_EQ(range.highest, 5.0f) << place << " of " << size;
      EXPECT_EQ(FirstPlaceOf(5.0f, row), place) << "of " << size;
    }
  }
}

TEST(RowScan, SeesWhatIsBadWhereverItIsAndLeavesItOut) {
  for (const size_t size : kSizes) {
    for (size_t place = 0; place < size; ++place) {
      for (const float bad : {kNan, -kNan, kInfinity}) {
        std::vector<float> row = Falling(size);
        row[place] = bad;
        const RowRange range = RangeOf(row);
        EXPECT_TRUE(range.bad) << place << " of " << size;
        EXPECT_EQ(range.highest, size == 1 ? -kInfinity : place == 0 ? -2.0f : -1.0f) << place << " of " << size;
      }
    }
  }
}

TEST(RowScan, TakesMaskedScoresForOrdinaryOnes) {
  for (const size_t size : kSizes) {
    std::vector<float> row(size, -kInfinity);
    EXPECT_FALSE(RangeOf(row).bad);
    EXPECT_EQ(RangeOf(row).highest, -kInfinity);
    row.back() = -3.0f;
    EXPECT_EQ(RangeOf(row).highest, -3.0f);
  }
  EXPECT_EQ(RangeOf({}).highest, -kInfinity);
}

TEST(RowScan, FindsTheFirstOfEqualsAndWhatIsNotThereAtTheEnd) {
  for (const size_t size : kSizes) {
    const std::vector<float> row(size, 2.0f);
    EXPECT_EQ(FirstPlaceOf(2.0f, row), 0u);
    EXPECT_EQ(FirstPlaceOf(3.0f, row), size);
  }
  const std::vector<float> zeros = {-1.0f, -0.0f, 0.0f};
  EXPECT_EQ(FirstPlaceOf(0.0f, zeros), 1u);
}

}  // namespace
}  // namespace oga::search
