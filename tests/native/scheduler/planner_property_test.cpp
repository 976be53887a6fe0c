// Thousands of random situations: every plan is valid, makes progress, and equals what the rules say when stated
// slowly.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "native/scheduler/reference_planner.h"
#include "native/scheduler/scene.h"

namespace oga::testing {
namespace {

class SceneMaker {
 public:
  explicit SceneMaker(uint32_t seed) : random_(seed) {}

  Scene Make() {
    Scene scene;
    scene.limits.block_size_slots = 1 + Draw(5);
    scene.limits.max_rows = 1 + Draw(8);
    scene.limits.max_scheduled_tokens = 1 + Draw(30);
    scene.limits.chunk_size_tokens = Draw(2) == 0 ? 0 : 1 + Draw(6);
    scene.limits.max_wait_steps = 1 + Draw(40);
    shared_blocks_ = 0;
    const uint32_t candidates = Draw(14);
    for (uint32_t i = 0; i < candidates; ++i) AddCandidate(scene);
    uint32_t owned = 0;  // blocks, each counted once
    uint32_t residents = 0;
    for (const CandidateView& view : scene.views) {
      owned += view.owned_blocks;
      residents += view.resident();
    }
    owned -= shared_blocks_;
    scene.limits.total_blocks = std::max(1u, owned + (Draw(2) == 0 ? 0 : Draw(20)));
    scene.free_blocks = scene.limits.total_blocks - owned;
    scene.limits.max_resident_requests = std::max(1u, residents + (Draw(2) == 0 ? 0 : Draw(4)));
    return scene;
  }

 private:
  uint32_t Draw(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

  void AddCandidate(Scene& scene) {
    const uint32_t tokens = 1 + Draw(30);
    CandidateView* view = nullptr;
    switch (Draw(5)) {
      case 0: view = &scene.Decode(1 + tokens); break;
      case 1: {  // inside its prompt, with all its blocks
        const uint32_t more = 1 + Draw(10);
        view = &scene.Prefill(tokens + more, tokens);
        break;
      }
      case 2:  // a continuation: old blocks, new input
        view = &scene.Decode(1 + tokens);
        view->decoding = false;
        view->sequence_tokens += Draw(10);
        if (tokens % scene.limits.block_size_slots != 0 && Draw(3) == 0) {
          view->tail_shared = true;
          shared_blocks_ += scene.Dormant(tokens).owned_blocks;  // its sibling, which shares all of its blocks
        }
        break;
      case 3: view = &scene.Dormant(tokens); break;
      default:
        view = &scene.Waiting(tokens);
        if (Draw(6) == 0) view->dropped_at_attempt = scene.attempt;
    }
    view->priority = Draw(3) == 0 ? static_cast<int32_t>(Draw(3)) - 1 : 0;
    view->last_progress_step = scene.committed_steps - Draw(40);
  }

  std::mt19937 random_;
  uint32_t shared_blocks_ = 0;
};

// What must hold of any plan, whatever the rules of service are.
void CheckValid(const Scene& scene, const SchedulerView& view, const StepPlan& plan) {
  const PlanLimits& limits = scene.limits;
  std::map<RequestIndex, int> mentions;
  int64_t free = view.free_blocks;
  int64_t residents = static_cast<int64_t>(view.running.size() + view.dormant.size());
  for (const RequestIndex index : plan.drops) {
    ++mentions[index];
    ASSERT_TRUE(scene.views[index].resident());
    ASSERT_TRUE(!scene.views[index].live || scene.views[index].preemptible);
    free += scene.views[index].owned_blocks;
    --residents;
  }
  for (const RequestIndex index : plan.unserviceable) ++mentions[index];
  uint32_t tokens = 0;
  for (const RowPlan& row : plan.rows) {
    const CandidateView& candidate = scene.views[row.index];
    ++mentions[row.index];
    ASSERT_TRUE(candidate.live);
    ASSERT_NE(candidate.dropped_at_attempt, scene.attempt);
    ASSERT_EQ(row.past_tokens, candidate.cached_tokens);
    ASSERT_EQ(row.pending_tokens, candidate.pending_tokens());
    ASSERT_GE(row.scheduled_tokens, 1u);
    ASSERT_LE(row.scheduled_tokens, row.pending_tokens);
    ASSERT_GE(row.target_blocks, candidate.owned_blocks);
    ASSERT_GE(row.target_blocks * limits.block_size_slots, candidate.sequence_tokens);
    ASSERT_EQ(row.copies_tail, candidate.tail_shared);
    ASSERT_TRUE(limits.chunk_size_tokens == 0 || row.scheduled_tokens <= limits.chunk_size_tokens);
    ASSERT_TRUE(candidate.chunk_limit_tokens == 0 || row.scheduled_tokens <= candidate.chunk_limit_tokens);
    free -= row.target_blocks - candidate.owned_blocks + (row.copies_tail ? 1 : 0);
    residents += !candidate.resident();
    tokens += row.scheduled_tokens;
  }
  for (const auto& [index, count] : mentions) ASSERT_EQ(count, 1) << "index " << index;
  ASSERT_GE(free, 0) << "the rows take more blocks than there are";
  ASSERT_LE(residents, limits.max_resident_requests);
  ASSERT_EQ(tokens, plan.scheduled_tokens);
  ASSERT_LE(tokens, limits.max_scheduled_tokens);
  ASSERT_LE(plan.rows.size(), limits.max_rows);
}

// Somebody runs, gives way or is given up whenever there is anybody who could run.
void CheckProgress(const Scene& scene, const StepPlan& plan) {
  size_t could_run = 0;
  for (const CandidateView& view : scene.views) {
    const bool fits = scene.Blocks(view.sequence_tokens) <= scene.limits.total_blocks;
    could_run += view.live && fits && view.dropped_at_attempt != scene.attempt;
  }
  const bool progress = !plan.rows.empty() || !plan.drops.empty() || !plan.unserviceable.empty();
  ASSERT_TRUE(could_run == 0 || progress);
}

void CheckEqual(const StepPlan& plan, const StepPlan& expected) {
  ASSERT_EQ(plan.outcome, expected.outcome);
  ASSERT_EQ(plan.drops, expected.drops);
  ASSERT_EQ(plan.unserviceable, expected.unserviceable);
  ASSERT_EQ(plan.scheduled_tokens, expected.scheduled_tokens);
  ASSERT_EQ(RowsOf(plan), RowsOf(expected));
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    ASSERT_EQ(plan.rows[i].past_tokens, expected.rows[i].past_tokens);
    ASSERT_EQ(plan.rows[i].pending_tokens, expected.rows[i].pending_tokens);
    ASSERT_EQ(plan.rows[i].target_blocks, expected.rows[i].target_blocks);
    ASSERT_EQ(plan.rows[i].copies_tail, expected.rows[i].copies_tail);
  }
}

TEST(Planner, EveryRandomPlanIsValidMakesProgressAndFollowsTheRules) {
  const ArrivalPolicy arrival;
  const ShortestPromptPolicy shortest;
  SceneMaker maker(1);
  std::map<PlanOutcome, int> outcomes;
  for (int round = 0; round < 20000; ++round) {
    const SchedulerPolicy& policy = round % 3 == 0 ? static_cast<const SchedulerPolicy&>(shortest) : arrival;
    const Scene scene = maker.Make();
    const StepPlan plan = scene.Plan(policy);
    Scene::Queues queues;
    const SchedulerView view = scene.View(policy, queues);
    CheckValid(scene, view, plan);
    CheckProgress(scene, plan);
    CheckEqual(plan, ReferencePlanner(policy, view).Plan());
    ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "round " << round;
    ++outcomes[plan.outcome];
  }
  // The scenes reach every outcome.
  EXPECT_GT(outcomes[PlanOutcome::kExecutable], 1000);
  EXPECT_GT(outcomes[PlanOutcome::kDropFirst], 1000);
  EXPECT_GT(outcomes[PlanOutcome::kCapacityDeferred], 10);
  EXPECT_GT(outcomes[PlanOutcome::kNoWork], 100);
}

}  // namespace
}  // namespace oga::testing
