#include "engine/run_queues.h"

#include <gtest/gtest.h>

#include <array>

#include "support/invariants.h"

namespace oga::testing {

struct RunQueuesAccess {
  static void ForgetArrival(RunQueues& queues) { queues.waiting_by_arrival_.pop_back(); }
};

namespace {

using Slots = std::vector<RequestIndex>;

Slots SlotsOf(RunQueues::Views views) {
  Slots slots;
  for (const CandidateView* view : views) slots.push_back(view->index);
  return slots;
}

class RunQueuesTest : public ::testing::Test {
 protected:
  RunQueuesTest() : queues(policy) {
    queues.Reserve(8);
    for (RequestIndex index = 0; index < views.size(); ++index) {
      views[index].index = index;
      views[index].arrival = index + 1;
    }
  }

  void InsertAll(QueuePlace place, const Slots& order) {
    for (const RequestIndex index : order) queues.Insert(views[index], place);
    EXPECT_NO_THROW(queues.Validate());
  }

  ArrivalPolicy policy;
  RunQueues queues;
  std::array<CandidateView, 4> views;
};

TEST_F(RunQueuesTest, RunningOnesStandByArrival) {
  views[0].last_progress_step = 9;
  views[3].priority = 5;
  InsertAll(QueuePlace::kRunning, {2, 0, 3, 1});
  EXPECT_EQ(SlotsOf(queues.running()), (Slots{0, 1, 2, 3}));
}

TEST_F(RunQueuesTest, WaitingOnesStandInTheOrderOfThePolicyAndByArrival) {
  views[1].last_progress_step = 5;
  views[2].last_progress_step = 3;
  views[3].last_progress_step = 5;
  views[3].priority = 1;
  InsertAll(QueuePlace::kWaiting, {2, 3, 1, 0});
  EXPECT_EQ(SlotsOf(queues.waiting()), (Slots{3, 0, 1, 2}));
  EXPECT_EQ(SlotsOf(queues.waiting_by_arrival()), (Slots{0, 1, 2, 3}));
}

TEST_F(RunQueuesTest, DormantOnesStandLeastRecentlyUsedFirst) {
  views[0].last_progress_step = 8;
  views[1].last_progress_step = 2;
  views[2].last_progress_step = 5;
  InsertAll(QueuePlace::kDormant, {0, 1, 2});
  EXPECT_EQ(SlotsOf(queues.dormant()), (Slots{1, 2, 0}));
}

TEST_F(RunQueuesTest, RemovingFindsAViewWhoseValuesHaveChanged) {
  InsertAll(QueuePlace::kWaiting, {0, 1, 2});
  views[1].last_progress_step = 99;
  views[1].priority = -4;
  queues.Remove(views[1], QueuePlace::kWaiting);
  EXPECT_EQ(SlotsOf(queues.waiting()), (Slots{0, 2}));
  EXPECT_EQ(SlotsOf(queues.waiting_by_arrival()), (Slots{0, 2}));
  queues.Insert(views[1], QueuePlace::kWaiting);
  EXPECT_EQ(SlotsOf(queues.waiting()), (Slots{0, 2, 1}));
}

TEST_F(RunQueuesTest, ARequestWithoutAPlaceIsInNoQueue) {
  InsertAll(QueuePlace::kNone, {0, 1});
  EXPECT_TRUE(queues.running().empty() && queues.waiting().empty() && queues.dormant().empty());
  queues.Insert(views[2], QueuePlace::kRunning);
  queues.Remove(views[2], QueuePlace::kNone);
  queues.Remove(views[3], QueuePlace::kRunning);
  EXPECT_EQ(SlotsOf(queues.running()), Slots{2}) << "removing what is not there changes nothing";
}

TEST_F(RunQueuesTest, ValidateNamesQ1WhenTheTwoOrdersOfTheWaitingDiffer) {
  InsertAll(QueuePlace::kWaiting, {0, 1});
  RunQueuesAccess::ForgetArrival(queues);
  EXPECT_TRUE(Breaks(queues, "Q1"));
}

TEST_F(RunQueuesTest, ValidateNamesQ2WhenAQueueIsOutOfOrder) {
  for (const QueuePlace place : {QueuePlace::kRunning, QueuePlace::kWaiting, QueuePlace::kDormant}) {
    InsertAll(place, {0, 1});
    std::swap(views[0].arrival, views[1].arrival);
    EXPECT_TRUE(Breaks(queues, "Q2"));
    std::swap(views[0].arrival, views[1].arrival);
    queues.Remove(views[0], place);
    queues.Remove(views[1], place);
  }
}

TEST_F(RunQueuesTest, ValidateNamesQ2WhenARequestIsQueuedTwice) {
  queues.Insert(views[0], QueuePlace::kRunning);
  queues.Insert(views[0], QueuePlace::kDormant);
  EXPECT_TRUE(Breaks(queues, "Q2"));
}

}  // namespace
}  // namespace oga::testing
