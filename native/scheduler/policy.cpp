#include "scheduler/policy.h"

namespace oga {

bool ArrivalPolicy::Precedes(const CandidateView& a, const CandidateView& b) const noexcept {
  if (a.priority != b.priority) return a.priority > b.priority;
  return a.arrival < b.arrival;
}

bool ShortestPromptPolicy::Precedes(const CandidateView& a, const CandidateView& b) const noexcept {
  if (a.priority != b.priority) return a.priority > b.priority;
  if (a.sequence_tokens != b.sequence_tokens) return a.sequence_tokens < b.sequence_tokens;
  return a.arrival < b.arrival;
}

}  // namespace oga
