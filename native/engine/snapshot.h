// EngineSnapshot: the engine's bookkeeping as plain values, so that the rules that cross its parts can be checked, and
// broken in tests, without the parts.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/request.h"
#include "engine/run_queues.h"
#include "step/ids.h"

namespace oga {

struct RequestSnapshot {
  RequestIndex index = kNoRequest;
  RequestState state = RequestState::kCreated;
  QueuePlace place = QueuePlace::kNone;
  uint32_t index_in_request = kNoRequest;  // the index the request itself names
  uint32_t cached_tokens = 0;
  uint32_t filled_slots = 0;
  uint32_t owned_blocks = 0;  // as the scheduler's view says
  uint32_t table_blocks = 0;  // as the cache says
  bool turn_live = false;
};

struct EngineSnapshot {
  std::vector<RequestSnapshot> requests;  // by index, open ones only
  std::vector<RequestIndex> free_indices;
  size_t indices = 0;
  size_t queued = 0;                        // over all queues
  std::vector<uint32_t> free_index_blocks;  // table lengths of free indices
  bool events_name_open_requests = true;
};

// Throws ContractError naming the first of E1 to E4 that does not hold.
void ValidateSnapshot(const EngineSnapshot& snapshot);

}  // namespace oga
