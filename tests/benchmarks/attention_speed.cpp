#include <deque>

#include "benchmarks/attention_case.h"
#include "benchmarks/limits.h"
#include "benchmarks/report.h"

namespace oga::benchmarks {

namespace {

constexpr int64_t kPeakRounds = 200'000;

Json MeasureStep(const char* name, const char* cache_name, const AttentionStep& step, const BigMemory& memory,
                 ThreadTeam* team) {
  AttentionCase attention(step);
  const LimitLoops& loops = LimitsOf(kernels::BestCpuIsa());
  Contest contest;
  contest.Add("read", [&] { memory.Read(team, memory.bytes()); });
  contest.Add("peak", [&] { Multiply(team, loops, kPeakRounds); });
  contest.Add("kernel", [&] { attention.Run(kernels::SelectedCpuIsa(), team); });
  contest.Run(kSamples, kSampleSeconds);
  return {{"step", name},
          {"cache", cache_name},
          {"cache_bytes", attention.cache_bytes()},
          {"flops", attention.flops()},
          {"read_bytes", memory.bytes()},
          {"peak_flops", loops.flops_per_round * static_cast<double>(kPeakRounds * team->size())},
          {"seconds", Seconds(contest)}};
}

}  // namespace

Json MeasureAttention(int threads) {
  ThreadTeam team(threads);
  const BigMemory memory;
  const struct {
    const char* name;
    CacheType type;
  } caches[] = {{"fp32", CacheType::kFloat32},
                {"fp16", CacheType::kFloat16},
                {"bf16", CacheType::kBfloat16},
                {"int8", CacheType::kInt8}};
  Json measured = Json::array();
  for (const auto& [name, type] : caches) {
    // A decode step reads keys and values once; those of a prompt are read by every query, and stay in the caches.
    measured.push_back(MeasureStep("decode, 1 row after 4096", name, {1, 4095, 1, type}, memory, &team));
    measured.push_back(MeasureStep("decode, 16 rows after 1024", name, {16, 1023, 1, type}, memory, &team));
    measured.push_back(MeasureStep("prefill of 1024", name, {1, 0, 1024, type, 1}, memory, &team));
    measured.push_back(MeasureStep("prefill of 256 after 3840", name, {1, 3840, 256, type, 1}, memory, &team));
  }
  return {{"attention", measured}};
}

}  // namespace oga::benchmarks
