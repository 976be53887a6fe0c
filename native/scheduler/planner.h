// Chooses the rows of the next step. A pure function of the view: it changes nothing but the plan it fills.
//
// Order of service:
//  1. urgent requests: no progress for half of max_wait_steps, the longest-waiting first. This is what bounds every wait:
//     half the bound is slack for the urgent ones to take turns in.
//  2. resident decodes: by priority, then least recently served. When all fit, that is all of them.
//  3. prefills, resident and waiting together, in the order of the policy.
// Every selected row gets one token; the rest of the token budget expands prefills in row order, bounded by the chunk size.
// A request that does not fit is skipped, never waited for.
//
// Blocks. A request is admitted with the blocks of all its pending tokens, so it reaches its next token without asking
// again; until then it is not preemptible. When blocks are short, dormant residents are dropped (least recently used
// first), then preemptible ones: lowest priority first, youngest among equals, and only ones that rank below the request
// in need, unless that one is urgent. The highest-ranking runnable resident therefore always progresses:
// either somebody is still on the way to a token with all blocks in hand, or everybody below it can be preempted.
//
// Prefix cache. A request that is admitted takes the leading blocks the cache already holds. One that lacks a block which
// an earlier prefill of this step is about to compute waits for it instead of computing it too, for as many steps as that
// takes, unless it is urgent: requests that arrive together share their beginning.
//
// Not thread-safe: it keeps scratch. Allocates nothing once its vectors have grown to the limits.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/policy.h"
#include "step/plan.h"
#include "step/views.h"

namespace oga {

class Planner {
 public:
  explicit Planner(const SchedulerPolicy& policy) : policy_(policy) {}

  // Makes room for plans under these limits over requests whose index is below `indices`, so that Plan does not allocate.
  void Reserve(const PlanLimits& limits, size_t indices, StepPlan& plan);

  void Plan(const SchedulerView& view, StepPlan& plan);

 private:
  enum class Mark : uint8_t { kNone, kSelected, kDropped, kUnserviceable, kHeldBack };

  struct Pick {
    const CandidateView* candidate;
    uint32_t target_blocks;
    uint32_t past_tokens;
    uint32_t first_hit;
    uint32_t hit_blocks;
  };

  void SelectUrgent();
  void SelectDecodes();
  void SelectPrefills();
  void EmitRows();
  void ExplainSkips();
  PlanOutcome Outcome() const;

  bool RowsLeft() const { return picks_.size() < max_rows_; }
  bool Unmarked(const CandidateView& candidate) const { return marks_[candidate.index] == Mark::kNone; }
  uint64_t Due(const CandidateView& candidate) const;
  bool IsUrgent(uint64_t due_step) const;
  bool IsDueBefore(const CandidateView& a, const CandidateView& b) const;

  PrefixHit FindPrefix(const CandidateView& candidate);
  bool WorthWaiting(const CandidateView& candidate, uint32_t hit_blocks) const;

  // Selects the candidate if it fits, dropping others for it where the rules allow that.
  void TrySelect(const CandidateView& candidate, bool urgent);
  bool MayDropFor(const CandidateView& candidate, bool urgent) const;
  bool FindRoom(const CandidateView& candidate, uint32_t blocks, bool urgent);
  SkipReason WhySkipped(const CandidateView& candidate) const;
  bool MayDisplace(const CandidateView& candidate, const CandidateView& victim, bool urgent) const;
  const CandidateView* NextVictim(const CandidateView& candidate, bool urgent) const;
  void Drop(const CandidateView& victim);

  const SchedulerPolicy& policy_;
  const SchedulerView* view_ = nullptr;
  StepPlan* plan_ = nullptr;
  size_t max_rows_ = 0;
  uint32_t free_blocks_ = 0;     // as the plan goes
  size_t residents_ = 0;         // as the plan goes
  int32_t lowest_priority_ = 0;  // among the running
  std::vector<Pick> picks_;
  std::vector<Mark> marks_;                  // by index
  std::vector<const CandidateView*> order_;  // scratch of the selection at hand
};

}  // namespace oga
