// EventQueue: committed events that the host has not taken yet, in order.
//
// Owned by one Engine; owner thread. Reserve may allocate; everything else is noexcept and does not.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "engine/event.h"

namespace oga {

class EventQueue {
 public:
  // Makes room for this many undrained events in all.
  void Reserve(size_t events);

  bool empty() const noexcept { return head_ == events_.size(); }
  size_t size() const noexcept { return events_.size() - head_; }

  void Push(Event&& event) noexcept;  // room was reserved
  Event Pop() noexcept;

  bool HasEventOf(const Request& request) const noexcept;

  // The last undrained event of this turn, to merge an ending into; nullptr when there is none.
  Event* FindLast(const Request& request, TurnId turn_id) noexcept;

  // Whether the predicate holds for every undrained event.
  template <typename Predicate>
  bool AllOf(Predicate predicate) const {
    return std::all_of(events_.begin() + static_cast<std::ptrdiff_t>(head_), events_.end(), predicate);
  }

  void Purge(const Request& request) noexcept;

 private:
  std::vector<Event> events_;
  size_t head_ = 0;
};

}  // namespace oga
