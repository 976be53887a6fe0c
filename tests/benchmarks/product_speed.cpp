#include <memory>

#include "benchmarks/limits.h"
#include "benchmarks/product_case.h"
#include "benchmarks/report.h"

namespace oga::benchmarks {

namespace {

constexpr int64_t kPeakRounds = 200'000;
constexpr double kSpinSeconds = 0.06;  // more than the threads of a session spin

struct Contestants {
  const ProductShape& shape;
  const std::string folder;
  const BigMemory& memory;
  ThreadTeam* team;
};

// One row count: our kernel, our node and the runtime's, between the limits they come up against.
Json MeasureRows(const Contestants& with, PackedCopies* packed, ProductSession* ours, ProductSession* runtime,
                 int64_t rows) {
  ours->Bind(with.shape, rows);
  runtime->Bind(with.shape, rows);
  const LimitLoops& loops = LimitsOf(kernels::BestCpuIsa());
  Contest contest;
  contest.Add("read", [&] { with.memory.Read(with.team, with.memory.bytes()); });
  contest.Add("peak", [&] { Multiply(with.team, loops, kPeakRounds); });
  contest.Add("kernel", [&] { packed->Multiply(with.team, rows); });
  contest.Add(
      "node", [&] { ours->Run(); }, kSpinSeconds);
  contest.Add(
      "runtime", [&] { runtime->Run(); }, kSpinSeconds);
  contest.Run(kSamples, kSampleSeconds);
  return {{"rows", rows},
          {"products", packed->count()},
          {"weight_bytes", packed->bytes()},
          {"flops", 2.0 * static_cast<double>(rows * with.shape.k * with.shape.n * packed->count())},
          {"read_bytes", with.memory.bytes()},
          {"peak_flops", loops.flops_per_round * static_cast<double>(kPeakRounds * with.team->size())},
          {"seconds", Seconds(contest)}};
}

}  // namespace

// Few rows meet the bandwidth of memory, so their graph has weights that no cache holds; many meet arithmetic, and one
// product is enough.
Json MeasureProducts(const std::string& folder, const ProductShape& shape, int threads) {
  ThreadTeam team(threads);
  const BigMemory memory;
  const Contestants contestants = {shape, folder, memory, &team};
  Json measured = Json::array();
  const struct {
    const char* file;
    std::vector<int64_t> rows;
  } graphs[] = {{"/thin.onnx", {1, 4, 8, 16}}, {"/wide.onnx", {64, 256}}};
  for (const auto& [file, row_counts] : graphs) {
    ProductSession ours(folder + file, operators::CpuMatMul::kAuto, threads);
    ProductSession runtime(folder + file, operators::CpuMatMul::kRuntime, threads);
    PackedCopies packed(kernels::SelectedCpuIsa(), shape, ours.nodes());
    for (const int64_t rows : row_counts) {
      measured.push_back(MeasureRows(contestants, &packed, &ours, &runtime, rows));
    }
  }
  return {{"k", shape.k}, {"n", shape.n}, {"bits", shape.bits}, {"rows", measured}};
}

}  // namespace oga::benchmarks
