// A scheduler's view, built by hand: what the planner would be shown by an engine in that situation.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/planner.h"
#include "scheduler/policy.h"

namespace oga::testing {

class Scene {
 public:
  PlanLimits limits{.block_size_slots = 4,
                    .total_blocks = 16,
                    .max_rows = 8,
                    .max_scheduled_tokens = 64,
                    .chunk_size_tokens = 0,
                    .max_resident_requests = 16,
                    .max_wait_steps = 32};
  uint64_t committed_steps = 100;
  uint64_t attempt = 7;
  std::optional<uint32_t> free_blocks;      // unset: what the residents leave
  mutable std::deque<CandidateView> views;  // by index; references stay valid; View() works out the due steps

  uint32_t Blocks(uint32_t tokens) const { return (tokens + limits.block_size_slots - 1) / limits.block_size_slots; }

  // A resident whose last token was sampled by its previous step.
  CandidateView& Decode(uint32_t sequence_tokens) {
    CandidateView& view = Add(sequence_tokens);
    view.cached_tokens = sequence_tokens - 1;
    view.owned_blocks = Blocks(view.cached_tokens);
    view.decoding = true;
    view.preemptible = true;
    return view;
  }

  // A resident inside its prompt, with the blocks of all of it.
  CandidateView& Prefill(uint32_t sequence_tokens, uint32_t cached_tokens) {
    CandidateView& view = Add(sequence_tokens);
    view.cached_tokens = cached_tokens;
    view.owned_blocks = Blocks(sequence_tokens);
    return view;
  }

  CandidateView& Waiting(uint32_t sequence_tokens) { return Add(sequence_tokens); }

  CandidateView& Dormant(uint32_t sequence_tokens) {
    CandidateView& view = Add(sequence_tokens);
    view.live = false;
    view.cached_tokens = sequence_tokens;
    view.owned_blocks = Blocks(sequence_tokens);
    return view;
  }

  // The queues as the engine keeps them.
  struct Queues {
    std::vector<const CandidateView*> running, waiting, waiting_by_arrival, dormant;
  };

  // A waiting view is due as if it had had its place since its last progress.
  SchedulerView View(const SchedulerPolicy& policy, Queues& queues) const {
    queues = {};
    SchedulerView view;
    view.free_blocks = limits.total_blocks;
    for (const CandidateView& candidate : views) {
      if (!free_blocks) view.free_blocks -= candidate.owned_blocks;
      if (!candidate.live) {
        queues.dormant.push_back(&candidate);
      } else if (candidate.resident()) {
        queues.running.push_back(&candidate);
      } else {
        queues.waiting.push_back(&candidate);
        queues.waiting_by_arrival.push_back(&candidate);
      }
    }
    const auto by_arrival = [](const auto* a, const auto* b) { return a->arrival < b->arrival; };
    const auto by_age = [](const auto* a, const auto* b) {
      return std::pair(a->last_progress_step, a->arrival) < std::pair(b->last_progress_step, b->arrival);
    };
    std::sort(queues.running.begin(), queues.running.end(), by_arrival);
    std::sort(queues.waiting_by_arrival.begin(), queues.waiting_by_arrival.end(), by_arrival);
    std::sort(queues.dormant.begin(), queues.dormant.end(), by_age);
    std::sort(queues.waiting.begin(), queues.waiting.end(),
              [&policy](const auto* a, const auto* b) { return policy.Precedes(*a, *b); });
    view.limits = limits;
    for (size_t place = 0; place < queues.waiting_by_arrival.size(); ++place) {
      CandidateView& waiting = views[queues.waiting_by_arrival[place]->index];
      waiting.due_step = waiting.last_progress_step + WaitBound(limits, place);
      view.next_due_step = std::min(view.next_due_step, waiting.due_step);
    }
    if (free_blocks) view.free_blocks = *free_blocks;
    view.committed_steps = committed_steps;
    view.attempt = attempt;
    view.running = queues.running;
    view.waiting = queues.waiting;
    view.waiting_by_arrival = queues.waiting_by_arrival;
    view.dormant = queues.dormant;
    return view;
  }

  StepPlan Plan(const SchedulerPolicy& policy) const {
    Planner planner(policy);
    StepPlan plan;
    planner.Reserve(limits, views.size(), plan);
    Queues queues;
    planner.Plan(View(policy, queues), plan);
    return plan;
  }

  StepPlan Plan() const { return Plan(ArrivalPolicy()); }

 private:
  CandidateView& Add(uint32_t sequence_tokens) {
    CandidateView& view = views.emplace_back();
    view.index = static_cast<RequestIndex>(views.size() - 1);
    view.request = views.size();
    view.arrival = views.size();
    view.sequence_tokens = sequence_tokens;
    view.live = true;
    view.last_progress_step = committed_steps;
    return view;
  }
};

// The (index, tokens) of a plan's rows, in order.
using PlannedRows = std::vector<std::pair<RequestIndex, uint32_t>>;

inline PlannedRows RowsOf(const StepPlan& plan) {
  PlannedRows rows;
  for (const RowPlan& row : plan.rows) rows.emplace_back(row.index, row.scheduled_tokens);
  return rows;
}

}  // namespace oga::testing
