#include "scheduler/planner.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace oga {

namespace {

uint32_t CeilDiv(uint32_t value, uint32_t divisor) { return (value + divisor - 1) / divisor; }

// The order in which residents yield and keep their blocks: higher priority, then older.
bool RanksAbove(const CandidateView& a, const CandidateView& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  return a.arrival < b.arrival;
}

bool ServedBefore(const CandidateView* a, const CandidateView* b) {
  if (a->priority != b->priority) return a->priority > b->priority;
  if (a->last_progress_step != b->last_progress_step) return a->last_progress_step < b->last_progress_step;
  return a->arrival < b->arrival;
}

bool WaitedLonger(const CandidateView* a, const CandidateView* b) {
  if (a->last_progress_step != b->last_progress_step) return a->last_progress_step < b->last_progress_step;
  return a->arrival < b->arrival;
}

// Usually the input is already in order, and then this is one linear pass.
template <typename Container, typename Less>
void SortIfNeeded(Container& items, Less less) {
  if (!std::is_sorted(items.begin(), items.end(), less)) std::sort(items.begin(), items.end(), less);
}

}  // namespace

void Planner::Reserve(const PlanLimits& limits, size_t indices, StepPlan& plan) {
  const size_t rows = std::min(limits.max_rows, limits.max_scheduled_tokens);
  picks_.reserve(rows);
  marks_.resize(std::max(marks_.size(), indices));
  order_.reserve(marks_.size());
  plan.rows.reserve(rows);
  plan.drops.reserve(marks_.size());
  plan.unserviceable.reserve(marks_.size());
}

void Planner::Plan(const SchedulerView& view, StepPlan& plan) {
  plan.Clear();
  picks_.clear();
  std::fill(marks_.begin(), marks_.end(), Mark::kNone);
  view_ = &view;
  plan_ = &plan;
  max_rows_ = std::min(view.limits.max_rows, view.limits.max_scheduled_tokens);
  free_blocks_ = view.free_blocks;
  residents_ = view.running.size() + view.dormant.size();
  lowest_priority_ = std::numeric_limits<int32_t>::max();
  for (const CandidateView* candidate : view.running) {
    lowest_priority_ = std::min(lowest_priority_, candidate->priority);
  }

  SelectUrgent();
  SelectDecodes();
  SelectPrefills();
  EmitRows();
  plan.outcome = Outcome();
  if (view.explain) ExplainSkips();
}

SkipReason Planner::WhySkipped(const CandidateView& candidate) const {
  if (candidate.dropped_at_attempt == view_->attempt) return SkipReason::kJustDropped;
  if (marks_[candidate.index] == Mark::kHeldBack) return SkipReason::kPrefix;
  if (!RowsLeft()) return SkipReason::kRows;
  const bool full = !candidate.resident() && residents_ >= view_->limits.max_resident_requests;
  return full ? SkipReason::kPlaces : SkipReason::kBlocks;
}

void Planner::ExplainSkips() {
  for (const auto& candidates : {view_->running, view_->waiting}) {
    for (const CandidateView* candidate : candidates) {
      const Mark mark = marks_[candidate->index];
      if (mark == Mark::kNone || mark == Mark::kHeldBack)
        plan_->skips.push_back({candidate->index, WhySkipped(*candidate)});
    }
  }
}

PlanOutcome Planner::Outcome() const {
  if (!plan_->drops.empty()) return PlanOutcome::kDropFirst;
  if (!plan_->rows.empty()) return PlanOutcome::kExecutable;
  const bool deferred = view_->running.size() + view_->waiting.size() > plan_->unserviceable.size();
  return deferred ? PlanOutcome::kCapacityDeferred : PlanOutcome::kNoWork;
}

// The step by which a request must have progressed.
uint64_t Planner::Due(const CandidateView& candidate) const {
  return candidate.resident() ? candidate.last_progress_step + view_->limits.max_wait_steps : candidate.due_step;
}

bool Planner::IsUrgent(uint64_t due_step) const {
  const uint64_t lead = view_->limits.max_wait_steps - std::max(1u, view_->limits.max_wait_steps / 2);
  return due_step <= view_->committed_steps + lead;
}

bool Planner::IsDueBefore(const CandidateView& a, const CandidateView& b) const {
  return Due(a) != Due(b) ? Due(a) < Due(b) : WaitedLonger(&a, &b);
}

void Planner::SelectUrgent() {
  order_.clear();
  for (const CandidateView* candidate : view_->running) {
    if (IsUrgent(Due(*candidate))) order_.push_back(candidate);
  }
  if (IsUrgent(view_->next_due_step)) {
    for (const CandidateView* candidate : view_->waiting) {
      if (IsUrgent(candidate->due_step)) order_.push_back(candidate);
    }
  }
  SortIfNeeded(order_, [this](const CandidateView* a, const CandidateView* b) { return IsDueBefore(*a, *b); });
  for (const CandidateView* candidate : order_) {
    if (!RowsLeft()) return;
    if (Unmarked(*candidate)) TrySelect(*candidate, /*urgent=*/true);
  }
}

void Planner::SelectDecodes() {
  order_.clear();
  for (const CandidateView* candidate : view_->running) {
    if (candidate->decoding && Unmarked(*candidate)) order_.push_back(candidate);
  }
  SortIfNeeded(order_, ServedBefore);
  for (const CandidateView* candidate : order_) {
    if (!RowsLeft()) return;
    // One selected before may have dropped this one.
    if (Unmarked(*candidate)) TrySelect(*candidate, /*urgent=*/false);
  }
}

void Planner::SelectPrefills() {
  order_.clear();
  for (const CandidateView* candidate : view_->running) {
    if (!candidate->decoding && Unmarked(*candidate)) order_.push_back(candidate);
  }
  const auto precedes = [this](const CandidateView* a, const CandidateView* b) { return policy_.Precedes(*a, *b); };
  SortIfNeeded(order_, precedes);

  // A merge of two ordered lists: residents that are still prefilling, and the waiting.
  auto resident = order_.begin();
  auto waiting = view_->waiting.begin();
  while (RowsLeft() && (resident != order_.end() || waiting != view_->waiting.end())) {
    const bool take_resident =
        waiting == view_->waiting.end() || (resident != order_.end() && !policy_.Precedes(**waiting, **resident));
    const CandidateView& candidate = take_resident ? **resident++ : **waiting++;
    if (Unmarked(candidate)) TrySelect(candidate, /*urgent=*/false);
  }
}

void Planner::TrySelect(const CandidateView& candidate, bool urgent) {
  if (candidate.dropped_at_attempt == view_->attempt) return;
  const PlanLimits& limits = view_->limits;
  const uint32_t target = std::max(candidate.owned_blocks, CeilDiv(candidate.sequence_tokens, limits.block_size_slots));
  if (target > limits.total_blocks) {
    marks_[candidate.index] = Mark::kUnserviceable;
    plan_->unserviceable.push_back(candidate.index);
    return;
  }
  // A copy needs room beside its original. Where there can never be any, the request gives up its blocks and is computed
  // again.
  if (candidate.tail_shared && target + 1 > limits.total_blocks) {
    Drop(candidate);
    return;
  }
  // An admission takes at least one block: behind a full pool with nothing to drop there is no need to look further.
  if (free_blocks_ == 0 && !candidate.resident() && !MayDropFor(candidate, urgent)) return;
  const uint32_t first_hit = static_cast<uint32_t>(plan_->hits.size());
  const PrefixHit hit = FindPrefix(candidate);
  const uint32_t copies = candidate.tail_shared ? 1 : 0;
  const uint32_t blocks = target - candidate.owned_blocks - hit.blocks + hit.retired_blocks + copies;
  const bool waits = !urgent && WorthWaiting(candidate, hit.blocks);
  if (waits) marks_[candidate.index] = Mark::kHeldBack;
  if (waits || !FindRoom(candidate, blocks, urgent)) {
    plan_->hits.resize(first_hit);
    return;
  }
  free_blocks_ -= blocks;
  if (!candidate.resident()) ++residents_;
  marks_[candidate.index] = Mark::kSelected;
  const uint32_t past_tokens = candidate.cached_tokens + hit.blocks * limits.block_size_slots;
  picks_.push_back({&candidate, target, past_tokens, first_hit, hit.blocks});
}

PrefixHit Planner::FindPrefix(const CandidateView& candidate) {
  if (view_->prefix == nullptr || candidate.resident()) return {};
  return view_->prefix->Find(candidate.index, plan_->hits);
}

bool Planner::WorthWaiting(const CandidateView& candidate, uint32_t hit_blocks) const {
  if (view_->prefix == nullptr || candidate.resident()) return false;
  const auto leads = [&](const CandidateView& leader, uint32_t past_tokens) {
    const bool still_to_come = past_tokens / view_->limits.block_size_slots <= hit_blocks;
    return !leader.decoding && still_to_come && view_->prefix->WillPublish(leader.index, candidate.index, hit_blocks);
  };
  // The prefills of this step, and the residents that may still get a row in it.
  return std::any_of(picks_.begin(), picks_.end(),
                     [&](const Pick& pick) { return leads(*pick.candidate, pick.past_tokens); }) ||
         std::any_of(order_.begin(), order_.end(), [&](const CandidateView* leader) {
           // One that is on its way to a token has its blocks in hand: it will progress.
           return Unmarked(*leader) && !leader->preemptible && leads(*leader, leader->cached_tokens);
         });
}

// Whether anybody could give way to the candidate; a cheap look that may say yes too often.
bool Planner::MayDropFor(const CandidateView& candidate, bool urgent) const {
  return urgent || candidate.resident() || !view_->dormant.empty() || candidate.priority > lowest_priority_;
}

bool Planner::FindRoom(const CandidateView& candidate, uint32_t blocks, bool urgent) {
  const bool admits = !candidate.resident();
  // Those already in grow soon; an admission that leaves them nothing would be preempted right away.
  const uint64_t headroom = admits && !urgent ? std::max(view_->running.size(), picks_.size()) : 0;
  const uint64_t wanted = blocks + headroom;
  const size_t places = view_->limits.max_resident_requests;
  const auto fits = [&] { return free_blocks_ >= wanted && residents_ + admits <= places; };
  if (fits()) return true;
  // The common refusal, decided without a look at every resident: behind a full pool the queue may be long.
  if (!MayDropFor(candidate, urgent)) return false;

  uint64_t obtainable = free_blocks_;
  size_t droppable = 0;
  const auto count = [&](const CandidateView* victim) {
    if (!MayDisplace(candidate, *victim, urgent)) return;
    obtainable += victim->owned_blocks;
    ++droppable;
  };
  for (const CandidateView* victim : view_->dormant) count(victim);
  for (const CandidateView* victim : view_->running) count(victim);
  if (obtainable < wanted || residents_ + admits > places + droppable) return false;

  while (!fits()) {
    const CandidateView* victim = NextVictim(candidate, urgent);
    OGA_CHECK(victim != nullptr);
    Drop(*victim);
  }
  return true;
}

bool Planner::MayDisplace(const CandidateView& candidate, const CandidateView& victim, bool urgent) const {
  if (&victim == &candidate || !Unmarked(victim)) return false;
  if (!victim.live) return true;
  if (!victim.preemptible) return false;
  if (urgent) return !IsUrgent(Due(victim)) || IsDueBefore(candidate, victim);
  // An admission displaces only what has a lower priority; growth displaces everything that ranks below.
  return candidate.resident() ? RanksAbove(candidate, victim) : candidate.priority > victim.priority;
}

const CandidateView* Planner::NextVictim(const CandidateView& candidate, bool urgent) const {
  for (const CandidateView* victim : view_->dormant) {
    if (MayDisplace(candidate, *victim, urgent)) return victim;
  }
  const CandidateView* lowest = nullptr;
  for (const CandidateView* victim : view_->running) {
    if (!MayDisplace(candidate, *victim, urgent)) continue;
    if (lowest == nullptr || RanksAbove(*lowest, *victim)) lowest = victim;
  }
  return lowest;
}

void Planner::Drop(const CandidateView& victim) {
  marks_[victim.index] = Mark::kDropped;
  free_blocks_ += victim.owned_blocks;
  --residents_;
  plan_->drops.push_back(victim.index);
}

void Planner::EmitRows() {
  SortIfNeeded(picks_, [this](const Pick& a, const Pick& b) {
    if (a.candidate->decoding != b.candidate->decoding) return a.candidate->decoding;
    if (a.candidate->decoding) return a.candidate->arrival < b.candidate->arrival;
    return policy_.Precedes(*a.candidate, *b.candidate);
  });
  uint32_t budget = view_->limits.max_scheduled_tokens - static_cast<uint32_t>(picks_.size());
  const uint32_t chunk = view_->limits.chunk_size_tokens;
  for (const Pick& pick : picks_) {
    const CandidateView& candidate = *pick.candidate;
    RowPlan row;
    row.index = candidate.index;
    row.past_tokens = pick.past_tokens;
    row.pending_tokens = candidate.sequence_tokens - pick.past_tokens;
    row.first_hit = pick.first_hit;
    row.hit_blocks = pick.hit_blocks;
    row.target_blocks = pick.target_blocks;
    row.copies_tail = candidate.tail_shared;
    uint32_t wanted = chunk == 0 ? row.pending_tokens : std::min(row.pending_tokens, chunk);
    if (candidate.chunk_limit_tokens != 0) wanted = std::min(wanted, candidate.chunk_limit_tokens);
    const uint32_t extra = std::min(wanted - 1, budget);
    row.scheduled_tokens = 1 + extra;
    budget -= extra;
    plan_->scheduled_tokens += row.scheduled_tokens;
    plan_->rows.push_back(row);
  }
}

}  // namespace oga
