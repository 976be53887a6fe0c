#include "engine/event_buffer.h"

#include <utility>

#include "base/error.h"
#include "engine/engine.h"

namespace oga {

EventBuffer::EventBuffer(std::weak_ptr<Engine> engine, size_t capacity)
    : engine_(std::move(engine)), capacity_(capacity) {
  if (capacity > kMaxCapacity) {
    Throw(StatusCode::kInvalidArgument, Field{"capacity"}, "capacity is ", capacity, "; an event buffer holds at most ",
          kMaxCapacity, " events");
  }
  events_.reserve(capacity);
}

bool EventBuffer::BelongsTo(const Engine& engine) const noexcept { return engine_.lock().get() == &engine; }

void EventBuffer::BeginRun() noexcept {
  events_.clear();
  ++generation_;
}

void EventBuffer::Push(Event&& event) noexcept { events_.push_back(std::move(event)); }

}  // namespace oga
