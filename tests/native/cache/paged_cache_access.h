// Reaches into a PagedCache: to look at tables, and to break what its calls never break.
#pragma once

#include <utility>
#include <vector>

#include "cache/paged_cache.h"

namespace oga::testing {

struct PagedCacheAccess {
  static const std::vector<BlockId>& Table(const PagedCache& cache, RequestIndex index) {
    return cache.tables_[index].blocks;
  }
  static std::vector<BlockId>& Table(PagedCache& cache, RequestIndex index) { return cache.tables_[index].blocks; }
  static uint32_t& FilledSlots(PagedCache& cache, RequestIndex index) { return cache.tables_[index].filled_slots; }
  static BlockPool& Pool(PagedCache& cache) { return cache.pool_; }
};

// A plan of these rows, for what only the cache needs of it.
inline StepPlan PlanOf(std::vector<RowPlan> rows) {
  StepPlan plan;
  plan.rows = std::move(rows);
  return plan;
}

}  // namespace oga::testing
