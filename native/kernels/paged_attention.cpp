#include "kernels/paged_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "kernels/paged_attention_variant.h"

namespace oga::kernels {

namespace {

constexpr int32_t kWriteTokens = 8;        // new tokens of one work item of the write phase
constexpr int64_t kBusyItems = 64;         // so many keep all threads busy; more only cost
constexpr int32_t kPartialFloats = 32768;  // scratch of the calling thread for split rows
constexpr int32_t kLeastSlots = 8;         // fewer partials at a time are not worth a wave
constexpr int64_t kWaveItems = 16;         // a run of splits is short enough for so many items a wave

// Whether bfloat16 holds the numbers of such a cache: the codes of int8 have eight bits, as bfloat16 has.
bool HoldsPairs(CacheType type) { return type == CacheType::kBfloat16 || type == CacheType::kInt8; }

PagedAttentionVariant WithPairs(PagedAttentionVariant variant, const PairAttentionVariant& pairs) {
  variant.attend = pairs.attend;
  variant.attend_splits = pairs.attend_splits;
  return variant;
}

PagedAttentionVariant VariantOf(CpuIsa isa) {
#if defined(__x86_64__)
  if (isa >= CpuIsa::kAvx512) return kPagedAttentionAvx512;
  if (isa == CpuIsa::kAvx2) return kPagedAttentionAvx2;
#endif
  OGA_CHECK(isa == CpuIsa::kPortable);
  return kPagedAttentionPortable;
}

PagedAttentionVariant VariantOf(CpuIsa isa, CacheType cache_type) {
  OGA_CHECK(isa <= BestCpuIsa());
  const PagedAttentionVariant variant = VariantOf(isa);
#if defined(__x86_64__)
  if (!HoldsPairs(cache_type)) return variant;
  if (isa == CpuIsa::kAmx) return WithPairs(variant, kPairAttentionAmx);
  if (isa == CpuIsa::kAvx512Bf16) return WithPairs(variant, kPairAttentionAvx512Bf16);
#endif
  return variant;
}

PagedAttentionCall MakeCall(const PagedAttentionArgs& args) {
  const PagedAttentionShape& shape = args.shape;
  PagedAttentionCall call;
  call.args = args;
  call.group_size = shape.num_heads / shape.num_kv_heads;
  call.padded_head_size = (shape.head_size + 15) / 16 * 16;
  call.tile_queries = std::min(kMaxTileQueries, kTileFloats / shape.head_size);
  const float softcap = args.params.softcap;
  float scale = args.params.scale;
  if (scale == 0.0f) scale = 1.0f / std::sqrt(static_cast<float>(shape.head_size));
  call.score_scale = softcap > 0.0f ? scale / softcap : scale * kLog2E;
  call.score_cap = softcap * kLog2E;
  return call;
}

// Which rows are split among threads into runs of splits, and how the work of both kinds of rows is counted off.
class WorkPlan {
 public:
  explicit WorkPlan(const PagedAttentionCall& call) : call_(call) {
    const int32_t query_floats = kPartialHeaderFloats + call.padded_head_size;
    const int32_t least_slots = kLeastSlots + call.args.shape.num_kv_heads;
    most_split_queries_ = std::min(call.tile_queries, kPartialFloats / least_slots / query_floats);
    int64_t tiles = 0, splits = 0;
    for (int32_t row = 0; row < num_rows(); ++row) tiles += Tiles(row) * num_kv_heads();
    may_split_ = tiles < kBusyItems;
    for (int32_t row = 0; row < num_rows(); ++row) {
      if (!IsSplit(row)) {
        tile_items_ += Tiles(row) * num_kv_heads();
        continue;
      }
      splits += Splits(row) * num_kv_heads();
      slot_floats_ = std::max(slot_floats_, Queries(row) * query_floats);
    }
    if (splits == 0) return;
    run_splits_ =
        static_cast<int32_t>(std::clamp<int64_t>(splits / kBusyItems, 1, std::max(slots() / kWaveItems, int64_t{1})));
    for (int32_t row = 0; row < num_rows(); ++row) split_items_ += IsSplit(row) ? Runs(row) * num_kv_heads() : 0;
  }

  size_t tile_items() const { return static_cast<size_t>(tile_items_); }
  size_t split_items() const { return static_cast<size_t>(split_items_); }
  size_t wave_items() const { return static_cast<size_t>(slots() / run_splits_); }
  int64_t run_floats() const { return run_splits_ * slot_floats_; }
  int64_t slot_floats() const { return slot_floats_; }

  // Tiles with the most keys come first, so that no thread is left with a long one at the end.
  QueryTile TileAt(size_t index) const {
    int64_t item = static_cast<int64_t>(index);
    int32_t row = 0;
    for (;; ++row) {
      const int64_t items = IsSplit(row) ? 0 : Tiles(row) * num_kv_heads();
      if (item < items) break;
      item -= items;
    }
    const int64_t tile = Tiles(row) - 1 - item / num_kv_heads();
    const int64_t first = tile * call_.tile_queries;
    const int64_t count = std::min<int64_t>(call_.tile_queries, Queries(row) - first);
    return {row, static_cast<int32_t>(item % num_kv_heads()), static_cast<int32_t>(first), static_cast<int32_t>(count)};
  }

  // The runs of one row and kv head follow one another in position order. Between them come those of the row's other
  // heads at the same positions: their keys and values are neighbours in memory, which the hardware fetches ahead anyway.
  SplitRun RunAt(size_t index) const {
    int64_t item = static_cast<int64_t>(index);
    int32_t row = 0;
    for (;; ++row) {
      const int64_t items = IsSplit(row) ? Runs(row) * num_kv_heads() : 0;
      if (item < items) break;
      item -= items;
    }
    const QueryTile tile = {row, static_cast<int32_t>(item % num_kv_heads()), 0, static_cast<int32_t>(Queries(row))};
    const int32_t start = static_cast<int32_t>(item / num_kv_heads()) * run_splits_;
    return {tile, FirstSplit(row) + start, std::min(run_splits_, Splits(row) - start), slot_floats_};
  }

  bool Starts(const SplitRun& run) const { return run.first_split == FirstSplit(run.tile.row); }
  bool Ends(const SplitRun& run) const {
    return run.first_split + run.num_splits == FirstSplit(run.tile.row) + Splits(run.tile.row);
  }

 private:
  int32_t num_rows() const { return call_.args.shape.num_rows; }
  int64_t num_kv_heads() const { return call_.args.shape.num_kv_heads; }
  int64_t Queries(int32_t row) const { return static_cast<int64_t>(NewTokens(call_.args, row)) * call_.group_size; }
  int64_t Tiles(int32_t row) const { return (Queries(row) + call_.tile_queries - 1) / call_.tile_queries; }
  int32_t FirstSplit(int32_t row) const { return VisibleRange(call_.args, row).first / kKvSplit; }
  int32_t Splits(int32_t row) const { return VisibleRange(call_.args, row).last / kKvSplit - FirstSplit(row) + 1; }
  int64_t Runs(int32_t row) const { return (Splits(row) + run_splits_ - 1) / run_splits_; }
  bool IsSplit(int32_t row) const {
    return may_split_ && Queries(row) > 0 && Queries(row) <= most_split_queries_ && Splits(row) > 1;
  }

  // A slot per kv head holds what has been merged of it so far.
  int64_t slots() const { return kPartialFloats / slot_floats_ - num_kv_heads(); }

  const PagedAttentionCall& call_;
  int64_t most_split_queries_;
  bool may_split_;
  int32_t run_splits_ = 1;
  int64_t tile_items_ = 0;
  int64_t split_items_ = 0;
  int64_t slot_floats_ = 0;
};

// Hands out items without an allocation: a capture of one reference fits into the function object itself.
template <typename Body>
void ForEach(const ParallelFor& parallel_for, size_t count, const Body& body) {
  if (count == 0) return;
  if (count == 1) return body(0);
  parallel_for(count, [&body](size_t i) { body(i); });
}

// Runs of splits are computed a wave at a time, as many as there are slots for, and merged in order between the waves.
void AttendSplitRows(const PagedAttentionVariant& variant, const PagedAttentionCall& call, const WorkPlan& plan,
                     const ParallelFor& parallel_for) {
  alignas(64) float memory[kPartialFloats];
  float* const slots = memory + call.args.shape.num_kv_heads * plan.slot_floats();
  for (size_t start = 0; start < plan.split_items(); start += plan.wave_items()) {
    const size_t count = std::min(plan.wave_items(), plan.split_items() - start);
    ForEach(parallel_for, count,
            [&](size_t i) { variant.attend_splits(call, plan.RunAt(start + i), slots + i * plan.run_floats()); });
    for (size_t i = 0; i < count; ++i) {
      const SplitRun run = plan.RunAt(start + i);
      float* const running = memory + run.tile.kv_head * plan.slot_floats();
      if (plan.Starts(run)) std::fill_n(running, plan.slot_floats(), 0.0f);
      for (int32_t split = 0; split < run.num_splits; ++split) {
        variant.merge(call, run.tile, slots + i * plan.run_floats() + split * plan.slot_floats(), running);
      }
      if (plan.Ends(run)) variant.finish(call, run.tile, running);
    }
  }
}

void Compute(const PagedAttentionVariant& variant, const PagedAttentionArgs& args, const ParallelFor& parallel_for) {
  const int32_t num_tokens = args.shape.num_tokens;
  if (num_tokens == 0) return;
  const PagedAttentionCall call = MakeCall(args);

  ForEach(parallel_for, static_cast<size_t>((num_tokens + kWriteTokens - 1) / kWriteTokens), [&](size_t i) {
    const int32_t begin = static_cast<int32_t>(i) * kWriteTokens;
    variant.write_tokens(call, begin, std::min(begin + kWriteTokens, num_tokens));
  });

  const WorkPlan plan(call);
  ForEach(parallel_for, plan.tile_items(), [&](size_t i) { variant.attend(call, plan.TileAt(i)); });
  if (plan.split_items() > 0) AttendSplitRows(variant, call, plan, parallel_for);
}

}  // namespace

int32_t CacheElementBytes(CacheType type) {
  switch (type) {
    case CacheType::kFloat32: break;
    case CacheType::kFloat16:
    case CacheType::kBfloat16: return 2;
    case CacheType::kInt8: return 1;
  }
  return 4;
}

int32_t ActivationBytes(ActivationType type) { return type == ActivationType::kFloat32 ? 4 : 2; }

void PagedAttention(CpuIsa isa, const PagedAttentionArgs& args, const ParallelFor& parallel_for) {
  Compute(VariantOf(isa, args.cache_type), args, parallel_for);
}

void PagedAttention(CpuIsa isa, const PairAttentionVariant& pairs, const PagedAttentionArgs& args,
                    const ParallelFor& parallel_for) {
  OGA_CHECK(HoldsPairs(args.cache_type));
  Compute(WithPairs(VariantOf(isa, args.cache_type), pairs), args, parallel_for);
}

void PagedAttention(const PagedAttentionArgs& args, const ParallelFor& parallel_for) {
  PagedAttention(SelectedCpuIsa(), args, parallel_for);
}

}  // namespace oga::kernels
