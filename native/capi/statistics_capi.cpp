#include <algorithm>
#include <iterator>

#include "base/printable_text.h"
#include "capi/boundary.h"

using oga::EngineStatistics;
using oga::capi::Guard;
using oga::capi::Require;
using oga::capi::RequireOut;

namespace {

struct Counter {
  std::string_view name;
  uint64_t EngineStatistics::*value;
};

constexpr Counter kCounters[] = {
    {"steps", &EngineStatistics::steps},
    {"rows", &EngineStatistics::rows},
    {"scheduled_tokens", &EngineStatistics::scheduled_tokens},
    {"generated_tokens", &EngineStatistics::generated_tokens},
    {"rolled_back_steps", &EngineStatistics::rolled_back_steps},
    {"preemptions", &EngineStatistics::preemptions},
    {"dropped_residents", &EngineStatistics::dropped_residents},
    {"live_requests", &EngineStatistics::live_requests},
    {"resident_requests", &EngineStatistics::resident_requests},
    {"block_size", &EngineStatistics::block_size},
    {"total_blocks", &EngineStatistics::total_blocks},
    {"free_blocks", &EngineStatistics::free_blocks},
    {"cached_blocks", &EngineStatistics::cached_blocks},
    {"prefix_queries", &EngineStatistics::prefix_queries},
    {"prefix_hits", &EngineStatistics::prefix_hits},
    {"prefix_tokens_saved", &EngineStatistics::prefix_tokens_saved},
    {"prefix_evictions", &EngineStatistics::prefix_evictions},
    {"block_bytes", &EngineStatistics::block_bytes},
};
static_assert(sizeof(EngineStatistics) == std::size(kCounters) * sizeof(uint64_t), "a counter has no public name");

const Counter& FindCounter(std::string_view name) {
  const auto found = std::find_if(std::begin(kCounters), std::end(kCounters),
                                  [name](const Counter& counter) { return counter.name == name; });
  if (found != std::end(kCounters)) return *found;
  std::string known;
  for (const Counter& counter : kCounters) known.append(known.empty() ? "" : ", ").append(counter.name);
  oga::Throw(oga::StatusCode::kInvalidArgument, oga::Field{"name"}, "there is no engine counter ", oga::Quoted(name),
             "; the counters are ", known);
}

}  // namespace

void OGA_API_CALL OgaDestroyEngineStatistics(OgaEngineStatistics* statistics) { delete statistics; }

OgaResult* OGA_API_CALL OgaEngineStatisticsGetCount(const OgaEngineStatistics* statistics, const char* name,
                                                    uint64_t* out) {
  return Guard([&] {
    RequireOut<uint64_t>(out, 0);
    const EngineStatistics& counts = Require(statistics, "statistics").statistics;
    *out = counts.*FindCounter(&Require(name, "name")).value;
  });
}
