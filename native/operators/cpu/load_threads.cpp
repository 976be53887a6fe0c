#include "operators/cpu/load_threads.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace oga::operators {

kernels::ParallelFor OnLoadThreads(int threads) {
  return [threads](size_t count, const std::function<void(size_t)>& body) {
    std::atomic<size_t> next{0};
    const auto work = [&] {
      for (size_t i = next++; i < count; i = next++) body(i);
    };
    std::vector<std::thread> team;
    const size_t helpers = std::min(static_cast<size_t>(std::max(threads, 1)), std::max<size_t>(count, 1)) - 1;
    team.reserve(helpers);
    try {
      while (team.size() < helpers) team.emplace_back(work);
    } catch (const std::system_error&) {
      // The rest of the team does the work.
    }
    work();
    for (std::thread& thread : team) thread.join();
  };
}

}  // namespace oga::operators
