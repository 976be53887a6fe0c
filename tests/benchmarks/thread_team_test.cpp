#include "benchmarks/thread_team.h"

#include <gtest/gtest.h>

#include <memory>

namespace oga::benchmarks {
namespace {

TEST(ThreadTeam, RunsEveryItemOnceInManyRounds) {
  for (const int threads : {1, 2, 5}) {
    ThreadTeam team(threads);
    EXPECT_EQ(team.size(), threads);
    for (size_t round = 0; round < 2000; ++round) {
      const size_t count = round % 7;
      const auto runs = std::make_unique<std::atomic<int>[]>(count);
      team.ForEach(count, [&](size_t i) { ++runs[i]; });
      for (size_t i = 0; i < count; ++i) ASSERT_EQ(runs[i], 1) << "item " << i << " of round " << round;
    }
  }
}

TEST(ThreadTeam, ReturnsWhatItsThreadsWrote) {
  ThreadTeam team(3);
  std::vector<size_t> squares(1000);
  team.ForEach(squares.size(), [&](size_t i) { squares[i] = i * i; });
  for (size_t i = 0; i < squares.size(); ++i) ASSERT_EQ(squares[i], i * i);
}

}  // namespace
}  // namespace oga::benchmarks
