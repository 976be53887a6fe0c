// Measures several pieces of code in turns, so that whatever else the machine does meets all of them alike.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace oga::benchmarks {

class Contest {
 public:
  // `run` is called many times; it must do the same work each time. So long after a sample of it nobody runs: for code
  // whose threads spin before they sleep, and would take a core from whoever comes next.
  void Add(std::string name, std::function<void()> run, double rest_seconds = 0) {
    entries_.push_back({std::move(name), std::move(run), rest_seconds, {}});
  }

  // Takes `samples` samples of each entry, one of each in turn. A sample is as many runs as fill `sample_seconds`, one
  // at least, after a run that is not counted.
  void Run(int samples, double sample_seconds);

  struct Result {
    std::string name;
    double seconds;  // of one run, the median of the samples
  };
  std::vector<Result> Results() const;

 private:
  struct Entry {
    std::string name;
    std::function<void()> run;
    double rest_seconds;
    std::vector<double> seconds;
  };

  std::vector<Entry> entries_;
};

}  // namespace oga::benchmarks
