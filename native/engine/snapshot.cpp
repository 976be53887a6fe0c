#include "engine/snapshot.h"

#include <algorithm>

#include "base/check.h"
#include "engine/engine.h"

namespace oga {

namespace {

QueuePlace ExpectedPlace(const RequestSnapshot& request) {
  if (request.turn_live) return request.table_blocks > 0 ? QueuePlace::kRunning : QueuePlace::kWaiting;
  return request.table_blocks > 0 ? QueuePlace::kDormant : QueuePlace::kNone;
}

}  // namespace

void ValidateSnapshot(const EngineSnapshot& snapshot) {
  CheckInvariant(snapshot.requests.size() + snapshot.free_slots.size() == snapshot.slots, "E1",
                 "open requests and free slots do not add up");
  for (const uint32_t blocks : snapshot.free_slot_blocks) {
    CheckInvariant(blocks == 0, "E1", "a free slot owns blocks");
  }
  size_t queued = 0;
  for (const RequestSnapshot& request : snapshot.requests) {
    CheckInvariant(request.slot == request.slot_in_request, "E1", "a request names another slot than it lies in");
    CheckInvariant(request.state != RequestState::kClosed, "E1", "a closed request holds a slot");
    CheckInvariant(request.owned_blocks == request.table_blocks, "E2",
                   "the scheduler and the cache count other blocks");
    CheckInvariant(request.place == ExpectedPlace(request), "E2", "a request is in the wrong queue");
    CheckInvariant(request.cached_tokens == request.filled_slots, "E3", "cached tokens and filled slots differ");
    queued += request.place != QueuePlace::kNone;
  }
  CheckInvariant(queued == snapshot.queued, "E2", "a queue holds a request that is not open");
  CheckInvariant(snapshot.events_name_open_requests, "E4", "an undrained event names a closed request");
}

EngineSnapshot Engine::Snapshot() const {
  EngineSnapshot snapshot;
  snapshot.slots = requests_.size();
  snapshot.free_slots = free_slots_;
  snapshot.queued = queues_.running().size() + queues_.waiting().size() + queues_.dormant().size();
  for (const RequestSlot slot : free_slots_) snapshot.free_slot_blocks.push_back(cache_.table_blocks(slot));
  for (size_t slot = 0; slot < requests_.size(); ++slot) {
    const std::shared_ptr<Request>& request = requests_[slot];
    if (request == nullptr) continue;
    RequestSnapshot values;
    values.slot = static_cast<RequestSlot>(slot);
    values.state = request->state();
    values.place = request->place;
    values.slot_in_request = request->slot();
    values.cached_tokens = request->view().cached_tokens;
    values.filled_slots = cache_.filled_slots(values.slot);
    values.owned_blocks = request->view().owned_blocks;
    values.table_blocks = cache_.table_blocks(values.slot);
    values.turn_live = request->turn_live();
    snapshot.requests.push_back(values);
  }
  snapshot.events_name_open_requests = events_.AllOf(
      [](const Event& event) { return event.request == nullptr || event.request->state() != RequestState::kClosed; });
  return snapshot;
}

void Engine::Validate() const {
  ValidateSnapshot(Snapshot());
  cache_.Validate();
  queues_.Validate();
  for (const std::shared_ptr<Request>& request : requests_) {
    if (request != nullptr) request->Validate();
  }
}

}  // namespace oga
