#include "kernels/attention/paged_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "kernels/attention/paged_attention_plan.h"
#include "kernels/attention/paged_attention_variant.h"
#include "kernels/in_order.h"
#include "kernels/simd/denormals.h"

namespace oga::kernels {

namespace {

constexpr int32_t kWriteTokens = 8;  // new tokens of one work item of the write phase

// Whether bfloat16 holds the numbers of such a cache: the codes of int8 have eight bits, as bfloat16 has.
bool HoldsPairs(CacheType type) { return type == CacheType::kBfloat16 || type == CacheType::kInt8; }

PagedAttentionVariant WithPairs(PagedAttentionVariant variant, const PairAttentionVariant& pairs) {
  variant.joins_heads = true;
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

// Hands out items without an allocation: a capture of one reference fits into the function object itself.
template <typename Body>
void ForEach(const ParallelFor& parallel_for, size_t count, const Body& body) {
  if (count == 0) return;
  if (count == 1) return body(0);
  parallel_for(count, [&body](size_t i) { body(i); });
}

// Runs of splits are computed a wave at a time, as many as there are slots for, and merged in order.
void AttendSplitRows(const PagedAttentionVariant& variant, const PagedAttentionCall& call, const WorkPlan& plan,
                     const ParallelFor& parallel_for) {
  alignas(64) float memory[kPartialFloats];
  float* const slots = memory + plan.running_slots() * plan.slot_floats();
  for (size_t start = 0; start < plan.split_items(); start += plan.wave_items()) {
    const size_t count = std::min(plan.wave_items(), plan.split_items() - start);
    InOrder merges(count);
    const auto merge = [&](size_t i) {
      const SplitRun run = plan.RunAt(start + i);
      float* const running = memory + run.tile.kv_head / run.tile.num_kv_heads * plan.slot_floats();
      if (plan.Starts(run)) std::fill_n(running, plan.slot_floats(), 0.0f);
      for (int32_t split = 0; split < run.num_splits; ++split) {
        variant.merge(call, run.tile, slots + i * plan.run_floats() + split * plan.slot_floats(), running);
      }
      if (plan.Ends(run)) variant.finish(call, run.tile, running);
    };
    ForEach(parallel_for, count, [&](size_t i) {
      [[maybe_unused]] const KeepDenormals keep;
      variant.attend_splits(call, plan.RunAt(start + i), slots + i * plan.run_floats());
      merges.Finish(i, merge);
    });
  }
}

void Compute(const PagedAttentionVariant& variant, const PagedAttentionArgs& args, const ParallelFor& parallel_for) {
  const int32_t num_tokens = args.shape.num_tokens;
  if (num_tokens == 0) return;
  [[maybe_unused]] const KeepDenormals keep;
  const PagedAttentionCall call = MakeCall(args);

  ForEach(parallel_for, static_cast<size_t>((num_tokens + kWriteTokens - 1) / kWriteTokens), [&](size_t i) {
    const int32_t begin = static_cast<int32_t>(i) * kWriteTokens;
    [[maybe_unused]] const KeepDenormals keep;
    variant.write_tokens(call, begin, std::min(begin + kWriteTokens, num_tokens));
  });

  const WorkPlan plan(call, variant.joins_heads);
  ForEach(parallel_for, plan.tile_items(), [&](size_t i) {
    [[maybe_unused]] const KeepDenormals keep;
    variant.attend(call, plan.TileAt(i));
  });
  if (plan.split_items() > 0) AttendSplitRows(variant, call, plan, parallel_for);
}

}  // namespace

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
