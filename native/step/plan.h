// What a step will do, decided before anything changes.
#pragma once

#include <cstdint>
#include <vector>

#include "step/ids.h"

namespace oga {

struct RowPlan {
  RequestIndex index = kNoRequest;
  uint32_t past_tokens = 0;
  uint32_t scheduled_tokens = 0;
  uint32_t pending_tokens = 0;  // what the row had to compute before this step
  uint32_t first_hit = 0;       // index into the plan's hits
  uint32_t hit_blocks = 0;      // leading blocks taken from the prefix cache; past_tokens counts them
  uint32_t target_blocks = 0;   // its table covers this many blocks after the step
  bool copies_tail = false;     // its last block is shared and is copied before it is written

  // The row's last pending token is computed, so its logits choose the next one.
  bool samples() const { return scheduled_tokens == pending_tokens; }
};

enum class PlanOutcome {
  kNoWork,            // no live turn that could ever run
  kExecutable,        // `rows` can run as they are
  kDropFirst,         // drop the cache of `drops`, then plan again
  kCapacityDeferred,  // live turns exist, none can run now
};

// Why a live turn has no row in a plan.
enum class SkipReason {
  kRows,         // the step is full
  kBlocks,       // the cache is
  kPlaces,       // as many requests as may be resident are
  kJustDropped,  // it gave way in this very attempt
  kPrefix,       // another request is computing the beginning it shares
};

struct Skip {
  RequestIndex index = kNoRequest;
  SkipReason reason = SkipReason::kRows;
};

struct StepPlan {
  PlanOutcome outcome = PlanOutcome::kNoWork;
  std::vector<RowPlan> rows;                // logical order: decodes by arrival, then prefills by arrival
  std::vector<RequestIndex> drops;          // dormant and preempted residents
  std::vector<RequestIndex> unserviceable;  // live turns that could not run in an empty pool
  std::vector<BlockId> hits;                // prefix blocks of the rows
  std::vector<Skip> skips;                  // filled when the view asks for them
  uint32_t scheduled_tokens = 0;

  void Clear() noexcept {
    outcome = PlanOutcome::kNoWork;
    rows.clear();
    drops.clear();
    unserviceable.clear();
    hits.clear();
    skips.clear();
    scheduled_tokens = 0;
  }
};

}  // namespace oga
