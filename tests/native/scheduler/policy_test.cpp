#include "scheduler/policy.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace oga::testing {
namespace {

CandidateView View(int32_t priority, uint64_t arrival, uint32_t tokens) {
  CandidateView view;
  view.priority = priority;
  view.arrival = arrival;
  view.sequence_tokens = tokens;
  return view;
}

TEST(ArrivalPolicy, PutsPriorityBeforeArrivalAndIgnoresLength) {
  const ArrivalPolicy policy;
  EXPECT_TRUE(policy.Precedes(View(1, 9, 500), View(0, 1, 1)));
  EXPECT_FALSE(policy.Precedes(View(0, 1, 1), View(1, 9, 500)));
  EXPECT_TRUE(policy.Precedes(View(0, 1, 500), View(0, 2, 1)));
  EXPECT_TRUE(policy.Precedes(View(-1, 2, 1), View(-2, 1, 1)));
}

TEST(ShortestPromptPolicy, PutsPriorityThenLengthThenArrival) {
  const ShortestPromptPolicy policy;
  EXPECT_TRUE(policy.Precedes(View(1, 9, 500), View(0, 1, 1)));
  EXPECT_TRUE(policy.Precedes(View(0, 9, 3), View(0, 1, 4)));
  EXPECT_TRUE(policy.Precedes(View(0, 1, 4), View(0, 2, 4)));
  EXPECT_FALSE(policy.Precedes(View(0, 2, 4), View(0, 1, 4)));
}

TEST(SchedulerPolicy, EveryPolicyIsAStrictWeakOrder) {
  std::mt19937 random(1);
  std::vector<CandidateView> views;
  for (uint64_t arrival = 0; arrival < 30; ++arrival) {
    views.push_back(View(static_cast<int32_t>(random() % 3) - 1, arrival / 2, static_cast<uint32_t>(random() % 4)));
  }
  const ArrivalPolicy arrival;
  const ShortestPromptPolicy shortest;
  for (const SchedulerPolicy* policy :
       {static_cast<const SchedulerPolicy*>(&arrival), static_cast<const SchedulerPolicy*>(&shortest)}) {
    const auto before = [policy](const CandidateView& a, const CandidateView& b) { return policy->Precedes(a, b); };
    const auto equal = [&before](const CandidateView& a, const CandidateView& b) {
      return !before(a, b) && !before(b, a);
    };
    for (const CandidateView& a : views) {
      ASSERT_FALSE(before(a, a));
      for (const CandidateView& b : views) {
        ASSERT_FALSE(before(a, b) && before(b, a));
        for (const CandidateView& c : views) {
          ASSERT_TRUE(!before(a, b) || !before(b, c) || before(a, c));
          ASSERT_TRUE(!equal(a, b) || !equal(b, c) || equal(a, c));
        }
      }
    }
  }
}

}  // namespace
}  // namespace oga::testing
