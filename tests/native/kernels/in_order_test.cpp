#include "kernels/in_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace oga::kernels {
namespace {

TEST(InOrder, TakesEachStepOnceAndInOrderWhateverOrderItemsFinishIn) {
  std::mt19937 random(7);
  for (const size_t count : {size_t{1}, size_t{2}, size_t{5}, InOrder::kMostItems}) {
    for (int round = 0; round < 50; ++round) {
      std::vector<size_t> order(count), taken;
      std::iota(order.begin(), order.end(), size_t{0});
      std::shuffle(order.begin(), order.end(), random);
      InOrder steps(count);
      for (const size_t i : order) steps.Finish(i, [&](size_t step) { taken.push_back(step); });
      std::vector<size_t> wanted(count);
      std::iota(wanted.begin(), wanted.end(), size_t{0});
      ASSERT_EQ(taken, wanted);
    }
  }
}

TEST(InOrder, TakesAStepAsSoonAsItsTurnHasCome) {
  InOrder steps(3);
  std::vector<size_t> taken;
  const auto take = [&](size_t step) { taken.push_back(step); };
  steps.Finish(1, take);
  EXPECT_TRUE(taken.empty());
  steps.Finish(0, take);
  EXPECT_EQ(taken, (std::vector<size_t>{0, 1}));
  steps.Finish(2, take);
  EXPECT_EQ(taken, (std::vector<size_t>{0, 1, 2}));
}

// Neither the vector nor the items are guarded by anything but the steps' order.
TEST(InOrder, LeavesNoStepOutBetweenThreads) {
  for (int round = 0; round < 300; ++round) {
    constexpr size_t kItems = 64;
    InOrder steps(kItems);
    std::vector<size_t> items(kItems, 0), taken;
    std::atomic<size_t> next = 0;
    const auto work = [&] {
      for (size_t i = next++; i < kItems; i = next++) {
        items[i] = i + 1;
        steps.Finish(i, [&](size_t step) { taken.push_back(items[step]); });
      }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(taken.size(), kItems);
    for (size_t i = 0; i < kItems; ++i) ASSERT_EQ(taken[i], i + 1);
  }
}

}  // namespace
}  // namespace oga::kernels
