// Threads for kernels that are measured without the runtime, whose pool belongs to its sessions.
//
// Owned and called by one thread, which works too. Idle threads spin for a moment, as between the products of a step,
// and sleep then, so that they take nothing from what is measured next. A call never waits for a thread that has taken
// no item: on a busy machine it may not run for long.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace oga::benchmarks {

class ThreadTeam {
 public:
  explicit ThreadTeam(int threads);
  ~ThreadTeam();

  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(helpers_.size()) + 1; }

  // Calls body(i) once for every i in [0, count), below 2^31, each on the next free thread, and returns when all are
  // done.
  void ForEach(size_t count, const std::function<void(size_t)>& body);

 private:
  void Help();
  void TakeItems();

  std::vector<std::thread> helpers_;
  const std::function<void(size_t)>* body_ = nullptr;  // valid for whoever holds an item
  std::atomic<uint64_t> items_ = 0;  // how many in the upper half, the next one in the lower: taken by adding 1
  std::atomic<uint32_t> done_ = 0;
  std::atomic<uint32_t> round_ = 0;
  std::atomic<bool> ends_ = false;
};

}  // namespace oga::benchmarks
