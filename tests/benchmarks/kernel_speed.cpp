// Measures the CPU kernels beside what the machine can do, and prints JSON. tools/bench/kernel_bench.py makes tables of it.
//
//   kernel_speed limits                        bandwidth of memory and multiply-adds, one thread and all
//   kernel_speed products FOLDER K N BITS      MatMulNBits of a shape, whose graphs thin.onnx and wide.onnx lie in FOLDER
//   kernel_speed attention                     PagedAttention: decode and prefill
//   kernel_speed variants                      both by every instruction set of this machine
//
// OGA_NUM_THREADS is how many threads and OGA_CPU_ISA which kernels, as everywhere; the limits are always those of the
// machine's best instruction set. OGA_ORT_LIBRARY names the runtime, which `products` needs.
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "base/error.h"
#include "benchmarks/limits.h"
#include "benchmarks/product_case.h"
#include "benchmarks/report.h"
#include "kernels/simd/cpu_isa.h"
#include "ort/thread_count.h"

namespace oga::benchmarks {

Json MeasureLimits(int threads) {
  constexpr int64_t kRounds = 400'000;
  BigMemory memory;
  const LimitLoops& loops = LimitsOf(kernels::BestCpuIsa());
  ThreadTeam one(1), all(threads);
  Contest contest;
  const struct {
    const char* suffix;
    ThreadTeam* team;
  } teams[] = {{"_1", &one}, {"_all", &all}};
  for (const auto& [suffix, team] : teams) {
    contest.Add(std::string("read") + suffix, [&memory, team = team] { memory.Read(team, memory.bytes()); });
    contest.Add(std::string("triad") + suffix, [&memory, team = team] { memory.Triad(team); });
    contest.Add(std::string("peak") + suffix, [&loops, team = team] { Multiply(team, loops, kRounds); });
  }
  contest.Run(kSamples, kSampleSeconds);
  return {{"limits_isa", kernels::CpuIsaName(kernels::BestCpuIsa())},
          {"kernels_isa", kernels::CpuIsaName(kernels::SelectedCpuIsa())},
          {"threads", threads},
          {"read_bytes", memory.bytes()},
          {"triad_bytes", memory.triad_bytes()},
          {"peak_flops_per_thread", loops.flops_per_round * kRounds},
          {"seconds", Seconds(contest)}};
}

namespace {

Json Measure(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const int threads = ort::ChooseThreadCount(0);
  if (what == "limits" && argc == 2) return MeasureLimits(threads);
  if (what == "attention" && argc == 2) return MeasureAttention(threads);
  if (what == "variants" && argc == 2) return MeasureVariants(threads);
  if (what == "products" && argc == 6) {
    const ProductShape shape = {std::stoll(argv[3]), std::stoll(argv[4]), std::stoi(argv[5])};
    return MeasureProducts(argv[2], shape, threads);
  }
  Throw(StatusCode::kInvalidArgument, "usage: kernel_speed limits|attention|variants|products FOLDER K N BITS");
}

}  // namespace
}  // namespace oga::benchmarks

int main(int argc, char** argv) {
  try {
    std::puts(oga::benchmarks::Measure(argc, argv).dump().c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kernel_speed: %s\n", error.what());
    return 1;
  }
}
