// Plain option and report values of the engine's surface.
#pragma once

#include <cstdint>

namespace oga {

struct RequestOptions {
  uint64_t max_session_tokens = 0;  // 0: min(search.max_length, the engine's maximum)
  int32_t priority = 0;             // higher first
  uint64_t cache_salt = 0;          // requests share cached beginnings only under the same salt
};

struct EngineCapabilities {
  size_t max_batch_size = 0;
  size_t max_scheduled_tokens = 0;
  uint64_t max_request_tokens = 0;
  bool prefix_caching = false;
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
  uint64_t free_blocks = 0;    // retired ones included: they give way when needed
  uint64_t cached_blocks = 0;  // without an owner, kept for their content
  uint64_t prefix_queries = 0;
  uint64_t prefix_hits = 0;
  uint64_t prefix_tokens_saved = 0;
  uint64_t prefix_evictions = 0;
  uint64_t block_bytes = 0;
};

}  // namespace oga
