// Plain option and report values of the engine's surface.
#pragma once

#include <cstdint>

namespace oga {

struct RequestOptions {
  uint64_t max_session_tokens = 0;  // 0: min(search.max_length, the engine's maximum)
  int32_t priority = 0;             // higher first
};

struct EngineCapabilities {
  size_t max_batch_size = 0;
  size_t max_scheduled_tokens = 0;
  uint64_t max_request_tokens = 0;
};

struct EngineStatistics {
  uint64_t steps = 0;
  uint64_t rows = 0;
  uint64_t scheduled_tokens = 0;
  uint64_t generated_tokens = 0;
  uint64_t rolled_back_steps = 0;
  uint64_t preemptions = 0;
  uint64_t dropped_residents = 0;
  uint64_t live_requests = 0;
  uint64_t resident_requests = 0;
  uint64_t block_size = 0;
  uint64_t total_blocks = 0;
  uint64_t free_blocks = 0;
  uint64_t block_bytes = 0;
};

}  // namespace oga
