// simulate [--steps N] [--first-seed S] [--verbose]: lives through worlds until N steps have committed.
//
// Prints the steps per second and how often each fault point was hit. A broken world prints its seed, which replays it:
// simulate --first-seed S --steps 1.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "base/log.h"
#include "simulation/world.h"

int main(int argc, char** argv) {
  using namespace oga::testing;
  uint64_t steps = 1000000;
  uint64_t seed = 1;
  uint64_t least_hits = 0;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const bool has_value = i + 1 < argc;
    if (option == "--steps" && has_value) {
      steps = std::strtoull(argv[++i], nullptr, 10);
    } else if (option == "--first-seed" && has_value) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (option == "--least-hits" && has_value) {
      least_hits = std::strtoull(argv[++i], nullptr, 10);
    } else if (option == "--verbose") {
      verbose = true;
    } else {
      std::fprintf(stderr, "usage: simulate [--steps N] [--first-seed S] [--least-hits N] [--verbose]\n");
      return 2;
    }
  }
  oga::log::SetEnabled(oga::log::Level::kWarning, false);

  const auto start = std::chrono::steady_clock::now();
  SimulationReport total;
  uint64_t worlds = 0;
  for (; total.steps < steps; ++seed, ++worlds) {
    try {
      total.Add(World(seed, verbose).Live());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "seed %llu: %s\n", static_cast<unsigned long long>(seed), error.what());
      return 1;
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf(
      "%llu worlds, %llu steps, %llu runs, %llu tokens, %llu preemptions, %llu prefix hits, %llu evictions, longest "
      "wait %llu steps; %.0f steps/s\n",
      static_cast<unsigned long long>(worlds), static_cast<unsigned long long>(total.steps),
      static_cast<unsigned long long>(total.runs), static_cast<unsigned long long>(total.tokens),
      static_cast<unsigned long long>(total.preemptions), static_cast<unsigned long long>(total.prefix_hits),
      static_cast<unsigned long long>(total.prefix_evictions),
      static_cast<unsigned long long>(total.longest_wait_steps), static_cast<double>(total.steps) / seconds);
  bool covered = true;
  for (size_t i = 1; i < total.faults.size(); ++i) {
    std::printf("  %-22s %10llu\n", FaultName(static_cast<Fault>(i)), static_cast<unsigned long long>(total.faults[i]));
    covered = covered && total.faults[i] >= least_hits;
  }
  if (!covered)
    std::fprintf(stderr, "a fault point was hit fewer than %llu times\n", static_cast<unsigned long long>(least_hits));
  return covered ? 0 : 1;
}
