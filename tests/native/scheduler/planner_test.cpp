#include "scheduler/planner.h"

#include <gtest/gtest.h>

#include <limits>

#include "native/scheduler/scene.h"

namespace oga::testing {
namespace {

using Slots = std::vector<RequestIndex>;

// --- Order and tokens -----------------------------------------------------------------------------------------------

TEST(Planner, HasNoWorkWithoutALiveTurn) {
  Scene scene;
  scene.Dormant(5);
  const StepPlan plan = scene.Plan();
  EXPECT_EQ(plan.outcome, PlanOutcome::kNoWork);
  EXPECT_TRUE(plan.rows.empty());
  EXPECT_TRUE(plan.drops.empty());
}

TEST(Planner, PutsDecodesFirstThenPromptsByArrival) {
  Scene scene;
  scene.Waiting(3);
  scene.Decode(6);
  scene.Prefill(9, 4);
  scene.Decode(2);
  scene.Waiting(2);
  const StepPlan plan = scene.Plan();
  EXPECT_EQ(plan.outcome, PlanOutcome::kExecutable);
  EXPECT_EQ(RowsOf(plan), (PlannedRows{{1, 1}, {3, 1}, {0, 3}, {2, 5}, {4, 2}}));
  EXPECT_EQ(plan.scheduled_tokens, 12u);
}

TEST(Planner, ARowSaysWhatItComputesAndWhetherItSamples) {
  Scene scene;
  scene.limits.max_scheduled_tokens = 5;
  scene.Decode(9);
  scene.Prefill(20, 7);
  const StepPlan plan = scene.Plan();
  ASSERT_EQ(plan.rows.size(), 2u);
  EXPECT_EQ(plan.rows[0].past_tokens, 8u);
  EXPECT_EQ(plan.rows[0].pending_tokens, 1u);
  EXPECT_EQ(plan.rows[0].target_blocks, 3u) << "the ninth token opens a third block";
  EXPECT_TRUE(plan.rows[0].samples());
  EXPECT_EQ(plan.rows[1].past_tokens, 7u);
  EXPECT_EQ(plan.rows[1].scheduled_tokens, 4u);
  EXPECT_EQ(plan.rows[1].pending_tokens, 13u);
  EXPECT_FALSE(plan.rows[1].samples());
}

TEST(Planner, GivesOneTokenToEverybodyBeforeItExpandsInOrder) {
  Scene scene;
  scene.limits.max_scheduled_tokens = 6;
  scene.Waiting(10);
  scene.Waiting(3);
  scene.Waiting(2);
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{0, 4}, {1, 1}, {2, 1}})) << "first step of row E1";

  Scene second;
  second.limits.max_scheduled_tokens = 6;
  second.Prefill(10, 4);
  second.Prefill(3, 1);
  second.Prefill(2, 1);
  EXPECT_EQ(RowsOf(second.Plan()), (PlannedRows{{0, 4}, {1, 1}, {2, 1}})) << "second step: C samples";

  Scene third;
  third.limits.max_scheduled_tokens = 6;
  third.Prefill(10, 8);
  third.Prefill(3, 2);
  third.Decode(3);
  EXPECT_EQ(RowsOf(third.Plan()), (PlannedRows{{2, 1}, {0, 2}, {1, 1}})) << "third step: C, then A and B sample";
}

TEST(Planner, ABudgetOfOneTokenServesOneRequestAtATime) {
  Scene scene;
  scene.limits.max_scheduled_tokens = 1;
  scene.Waiting(3);
  scene.Waiting(3);
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{0, 1}}));
}

TEST(Planner, ChunksBoundARowAndNotItsNeighbours) {
  Scene scene;
  scene.limits.chunk_size_tokens = 4;
  scene.Waiting(10);
  scene.Waiting(3);
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{0, 4}, {1, 3}})) << "row E4";
  scene.limits.chunk_size_tokens = 2;
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{0, 2}, {1, 2}}));
  scene.limits.chunk_size_tokens = 0;
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{0, 10}, {1, 3}}));
}

TEST(Planner, SetsTheBlocksOfTheWholePromptAside) {
  Scene scene;
  scene.limits.chunk_size_tokens = 4;
  scene.Waiting(18);
  const StepPlan plan = scene.Plan();
  ASSERT_EQ(plan.rows.size(), 1u);
  EXPECT_EQ(plan.rows[0].target_blocks, 5u);
}

TEST(Planner, NeverPlansMoreRowsThanABatchHolds) {
  Scene scene;
  scene.limits.max_rows = 3;
  for (int i = 0; i < 2; ++i) scene.Decode(2);
  for (int i = 0; i < 4; ++i) scene.Waiting(2);
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{0, 1}, {1, 1}, {2, 2}}));
}

TEST(Planner, TakesTheLeastRecentlyServedDecodesWhenNotAllFit) {
  Scene scene;
  scene.limits.max_rows = 2;
  scene.Decode(2).last_progress_step = 99;
  scene.Decode(2).last_progress_step = 97;
  scene.Decode(2).last_progress_step = 98;
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{1, 1}, {2, 1}})) << "and the rows are in the order of arrival";
}

// --- Priority and policies ------------------------------------------------------------------------------------------

TEST(Planner, ServesHigherPrioritiesFirst) {
  Scene scene;
  scene.limits.max_rows = 3;
  scene.Decode(2);
  scene.Decode(2).priority = 1;
  scene.Waiting(2);
  scene.Waiting(2).priority = 5;
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{0, 1}, {1, 1}, {3, 2}})) << "resident decodes come before any prompt";
}

TEST(Planner, OrdersPromptsByThePolicyResidentOrNot) {
  Scene scene;
  scene.Prefill(9, 4);
  scene.Waiting(7);
  scene.Prefill(3, 1);
  scene.Waiting(2);
  EXPECT_EQ(RowsOf(scene.Plan(ShortestPromptPolicy())), (PlannedRows{{3, 2}, {2, 2}, {1, 7}, {0, 5}}));
  EXPECT_EQ(RowsOf(scene.Plan(ArrivalPolicy())), (PlannedRows{{0, 5}, {1, 7}, {2, 2}, {3, 2}}));
}

// --- Room -----------------------------------------------------------------------------------------------------------

TEST(Planner, SkipsWhatDoesNotFitAndGoesOn) {
  Scene scene;
  scene.Decode(40);
  scene.Waiting(40);
  scene.Waiting(4);
  const StepPlan plan = scene.Plan();
  EXPECT_EQ(RowsOf(plan), (PlannedRows{{0, 1}, {2, 4}})) << "case OB-09 (b)";
  EXPECT_TRUE(plan.drops.empty());
}

TEST(Planner, IsDeferredWhenNobodyCanRun) {
  Scene scene;
  scene.free_blocks = 0;  // held by something that cannot be dropped
  scene.Waiting(4);
  const StepPlan plan = scene.Plan();
  EXPECT_EQ(plan.outcome, PlanOutcome::kCapacityDeferred);
}

TEST(Planner, LeavesResidentsABlockEachWhenItAdmits) {
  Scene scene;
  scene.limits.total_blocks = 4;
  scene.Decode(4);
  scene.Decode(3);
  scene.Waiting(4);
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{0, 1}, {1, 1}})) << "two free blocks, and two residents that grow";
  scene.limits.total_blocks = 5;
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{0, 1}, {1, 1}, {2, 4}}));
}

TEST(Planner, CountsTheAdmittedOfTheSameStepAmongThoseThatGrow) {
  Scene scene;
  scene.limits.total_blocks = 5;
  for (int i = 0; i < 4; ++i) scene.Waiting(4);
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{0, 4}, {1, 4}, {2, 4}})) << "2 blocks are left, and 3 requests grow";
}

TEST(Planner, AdmitsARequestThatNeedsTheWholePool) {
  Scene scene;
  scene.Waiting(64);
  const StepPlan plan = scene.Plan();
  ASSERT_EQ(plan.rows.size(), 1u);
  EXPECT_EQ(plan.rows[0].target_blocks, 16u);
}

TEST(Planner, ReportsWhatCouldNeverFitOnceAndServesTheRest) {
  Scene scene;
  scene.Waiting(65);
  scene.Waiting(4);
  StepPlan plan = scene.Plan();
  EXPECT_EQ(plan.unserviceable, Slots{0});
  EXPECT_EQ(RowsOf(plan), (PlannedRows{{1, 4}})) << "case OB-09 (a)";

  scene.views[0].last_progress_step = 0;
  plan = scene.Plan();
  EXPECT_EQ(plan.unserviceable, Slots{0}) << "an urgent one is looked at twice and reported once";

  Scene alone;
  alone.Waiting(65);
  plan = alone.Plan();
  EXPECT_EQ(plan.unserviceable, Slots{0});
  EXPECT_EQ(plan.outcome, PlanOutcome::kNoWork) << "nobody waits for capacity";
}

// It would hold its protected block, the copy and one more: with as many blocks as its sequence takes it could never run.
TEST(Planner, ARequestWhoseCopyCanNeverFitGivesUpItsBlocks) {
  Scene scene;
  scene.Decode(2);
  scene.views[0].tail_shared = true;
  scene.limits.total_blocks = scene.views[0].owned_blocks;
  const StepPlan plan = scene.Plan();
  EXPECT_EQ(plan.outcome, PlanOutcome::kDropFirst);
  EXPECT_EQ(plan.drops, Slots{0});
}

TEST(Planner, AdmitsNoMoreResidentsThanAllowed) {
  Scene scene;
  scene.limits.max_resident_requests = 3;
  scene.Decode(2);
  scene.Decode(2);
  scene.Waiting(2);
  scene.Waiting(2);
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{0, 1}, {1, 1}, {2, 2}}));
}

TEST(Planner, DropsADormantResidentForItsPlace) {
  Scene scene;
  scene.limits.max_resident_requests = 2;
  scene.Decode(2);
  scene.Dormant(2);
  scene.Waiting(2);
  const StepPlan plan = scene.Plan();
  EXPECT_EQ(plan.outcome, PlanOutcome::kDropFirst);
  EXPECT_EQ(plan.drops, Slots{1});
}

TEST(Planner, PaysForTheCopyOfASharedTail) {
  Scene scene;
  scene.limits.total_blocks = 3;
  CandidateView& fork = scene.Decode(6);
  fork.tail_shared = true;
  scene.free_blocks = 1;
  StepPlan plan = scene.Plan();
  ASSERT_EQ(plan.rows.size(), 1u);
  EXPECT_TRUE(plan.rows[0].copies_tail);
  EXPECT_EQ(plan.rows[0].target_blocks, 2u) << "the copy replaces a block";
  scene.free_blocks = 0;
  EXPECT_EQ(scene.Plan().outcome, PlanOutcome::kCapacityDeferred);
}

// --- Who gives way --------------------------------------------------------------------------------------------------

TEST(Planner, DropsDormantResidentsLeastRecentlyUsedFirstBeforeAnybodyElse) {
  Scene scene;
  scene.free_blocks = 0;
  scene.Dormant(8).last_progress_step = 50;
  scene.Dormant(8).last_progress_step = 40;
  scene.Decode(5);
  scene.Decode(9);
  scene.Decode(8);
  const StepPlan plan = scene.Plan();
  EXPECT_EQ(plan.outcome, PlanOutcome::kDropFirst);
  EXPECT_EQ(plan.drops, Slots{1}) << "its two blocks are enough for both decodes that grow";
}

TEST(Planner, PreemptsTheLowestPriorityThenTheYoungest) {
  Scene scene;
  scene.free_blocks = 0;
  CandidateView& needy = scene.Decode(9);
  scene.Decode(8);
  CandidateView& low = scene.Decode(8);
  scene.Decode(8);
  needy.last_progress_step = 90;
  EXPECT_EQ(scene.Plan().drops, Slots{3}) << "the youngest";
  low.priority = -1;
  EXPECT_EQ(scene.Plan().drops, Slots{2}) << "the lowest priority, though older";
}

TEST(Planner, PreemptsAsManyAsItTakesAndNoMore) {
  Scene scene;
  scene.free_blocks = 0;
  CandidateView& needy = scene.Decode(9);
  needy.sequence_tokens = 16;  // recomputes after a cancelled turn: needs two more blocks
  needy.decoding = false;
  needy.last_progress_step = 80;  // urgent
  scene.Decode(3);
  scene.Decode(3);
  scene.Decode(3);
  EXPECT_EQ(scene.Plan().drops, (Slots{3, 2}));
}

TEST(Planner, NeverPreemptsWhatRanksAboveTheOneInNeed) {
  Scene scene;
  scene.free_blocks = 0;
  scene.Decode(9);
  scene.Decode(9);
  EXPECT_EQ(scene.Plan().drops, Slots{1}) << "the older one is served, the younger gives way";

  Scene ranked;
  ranked.free_blocks = 0;
  ranked.Decode(8).priority = 1;
  ranked.Decode(9);
  const StepPlan plan = ranked.Plan();
  EXPECT_TRUE(plan.drops.empty());
  EXPECT_EQ(RowsOf(plan), (PlannedRows{{0, 1}})) << "the one in need waits";
}

TEST(Planner, PreemptsNobodyBeforeItProducedAToken) {
  Scene scene;
  scene.free_blocks = 0;
  scene.Decode(9);
  scene.Prefill(20, 8);
  const StepPlan plan = scene.Plan();
  EXPECT_TRUE(plan.drops.empty());
  EXPECT_EQ(RowsOf(plan), (PlannedRows{{1, 12}})) << "it has all its blocks in hand and goes on to its token";
}

TEST(Planner, DropsNobodyWhenDroppingDoesNotHelp) {
  Scene scene;
  scene.free_blocks = 0;
  scene.Decode(8).priority = 1;
  scene.Prefill(12, 8);
  scene.Dormant(4);
  scene.Waiting(8);
  const StepPlan plan = scene.Plan();
  EXPECT_TRUE(plan.drops.empty()) << "one block of the dormant one is not the four that are wanted";
  EXPECT_EQ(plan.rows.size(), 2u);
}

TEST(Planner, AnAdmissionPreemptsLowerPrioritiesOnly) {
  Scene scene;
  scene.free_blocks = 0;
  scene.Decode(17);  // cannot grow: the other one ranks above it
  scene.Decode(8).priority = 1;
  CandidateView& waiting = scene.Waiting(4);
  EXPECT_TRUE(scene.Plan().drops.empty()) << "equals keep their place";
  waiting.priority = 1;
  EXPECT_EQ(scene.Plan().drops, Slots{0});
  scene.views[0].preemptible = false;
  EXPECT_TRUE(scene.Plan().drops.empty());
}

TEST(Planner, NeverReadmitsInTheAttemptThatPreempted) {
  Scene scene;
  scene.Waiting(4).dropped_at_attempt = scene.attempt;
  scene.Waiting(4);
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{1, 4}}));
  scene.attempt += 1;
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{0, 4}, {1, 4}}));
}

TEST(Planner, ADroppedRequestGetsNoRow) {
  Scene scene;
  scene.free_blocks = 0;
  scene.Decode(9).last_progress_step = 95;
  scene.Decode(8);
  const StepPlan plan = scene.Plan();
  EXPECT_EQ(plan.drops, Slots{1});
  EXPECT_EQ(RowsOf(plan), (PlannedRows{{0, 1}}));
}

// --- Urgency --------------------------------------------------------------------------------------------------------

TEST(Planner, AWaitOfHalfTheBoundMakesARequestUrgent) {
  Scene scene;
  scene.limits.max_rows = 1;
  scene.Decode(2);
  CandidateView& waiting = scene.Waiting(2);
  waiting.last_progress_step = scene.committed_steps - 15;
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{0, 1}}));
  waiting.last_progress_step = scene.committed_steps - 16;
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{1, 2}}));
}

TEST(Planner, OneFurtherBackInTheQueueIsUrgentLater) {
  Scene scene;
  scene.limits.max_rows = 2;
  scene.Decode(2);
  scene.Decode(2);
  for (int i = 0; i < 4; ++i) scene.Waiting(2).last_progress_step = scene.committed_steps - 20;
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{2, 2}, {3, 2}}));
  for (size_t index = 2; index < 4; ++index) scene.views[index].last_progress_step = scene.committed_steps;
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{0, 1}, {1, 1}})) << "the last two may wait twice as long";
  for (size_t index = 4; index < 6; ++index) scene.views[index].last_progress_step = scene.committed_steps - 48;
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{4, 2}, {5, 2}})) << "half of the smallest bound is left";
}

TEST(Planner, ServesTheLongestWaitingUrgentOneFirst) {
  Scene scene;
  scene.limits.max_rows = 2;
  scene.Decode(2).last_progress_step = 70;
  scene.Waiting(2).last_progress_step = 60;
  scene.Decode(2).last_progress_step = 50;
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{2, 1}, {1, 2}}));
}

TEST(Planner, PriorityDoesNotOutweighUrgency) {
  Scene scene;
  scene.limits.max_rows = 1;
  scene.Decode(2).priority = std::numeric_limits<int32_t>::max();
  CandidateView& low = scene.Waiting(2);
  low.priority = std::numeric_limits<int32_t>::min();
  low.last_progress_step = 84;
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{1, 2}}));
}

TEST(Planner, AnUrgentRequestTakesTheHeadroomAndPreemptsWhoeverIsNotUrgent) {
  Scene scene;
  scene.limits.total_blocks = 4;
  scene.Decode(8).priority = 3;
  scene.Decode(4);
  CandidateView& waiting = scene.Waiting(4);
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{0, 1}, {1, 1}}));
  waiting.last_progress_step = 50;
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{0, 1}, {1, 1}, {2, 4}}));
  waiting.sequence_tokens = 12;
  EXPECT_EQ(scene.Plan().drops, (Slots{1, 0})) << "priority protects nobody from it, but those above go last";
}

TEST(Planner, AnUrgentRequestPreemptsUrgentOnesThatWaitedLess) {
  Scene scene;
  scene.free_blocks = 0;
  scene.Decode(8).last_progress_step = 40;
  scene.Decode(8).last_progress_step = 60;
  scene.Waiting(4).last_progress_step = 50;
  scene.limits.max_rows = 2;
  EXPECT_EQ(scene.Plan().drops, Slots{1});
}

TEST(Planner, TheSmallestBoundMakesEverybodyUrgentAfterOneStep) {
  Scene scene;
  scene.limits.max_wait_steps = 1;
  scene.limits.max_rows = 1;
  scene.Decode(2).last_progress_step = scene.committed_steps;
  scene.Waiting(2).last_progress_step = scene.committed_steps - 1;
  EXPECT_EQ(RowsOf(scene.Plan()), (PlannedRows{{1, 2}}));
}

TEST(Planner, KeepsNothingFromOnePlanToTheNext) {
  Scene scene;
  scene.free_blocks = 0;
  scene.Decode(9).last_progress_step = 95;
  scene.Decode(8);
  const ArrivalPolicy policy;
  Planner planner(policy);
  StepPlan plan;
  Scene::Queues queues;
  planner.Reserve(scene.limits, 2, plan);
  planner.Plan(scene.View(policy, queues), plan);
  EXPECT_EQ(plan.drops, Slots{1});
  scene.free_blocks = 4;
  planner.Plan(scene.View(policy, queues), plan);
  EXPECT_TRUE(plan.drops.empty());
  EXPECT_EQ(RowsOf(plan), (PlannedRows{{0, 1}, {1, 1}}));
  EXPECT_EQ(plan.scheduled_tokens, 2u);
}

}  // namespace
}  // namespace oga::testing
