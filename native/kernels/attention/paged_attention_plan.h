// How the work of a paged attention call is divided into items, and in which order they are counted off. Nothing here
// shows in the bits of the output.
//
// A row is either cut into tiles of queries, one after another over all their keys, or, when it is long, has few
// queries and shares the call with few others, into runs of splits whose partials are merged.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/attention/paged_attention_variant.h"
#include "kernels/in_order.h"

namespace oga::kernels {

inline constexpr int32_t kPartialFloats = 32768;  // scratch of the calling thread for split rows

class WorkPlan {
 public:
  WorkPlan(const PagedAttentionCall& call, bool may_join_heads);

  size_t tile_items() const { return static_cast<size_t>(tile_items_); }
  size_t split_items() const { return static_cast<size_t>(split_items_); }
  // So many runs have slots for their partials at a time, behind those of what has been merged so far.
  size_t wave_items() const { return std::min(static_cast<size_t>(slots() / run_splits_), InOrder::kMostItems); }
  int64_t running_slots() const { return joins_heads_ ? 1 : num_kv_heads(); }
  int64_t run_floats() const { return run_splits_ * slot_floats_; }
  int64_t slot_floats() const { return slot_floats_; }

  // Tiles with the most keys come first, so that no thread is left with a long one at the end.
  QueryTile TileAt(size_t index) const;
  // The runs of one row and kv head follow one another in position order. Between them come those of the row's other
  // heads at the same positions: their keys and values are neighbours in memory.
  SplitRun RunAt(size_t index) const;

  bool Starts(const SplitRun& run) const { return run.first_split == FirstSplit(run.tile.row); }
  bool Ends(const SplitRun& run) const {
    return run.first_split + run.num_splits == FirstSplit(run.tile.row) + Splits(run.tile.row);
  }

 private:
  void ChooseJoining();
  int64_t threads() const { return std::max(call_.args.num_threads, 1); }
  int32_t num_rows() const { return call_.args.shape.num_rows; }
  int32_t num_kv_heads() const { return call_.args.shape.num_kv_heads; }
  int32_t TileHeads(int32_t row) const { return joins_heads_ && NewTokens(call_.args, row) == 1 ? num_kv_heads() : 1; }
  // Tiles of other kv heads at the same queries.
  int32_t HeadGroups(int32_t row) const { return num_kv_heads() / TileHeads(row); }
  // Of one tile's kv heads.
  int64_t Queries(int32_t row) const {
    return static_cast<int64_t>(NewTokens(call_.args, row)) * call_.group_size * TileHeads(row);
  }
  int64_t Tiles(int32_t row) const { return (Queries(row) + call_.tile_queries - 1) / call_.tile_queries; }
  int32_t FirstSplit(int32_t row) const { return VisibleRange(call_.args, row).first / kKvSplit; }
  int32_t Splits(int32_t row) const { return VisibleRange(call_.args, row).last / kKvSplit - FirstSplit(row) + 1; }
  int64_t Runs(int32_t row) const { return (Splits(row) + run_splits_ - 1) / run_splits_; }
  int64_t TileItems(int32_t row) const { return IsSplit(row) ? 0 : Tiles(row) * HeadGroups(row); }
  int64_t SplitItems(int32_t row) const { return IsSplit(row) ? Runs(row) * HeadGroups(row) : 0; }
  bool IsSplit(int32_t row) const;
  int64_t slots() const { return kPartialFloats / slot_floats_ - running_slots(); }

  const PagedAttentionCall& call_;
  bool joins_heads_ = false;
  bool may_split_ = false;
  int64_t most_split_queries_ = 0;
  int32_t run_splits_ = 1;
  int64_t tile_items_ = 0;
  int64_t split_items_ = 0;
  int64_t slot_floats_ = 0;
};

}  // namespace oga::kernels
