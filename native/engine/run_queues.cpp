#include "engine/run_queues.h"

#include <algorithm>

#include "base/check.h"

namespace oga {

namespace {

using Queue = std::vector<const CandidateView*>;

bool ByArrival(const CandidateView* a, const CandidateView* b) { return a->arrival < b->arrival; }

bool ByAge(const CandidateView* a, const CandidateView* b) {
  if (a->last_progress_step != b->last_progress_step) return a->last_progress_step < b->last_progress_step;
  return a->arrival < b->arrival;
}

template <typename Less>
void InsertSorted(Queue& queue, const CandidateView& view, Less less) noexcept {
  queue.insert(std::upper_bound(queue.begin(), queue.end(), &view, less), &view);
}

void Erase(Queue& queue, const CandidateView& view) noexcept {
  const auto found = std::find(queue.begin(), queue.end(), &view);
  if (found != queue.end()) queue.erase(found);
}

}  // namespace

void RunQueues::Reserve(size_t requests) {
  for (Queue* queue : {&running_, &waiting_, &waiting_by_arrival_, &dormant_}) queue->reserve(requests);
}

void RunQueues::Insert(const CandidateView& view, QueuePlace place) noexcept {
  switch (place) {
    case QueuePlace::kNone: return;
    case QueuePlace::kWaiting:
      InsertSorted(waiting_, view, [this](const auto* a, const auto* b) { return policy_.Precedes(*a, *b); });
      InsertSorted(waiting_by_arrival_, view, ByArrival);
      ++waiting_changes_;
      return;
    case QueuePlace::kRunning: InsertSorted(running_, view, ByArrival); return;
    case QueuePlace::kDormant: InsertSorted(dormant_, view, ByAge); return;
  }
}

void RunQueues::Remove(const CandidateView& view, QueuePlace place) noexcept {
  switch (place) {
    case QueuePlace::kNone: return;
    case QueuePlace::kWaiting:
      Erase(waiting_, view);
      Erase(waiting_by_arrival_, view);
      ++waiting_changes_;
      return;
    case QueuePlace::kRunning: Erase(running_, view); return;
    case QueuePlace::kDormant: Erase(dormant_, view); return;
  }
}

void RunQueues::Validate() const {
  Queue waiting = waiting_;
  Queue by_arrival = waiting_by_arrival_;
  std::sort(waiting.begin(), waiting.end());
  std::sort(by_arrival.begin(), by_arrival.end());
  CheckInvariant(waiting == by_arrival, "Q1", "the two orders of the waiting differ in content");

  const auto precedes = [this](const auto* a, const auto* b) { return policy_.Precedes(*a, *b); };
  const bool ordered = std::is_sorted(running_.begin(), running_.end(), ByArrival) &&
                       std::is_sorted(waiting_.begin(), waiting_.end(), precedes) &&
                       std::is_sorted(waiting_by_arrival_.begin(), waiting_by_arrival_.end(), ByArrival) &&
                       std::is_sorted(dormant_.begin(), dormant_.end(), ByAge);
  CheckInvariant(ordered, "Q2", "a queue is out of order");

  Queue all = waiting;
  all.insert(all.end(), running_.begin(), running_.end());
  all.insert(all.end(), dormant_.begin(), dormant_.end());
  std::sort(all.begin(), all.end());
  CheckInvariant(std::adjacent_find(all.begin(), all.end()) == all.end(), "Q2", "a request is queued twice");
}

}  // namespace oga
