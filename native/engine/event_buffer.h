// EventBuffer: preallocated storage for the events of one run, bound for life to one engine.
//
// Owned by the host. Filled by Engine::Run on the owner thread; reading between two runs is unchecked.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/event.h"

namespace oga {

class Engine;

class EventBuffer {
 public:
  static constexpr size_t kMaxCapacity = size_t{1} << 20;

  EventBuffer(std::weak_ptr<Engine> engine, size_t capacity);

  size_t capacity() const noexcept { return capacity_; }
  size_t size() const noexcept { return events_.size(); }
  const Event* at(size_t index) const noexcept { return index < events_.size() ? &events_[index] : nullptr; }

  // Counts accepted runs; a view taken at an older value is stale.
  uint64_t generation() const noexcept { return generation_; }

  bool BelongsTo(const Engine& engine) const noexcept;

  // For the engine: drops the previous events and starts a new generation; then at most `capacity` pushes.
  void BeginRun() noexcept;
  void Push(Event&& event) noexcept;

 private:
  std::weak_ptr<Engine> engine_;
  size_t capacity_;
  std::vector<Event> events_;
  uint64_t generation_ = 0;
};

}  // namespace oga
