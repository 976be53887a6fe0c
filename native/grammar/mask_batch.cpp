#include "grammar/mask_batch.h"

#include <algorithm>

namespace oga::grammar {

namespace {

constexpr size_t kWorkerStackBytes = size_t{16} << 20;

}  // namespace

MaskBatch::MaskBatch(size_t threads) {
  const size_t count = std::max<size_t>(threads, 1);
  threads_.reserve(count);
  try {
    for (size_t i = 0; i < count; ++i) {
      threads_.push_back(std::make_unique<platform::StackThread>(kWorkerStackBytes, "grammars", [this] { Work(); }));
    }
  } catch (...) {
    if (threads_.empty()) throw;  // fewer than asked for serve too
  }
}

MaskBatch::~MaskBatch() {
  Wait();
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  begun_.notify_all();
  threads_.clear();
}

void MaskBatch::Start(std::span<GrammarCursor* const> cursors) {
  Wait();
  if (cursors.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    cursors_.reserve(cursors.size());  // what may fail comes first
    cursors_.assign(cursors.begin(), cursors.end());
    next_ = 0;
  }
  if (cursors.size() == 1) {
    begun_.notify_one();
  } else {
    begun_.notify_all();
  }
}

void MaskBatch::Wait() noexcept {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return next_ == cursors_.size() && running_ == 0; });
}

void MaskBatch::Work() noexcept {
  std::unique_lock lock(mutex_);
  while (true) {
    begun_.wait(lock, [&] { return is_closing_ || next_ < cursors_.size(); });
    if (next_ == cursors_.size()) return;
    GrammarCursor* const cursor = cursors_[next_++];
    ++running_;
    lock.unlock();
    cursor->ComputeMask();
    lock.lock();
    if (--running_ == 0 && next_ == cursors_.size()) ended_.notify_all();
  }
}

}  // namespace oga::grammar
