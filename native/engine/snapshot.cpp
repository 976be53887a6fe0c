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
  CheckInvariant(snapshot.requests.size() + snapshot.free_indices.size() == snapshot.indices, "E1",
                 "open requests and free indices do not add up");
  for (const uint32_t blocks : snapshot.free_index_blocks) {
    CheckInvariant(blocks == 0, "E1", "a free index owns blocks");
  }
  size_t queued = 0;
  for (const RequestSnapshot& request : snapshot.requests) {
    CheckInvariant(request.index == request.index_in_request, "E1", "a request names another index than it lies in");
    CheckInvariant(request.state != RequestState::kClosed, "E1", "a closed request holds an index");
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
  snapshot.indices = requests_.size();
  snapshot.free_indices = free_indices_;
  snapshot.queued = queues_.running().size() + queues_.waiting().size() + queues_.dormant().size();
  for (const RequestIndex index : free_indices_) snapshot.free_index_blocks.push_back(cache_.table_blocks(index));
  for (size_t index = 0; index < requests_.size(); ++index) {
    const std::shared_ptr<Request>& request = requests_[index];
    if (request == nullptr) continue;
    RequestSnapshot values;
    values.index = static_cast<RequestIndex>(index);
    values.state = request->state();
    values.place = request->place;
    values.index_in_request = request->index();
    values.cached_tokens = request->view().cached_tokens;
    values.filled_slots = cache_.filled_slots(values.index);
    values.owned_blocks = request->view().owned_blocks;
    values.table_blocks = cache_.table_blocks(values.index);
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
