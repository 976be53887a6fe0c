#include "benchmarks/contest.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"

namespace oga::benchmarks {

namespace {

double Lap(Stopwatch& watch) { return static_cast<double>(watch.LapNanoseconds()) * 1e-9; }

}  // namespace

void Contest::Run(int samples, double sample_seconds) {
  for (int sample = 0; sample < samples; ++sample) {
    for (Entry& entry : entries_) {
      entry.run();  // caches, clocks and sleeping threads are as they are in the middle of work
      Stopwatch watch;
      double seconds = 0;
      int runs = 0;
      for (; runs == 0 || seconds < sample_seconds; ++runs) {
        entry.run();
        seconds += Lap(watch);
      }
      entry.seconds.push_back(seconds / runs);
      if (entry.rest_seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(entry.rest_seconds));
    }
  }
}

std::vector<Contest::Result> Contest::Results() const {
  std::vector<Result> results;
  for (const Entry& entry : entries_) {
    std::vector<double> sorted = entry.seconds;
    std::sort(sorted.begin(), sorted.end());
    results.push_back({entry.name, sorted[sorted.size() / 2]});
  }
  return results;
}

}  // namespace oga::benchmarks
