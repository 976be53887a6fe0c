#include "benchmarks/contest.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace oga::benchmarks {
namespace {

TEST(Contest, TakesSamplesInTurns) {
  std::string order;
  Contest contest;
  contest.Add("a", [&] { order += 'a'; });
  contest.Add("b", [&] { order += 'b'; });
  contest.Run(2, 0.0);
  EXPECT_EQ(order, "aabbaabb");  // one run that counts each time, after one that does not
}

TEST(Contest, RestsAfterWhoeverAsksForIt) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_of_a, start_of_b;
  Contest contest;
  contest.Add(
      "a", [&] { end_of_a = Clock::now(); }, 0.02);
  contest.Add("b", [&] {
    if (start_of_b == Clock::time_point()) start_of_b = Clock::now();
  });
  contest.Run(1, 0.0);
  EXPECT_GE(start_of_b - end_of_a, std::chrono::milliseconds(20));
}

TEST(Contest, ReportsTheMedianTimeOfOneRun) {
  int runs = 0;
  Contest contest;
  contest.Add("sleeps", [&] {
    ++runs;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  });
  contest.Add("does nothing", [] {});
  contest.Run(3, 0.01);
  const auto results = contest.Results();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].name, "sleeps");
  EXPECT_GE(results[0].seconds, 0.002);
  EXPECT_LT(results[1].seconds, results[0].seconds);
  EXPECT_LE(runs, 3 * (1 + 5));
}

}  // namespace
}  // namespace oga::benchmarks
