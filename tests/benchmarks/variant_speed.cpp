#include <deque>

#include "benchmarks/attention_case.h"
#include "benchmarks/limits.h"
#include "benchmarks/product_case.h"
#include "benchmarks/report.h"

namespace oga::benchmarks {

namespace {

using kernels::CpuIsa;

constexpr int64_t kPeakRounds = 100'000;
constexpr int kVariantSamples = 3;
constexpr CpuIsa kIsas[] = {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512, CpuIsa::kAvx512Bf16, CpuIsa::kAmx};

Json Line(std::string what, double bytes, double flops, const Contest& contest) {
  return {{"what", std::move(what)}, {"bytes", bytes}, {"flops", flops}, {"seconds", Seconds(contest)}};
}

// Each instruction set's own variant, on weights beyond the caches for few rows.
void MeasureProduct(const ProductShape& shape, int64_t copies, int64_t rows, ThreadTeam* team, Json* lines) {
  std::deque<PackedCopies> packed;
  Contest contest;
  for (const CpuIsa isa : kIsas) {
    if (isa > kernels::BestCpuIsa()) break;
    PackedCopies& of_isa = packed.emplace_back(isa, shape, copies);
    contest.Add(kernels::CpuIsaName(isa), [&of_isa, team, rows] { of_isa.Multiply(team, rows); });
  }
  contest.Run(kVariantSamples, kSampleSeconds);
  const double flops = 2.0 * static_cast<double>(rows * shape.k * shape.n * copies);
  std::string what =
      "int" + std::to_string(shape.bits) + " product, " + std::to_string(rows) + (rows == 1 ? " row" : " rows");
  lines->push_back(Line(std::move(what), static_cast<double>(packed.front().bytes()), flops, contest));
}

void MeasureStep(const std::string& what, const AttentionStep& step, ThreadTeam* team, Json* lines) {
  AttentionCase attention(step);
  Contest contest;
  for (const CpuIsa isa : kIsas) {
    if (isa > kernels::BestCpuIsa()) break;
    contest.Add(kernels::CpuIsaName(isa), [&attention, team, isa] { attention.Run(isa, team); });
  }
  contest.Run(kVariantSamples, kSampleSeconds);
  lines->push_back(Line(what, attention.cache_bytes(), attention.flops(), contest));
}

// Multiply-adds in registers: how far apart the instruction sets are to begin with.
void MeasurePeaks(ThreadTeam* team, Json* lines) {
  for (const CpuIsa isa : kIsas) {
    if (isa > kernels::BestCpuIsa()) break;
    const LimitLoops& loops = LimitsOf(isa);
    Contest contest;
    contest.Add(kernels::CpuIsaName(isa), [&] { Multiply(team, loops, kPeakRounds); });
    contest.Run(kVariantSamples, kSampleSeconds);
    const double flops = loops.flops_per_round * static_cast<double>(kPeakRounds * team->size());
    lines->push_back(Line("multiply-adds in registers", 0, flops, contest));
  }
}

}  // namespace

Json MeasureVariants(int threads) {
  ThreadTeam team(threads);
  Json lines = Json::array();
  MeasurePeaks(&team, &lines);
  for (const int32_t bits : {4, 8}) {
    const ProductShape shape = {896, 4864, bits};
    const auto copies = static_cast<int64_t>(BeyondCachesBytes()) / SourceBytes(shape) / 2 + 1;
    MeasureProduct(shape, copies, 1, &team, &lines);
    MeasureProduct(shape, 1, 16, &team, &lines);
    MeasureProduct(shape, 1, 64, &team, &lines);
  }
  for (const auto type : {CacheType::kFloat32, CacheType::kBfloat16}) {
    const std::string cache = type == CacheType::kFloat32 ? ", fp32 cache" : ", bf16 cache";
    MeasureStep("decode, 1 row after 4096" + cache, {1, 4095, 1, type}, &team, &lines);
    MeasureStep("prefill of 512" + cache, {1, 0, 512, type, 1}, &team, &lines);
  }
  return {{"variants", lines}};
}

}  // namespace oga::benchmarks
