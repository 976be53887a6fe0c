// The planner's rules stated once more, slowly: whole lists are searched where the planner keeps marks and counts. The
// header of scheduler/planner.h is the text both follow.
#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>
#include <vector>

#include "scheduler/policy.h"
#include "step/plan.h"
#include "step/views.h"

namespace oga::testing {

class ReferencePlanner {
 public:
  ReferencePlanner(const SchedulerPolicy& policy, const SchedulerView& view) : policy_(policy), view_(view) {}

  StepPlan Plan() {
    Serve(All(view_.running, view_.waiting), &ReferencePlanner::Urgent, &ReferencePlanner::Due, /*urgent=*/true);
    Serve(All(view_.running, {}), &ReferencePlanner::Decoding, &ReferencePlanner::Served, /*urgent=*/false);
    Serve(All(view_.running, view_.waiting), &ReferencePlanner::Filling, &ReferencePlanner::First, /*urgent=*/false);
    Emit();
    const size_t live = view_.running.size() + view_.waiting.size();
    plan_.outcome = !plan_.drops.empty()                ? PlanOutcome::kDropFirst
                    : !plan_.rows.empty()               ? PlanOutcome::kExecutable
                    : live > plan_.unserviceable.size() ? PlanOutcome::kCapacityDeferred
                                                        : PlanOutcome::kNoWork;
    return plan_;
  }

 private:
  using View = CandidateView;
  using Views = std::vector<const View*>;

  static Views All(std::span<const View* const> a, std::span<const View* const> b) {
    Views all(a.begin(), a.end());
    all.insert(all.end(), b.begin(), b.end());
    return all;
  }

  // Who belongs to a round of service, and who goes first in it.
  uint64_t DueStep(const View& v) const {
    return v.resident() ? v.last_progress_step + view_.limits.max_wait_steps : v.due_step;
  }
  // Half of the smallest bound is left, rounded down.
  bool Urgent(const View& v) const {
    const uint64_t bound = view_.limits.max_wait_steps;
    return DueStep(v) <= view_.committed_steps + bound - std::max<uint64_t>(1, bound / 2);
  }
  bool Decoding(const View& v) const { return v.decoding; }
  bool Filling(const View& v) const { return !v.decoding; }
  bool Due(const View& a, const View& b) const {
    return std::tuple(DueStep(a), a.last_progress_step, a.arrival) <
           std::tuple(DueStep(b), b.last_progress_step, b.arrival);
  }
  bool Served(const View& a, const View& b) const {
    return std::tuple(-int64_t{a.priority}, a.last_progress_step, a.arrival) <
           std::tuple(-int64_t{b.priority}, b.last_progress_step, b.arrival);
  }
  bool First(const View& a, const View& b) const { return policy_.Precedes(a, b); }

  void Serve(Views round, bool (ReferencePlanner::*belongs)(const View&) const,
             bool (ReferencePlanner::*before)(const View&, const View&) const, bool urgent) {
    std::erase_if(round, [&](const View* v) { return !(this->*belongs)(*v) || Settled(*v); });
    std::stable_sort(round.begin(), round.end(), [&](const View* a, const View* b) { return (this->*before)(*a, *b); });
    for (const View* v : round) {
      if (picked_.size() < Rows() && !Settled(*v) && v->dropped_at_attempt != view_.attempt) Select(*v, urgent);
    }
  }

  size_t Rows() const { return std::min(view_.limits.max_rows, view_.limits.max_scheduled_tokens); }

  bool Settled(const View& v) const {
    return picked_.contains(&v) || Contains(plan_.drops, v.index) || Contains(plan_.unserviceable, v.index);
  }
  static bool Contains(const std::vector<RequestIndex>& slots, RequestIndex index) {
    return std::find(slots.begin(), slots.end(), index) != slots.end();
  }

  uint32_t Target(const View& v) const {
    uint32_t blocks = v.owned_blocks;
    while (blocks * view_.limits.block_size_slots < v.sequence_tokens) ++blocks;
    return blocks;
  }
  uint32_t Cost(const View& v) const { return Target(v) - v.owned_blocks + (v.tail_shared ? 1 : 0); }

  // What is free, and who is resident, once all that was decided so far has happened.
  int64_t Free() const {
    int64_t free = view_.free_blocks;
    for (const View* v : All(view_.running, view_.dormant)) {
      if (Contains(plan_.drops, v->index)) free += v->owned_blocks;
    }
    for (const View* v : picked_) free -= Cost(*v);
    return free;
  }
  size_t Residents() const {
    size_t residents = view_.running.size() + view_.dormant.size() - plan_.drops.size();
    for (const View* v : picked_) residents += !v->resident();
    return residents;
  }

  void Select(const View& v, bool urgent) {
    if (Target(v) > view_.limits.total_blocks) {
      plan_.unserviceable.push_back(v.index);
      return;
    }
    if (v.tail_shared && Target(v) + 1 > view_.limits.total_blocks) {
      plan_.drops.push_back(v.index);
      return;
    }
    const size_t headroom = v.resident() || urgent ? 0 : std::max(view_.running.size(), picked_.size());
    const std::vector<RequestIndex> drops = plan_.drops;
    while (Free() < int64_t{Cost(v)} + static_cast<int64_t>(headroom) ||
           Residents() + !v.resident() > view_.limits.max_resident_requests) {
      const View* victim = Victim(v, urgent);
      if (victim == nullptr) {
        plan_.drops = drops;  // dropping does not help, so nobody is dropped
        return;
      }
      plan_.drops.push_back(victim->index);
    }
    picked_.insert(&v);
  }

  const View* Victim(const View& v, bool urgent) const {
    for (const View* dormant : view_.dormant) {
      if (!Settled(*dormant)) return dormant;
    }
    Views victims = All(view_.running, {});
    std::erase_if(victims,
                  [&](const View* victim) { return victim == &v || Settled(*victim) || !Yields(*victim, v, urgent); });
    if (victims.empty()) return nullptr;
    return *std::max_element(victims.begin(), victims.end(), [](const View* a, const View* b) {
      return std::tuple(-int64_t{a->priority}, a->arrival) < std::tuple(-int64_t{b->priority}, b->arrival);
    });
  }

  bool Yields(const View& victim, const View& v, bool urgent) const {
    if (!victim.preemptible) return false;
    if (urgent) return !Urgent(victim) || Due(v, victim);
    if (victim.priority != v.priority) return victim.priority < v.priority;
    return v.resident() && victim.arrival > v.arrival;
  }

  void Emit() {
    Views rows(picked_.begin(), picked_.end());
    std::sort(rows.begin(), rows.end(), [this](const View* a, const View* b) {
      if (a->decoding != b->decoding) return a->decoding;
      return a->decoding ? a->arrival < b->arrival : policy_.Precedes(*a, *b);
    });
    uint32_t left = view_.limits.max_scheduled_tokens;
    for (size_t i = 0; i < rows.size(); ++i) {
      const uint32_t others = static_cast<uint32_t>(rows.size() - i - 1);  // one token each is kept for them
      RowPlan row;
      row.index = rows[i]->index;
      row.past_tokens = rows[i]->cached_tokens;
      row.pending_tokens = rows[i]->pending_tokens();
      row.target_blocks = Target(*rows[i]);
      row.copies_tail = rows[i]->tail_shared;
      row.scheduled_tokens = std::min(row.pending_tokens, left - others);
      if (view_.limits.chunk_size_tokens != 0) {
        row.scheduled_tokens = std::min(row.scheduled_tokens, view_.limits.chunk_size_tokens);
      }
      if (rows[i]->chunk_limit_tokens != 0) {
        row.scheduled_tokens = std::min(row.scheduled_tokens, rows[i]->chunk_limit_tokens);
      }
      left -= row.scheduled_tokens;
      plan_.scheduled_tokens += row.scheduled_tokens;
      plan_.rows.push_back(row);
    }
  }

  const SchedulerPolicy& policy_;
  const SchedulerView& view_;
  StepPlan plan_;
  std::set<const View*> picked_;
};

}  // namespace oga::testing
