#include "kernels/attention/paged_attention_plan.h"

#include <algorithm>

namespace oga::kernels {

namespace {

constexpr int64_t kBusyItems = 64;      // so many keep all threads busy; more only cost
constexpr int32_t kLeastSlots = 8;      // fewer partials at a time are not worth a wave
constexpr int64_t kItemsPerThread = 4;  // with joined heads: enough that no thread waits long for the last one
constexpr int64_t kSlotsPerThread = 2;  // likewise, of a wave

}  // namespace

WorkPlan::WorkPlan(const PagedAttentionCall& call, bool may_join_heads) : call_(call) {
  const int64_t query_floats = kPartialHeaderFloats + call.padded_head_size;
  const int64_t least_slots = kLeastSlots + num_kv_heads();
  most_split_queries_ = std::min<int64_t>(call.tile_queries, kPartialFloats / least_slots / query_floats);
  if (may_join_heads) ChooseJoining();
  int64_t tiles = 0, splits = 0;
  for (int32_t row = 0; row < num_rows(); ++row) tiles += Tiles(row) * HeadGroups(row);
  may_split_ = tiles < kBusyItems;
  for (int32_t row = 0; row < num_rows(); ++row) {
    tile_items_ += TileItems(row);
    if (!IsSplit(row)) continue;
    splits += Splits(row) * HeadGroups(row);
    slot_floats_ = std::max(slot_floats_, Queries(row) * query_floats);
  }
  if (splits == 0) return;
  const int64_t items = kItemsPerThread * threads();
  run_splits_ = static_cast<int32_t>(std::clamp<int64_t>(splits / items, 1, std::max(slots() / items, int64_t{1})));
  for (int32_t row = 0; row < num_rows(); ++row) split_items_ += SplitItems(row);
}

// Heads that share tiles make one stream of what one head alone reads in pieces with gaps, which the hardware would
// fetch too. That leaves fewer items, and partials so much longer: worth it while there are enough of both. Rows of
// several tokens cannot take part; where one had better be split, it is.
void WorkPlan::ChooseJoining() {
  if (num_kv_heads() == 1 || call_.args.shape.num_heads > call_.tile_queries) return;
  const int64_t partial_floats = int64_t{call_.args.shape.num_heads} * (kPartialHeaderFloats + call_.padded_head_size);
  if (kPartialFloats / partial_floats - 1 < kSlotsPerThread * threads()) return;
  int64_t items = 0;
  for (int32_t row = 0; row < num_rows(); ++row) {
    if (Queries(row) == 0) continue;
    if (NewTokens(call_.args, row) == 1) {
      items += Splits(row);
    } else if (Queries(row) <= most_split_queries_ && Splits(row) > 1) {
      return;
    }
  }
  joins_heads_ = items >= kItemsPerThread * threads();
}

bool WorkPlan::IsSplit(int32_t row) const {
  if (!may_split_ || Queries(row) == 0 || Splits(row) == 1) return false;
  return joins_heads_ ? NewTokens(call_.args, row) == 1 : Queries(row) <= most_split_queries_;
}

QueryTile WorkPlan::TileAt(size_t index) const {
  int64_t item = static_cast<int64_t>(index);
  int32_t row = 0;
  for (; item >= TileItems(row); ++row) item -= TileItems(row);
  const int32_t groups = HeadGroups(row), heads = TileHeads(row);
  const int64_t first = (Tiles(row) - 1 - item / groups) * call_.tile_queries;
  const int64_t count = std::min<int64_t>(call_.tile_queries, Queries(row) - first);
  return {row, static_cast<int32_t>(item % groups) * heads, heads, static_cast<int32_t>(first),
          static_cast<int32_t>(count)};
}

SplitRun WorkPlan::RunAt(size_t index) const {
  int64_t item = static_cast<int64_t>(index);
  int32_t row = 0;
  for (; item >= SplitItems(row); ++row) item -= SplitItems(row);
  const int32_t groups = HeadGroups(row), heads = TileHeads(row);
  const QueryTile tile = {row, static_cast<int32_t>(item % groups) * heads, heads, 0,
                          static_cast<int32_t>(Queries(row))};
  const int32_t start = static_cast<int32_t>(item / groups) * run_splits_;
  return {tile, FirstSplit(row) + start, std::min(run_splits_, Splits(row) - start), slot_floats_};
}

}  // namespace oga::kernels
