#include "benchmarks/thread_team.h"

namespace oga::benchmarks {

namespace {

constexpr int kSpins = 20'000;  // some tens of microseconds

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadTeam::ThreadTeam(int threads) {
  for (int i = 1; i < threads; ++i) helpers_.emplace_back([this] { Help(); });
}

ThreadTeam::~ThreadTeam() {
  ends_.store(true);
  round_.fetch_add(1);
  round_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadTeam::ForEach(size_t count, const std::function<void(size_t)>& body) {
  body_ = &body;
  done_.store(0);
  items_.store(uint64_t{count} << 32);
  round_.fetch_add(1);
  round_.notify_all();
  TakeItems();
  for (int spin = 0; done_.load() != count; ++spin) spin < kSpins ? Pause() : std::this_thread::yield();
}

void ThreadTeam::TakeItems() {
  while (true) {
    const uint64_t taken = items_.fetch_add(1);
    const auto item = static_cast<uint32_t>(taken);
    if (item >= taken >> 32) return;
    (*body_)(item);
    done_.fetch_add(1);
  }
}

void ThreadTeam::Help() {
  uint32_t seen = 0;
  while (true) {
    for (int spin = 0; spin < kSpins && round_.load() == seen; ++spin) Pause();
    round_.wait(seen);
    if (ends_.load()) return;
    seen = round_.load();  // a round that begins from here on is seen later, or its items are taken now
    TakeItems();
  }
}

}  // namespace oga::benchmarks
