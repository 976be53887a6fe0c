// What the planner sees: read-only snapshots of requests and limits. Plain values, kept current by their owners.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "step/ids.h"
#include "step/prefix_view.h"

namespace oga {

// One request with a live turn, or a dormant one that still owns blocks.
struct CandidateView {
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

  RequestIndex index = kNoRequest;
  RequestId request = 0;
  int32_t priority = 0;             // higher first
  uint64_t arrival = 0;             // order of BeginTurn, engine-wide
  uint32_t sequence_tokens = 0;     // prompt and output so far
  uint32_t cached_tokens = 0;       // of them, committed to the cache
  uint32_t chunk_limit_tokens = 0;  // most tokens of a step; 0: none
  uint32_t owned_blocks = 0;        // of its table; 0 is not resident
  bool tail_shared = false;         // its next token goes into a block that must be copied first: one block more
  bool live = false;                // has a turn to work on; a dormant resident has not
  bool decoding = false;            // its one pending token was sampled by its previous step
  bool preemptible = false;         // not on its way to a token with all its blocks in hand: may be dropped
  uint64_t last_progress_step = 0;  // committed steps when it last progressed, or began to wait
  uint64_t due_step = kNever;       // committed steps by which it must have progressed; of the waiting
  uint64_t dropped_at_attempt = 0;  // attempt that preempted it; it is not readmitted in the same one

  uint32_t pending_tokens() const { return sequence_tokens - cached_tokens; }
  bool resident() const { return owned_blocks > 0; }
};

// The limits a plan obeys. See EngineLimits for where they come from.
struct PlanLimits {
  uint32_t block_size_slots = 0;
  uint32_t total_blocks = 0;
  uint32_t max_rows = 0;
  uint32_t max_scheduled_tokens = 0;
  uint32_t chunk_size_tokens = 0;  // 0: none
  uint32_t max_resident_requests = 0;
  uint32_t max_wait_steps = 0;
};

// The promise to one of the waiting with `position` others before it, by arrival: it progresses within this many committed
// steps. Priorities do not count: nobody who comes later makes one wait longer.
inline uint64_t WaitBound(const PlanLimits& limits, size_t position) {
  const uint64_t rows = std::min({limits.max_rows, limits.max_scheduled_tokens, limits.max_resident_requests});
  return limits.max_wait_steps * (1 + position / std::max<uint64_t>(1, rows));
}

struct SchedulerView {
  PlanLimits limits;
  uint32_t free_blocks = 0;  // retired ones included
  uint64_t committed_steps = 0;
  uint64_t next_due_step = CandidateView::kNever;            // no waiting request is due before
  const PrefixView* prefix = nullptr;                        // null: no prefix cache
  bool explain = false;                                      // say of every live turn without a row why
  uint64_t attempt = 0;                                      // counts steps tried; a retry and its drops share one
  std::span<const CandidateView* const> running;             // residents with a live turn, by arrival
  std::span<const CandidateView* const> waiting;             // live, not resident, in the order of the policy
  std::span<const CandidateView* const> waiting_by_arrival;  // the same, by arrival
  std::span<const CandidateView* const> dormant;             // residents without a live turn, least recently used first
};

}  // namespace oga
