// Who among the waiting goes first. A policy is a pure order; the planner decides who fits and guards against
// starvation whatever the order is.
#pragma once

#include "step/views.h"

namespace oga {

class SchedulerPolicy {
 public:
  virtual ~SchedulerPolicy() = default;

  // A strict weak order over waiting requests. Must depend only on fields that stay the same while a request waits:
  // index, request, priority, arrival, sequence_tokens.
  virtual bool Precedes(const CandidateView& a, const CandidateView& b) const noexcept = 0;
};

// Higher priority first, then arrival.
class ArrivalPolicy final : public SchedulerPolicy {
 public:
  bool Precedes(const CandidateView& a, const CandidateView& b) const noexcept override;
};

// Higher priority first, then the fewest tokens to compute, then arrival.
class ShortestPromptPolicy final : public SchedulerPolicy {
 public:
  bool Precedes(const CandidateView& a, const CandidateView& b) const noexcept override;
};

}  // namespace oga
