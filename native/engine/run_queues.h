// RunQueues: every request with something to schedule or drop, in the orders the planner reads.
//
// Holds pointers to views that live inside requests; a request is in at most one queue. Owned by one Engine; owner
// thread. Reserve may allocate, everything else is noexcept and does not.
//
// Q1  waiting and waiting_by_arrival hold the same views
// Q2  each queue is in its order, and no view is in two of running, waiting and dormant
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "scheduler/policy.h"
#include "step/views.h"

namespace oga {

namespace testing {
struct RunQueuesAccess;
}

enum class QueuePlace { kNone, kWaiting, kRunning, kDormant };

class RunQueues {
 public:
  using Views = std::span<const CandidateView* const>;

  explicit RunQueues(const SchedulerPolicy& policy) : policy_(policy) {}

  // Makes room for this many requests in every queue.
  void Reserve(size_t requests);

  void Insert(const CandidateView& view, QueuePlace place) noexcept;
  void Remove(const CandidateView& view, QueuePlace place) noexcept;

  Views running() const noexcept { return running_; }  // by arrival
  Views waiting() const noexcept { return waiting_; }  // in the order of the policy
  Views waiting_by_arrival() const noexcept { return waiting_by_arrival_; }
  Views dormant() const noexcept { return dormant_; }  // least recently used first

  // Counts what came to the waiting and left them: places in the queue change with it only.
  uint64_t waiting_changes() const noexcept { return waiting_changes_; }

  void Validate() const;

 private:
  friend struct testing::RunQueuesAccess;

  const SchedulerPolicy& policy_;
  std::vector<const CandidateView*> running_;
  std::vector<const CandidateView*> waiting_;
  std::vector<const CandidateView*> waiting_by_arrival_;
  uint64_t waiting_changes_ = 0;
  std::vector<const CandidateView*> dormant_;
};

}  // namespace oga
