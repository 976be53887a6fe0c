#include "operators/cpu/load_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace oga::operators {
namespace {

TEST(LoadThreads, RunEveryItemOnce) {
  for (const int threads : {-1, 0, 1, 2, 5}) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{3}, size_t{1000}}) {
      std::vector<std::atomic<int>> runs(count);
      OnLoadThreads(threads)(count, [&](size_t i) { ++runs[i]; });
      for (const auto& run : runs) ASSERT_EQ(run, 1) << threads << " threads, " << count << " items";
    }
  }
}

TEST(LoadThreads, AreAsManyAsAskedForAtMost) {
  std::mutex mutex;
  std::set<std::thread::id> seen;
  OnLoadThreads(3)(200, [&](size_t) {
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_LE(seen.size(), 3u);
  OnLoadThreads(1)(200, [](size_t) {});
  OnLoadThreads(1)(1, [](size_t i) { EXPECT_EQ(i, 0u); });
}

}  // namespace
}  // namespace oga::operators
