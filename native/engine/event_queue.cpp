#include "engine/event_queue.h"

#include <algorithm>
#include <utility>

namespace oga {

void EventQueue::Reserve(size_t events) {
  const size_t needed = head_ + events;
  // Grows geometrically: a host may cancel many turns between two runs, and each makes room for one more.
  if (needed > events_.capacity()) events_.reserve(std::max(needed, 2 * events_.capacity()));
}

void EventQueue::Push(Event&& event) noexcept { events_.push_back(std::move(event)); }

Event EventQueue::Pop() noexcept {
  Event event = std::move(events_[head_++]);
  if (empty()) {
    events_.clear();
    head_ = 0;
  }
  return event;
}

bool EventQueue::HasEventOf(const Request& request) const noexcept {
  return std::any_of(events_.begin() + static_cast<std::ptrdiff_t>(head_), events_.end(),
                     [&](const Event& event) { return event.request.get() == &request; });
}

Event* EventQueue::FindLast(const Request& request, TurnId turn_id) noexcept {
  const auto end = events_.rend() - static_cast<std::ptrdiff_t>(head_);
  const auto found = std::find_if(events_.rbegin(), end, [&](const Event& event) {
    return event.request.get() == &request && event.turn_id == turn_id;
  });
  return found == end ? nullptr : &*found;
}

void EventQueue::Purge(const Request& request) noexcept {
  const auto first = events_.begin() + static_cast<std::ptrdiff_t>(head_);
  const auto kept =
      std::remove_if(first, events_.end(), [&](const Event& event) { return event.request.get() == &request; });
  events_.erase(kept, events_.end());
  if (empty()) {
    events_.clear();
    head_ = 0;
  }
}

}  // namespace oga
