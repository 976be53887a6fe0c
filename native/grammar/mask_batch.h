// Masks of several turns, computed on threads of its own while the model runs. One per engine.
//
// The engine's thread calls Start and Wait in turn. No interpreter lock is held or needed. A fault of one cursor poisons
// that cursor; the others are computed. In steady state nothing is allocated here.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/platform_thread.h"
#include "grammar/grammar_cursor.h"

namespace oga::grammar {

class MaskBatch {
 public:
  // Throws Error{kResourceExhausted} when the system gives no thread. At least one thread is started.
  explicit MaskBatch(size_t threads);
  ~MaskBatch();  // waits for what was started

  MaskBatch(const MaskBatch&) = delete;
  MaskBatch& operator=(const MaskBatch&) = delete;

  // Begins to make the masks of `cursors` current, and returns at once. Every cursor stays alive and untouched until
  // Wait. What an earlier Start began is waited for. Throws std::bad_alloc with nothing begun.
  void Start(std::span<GrammarCursor* const> cursors);

  // Returns when all are done. Without a Start, at once.
  void Wait() noexcept;

 private:
  void Work() noexcept;

  std::mutex mutex_;
  std::condition_variable begun_;
  std::condition_variable ended_;
  std::vector<GrammarCursor*> cursors_;
  size_t next_ = 0;     // the first that nobody took
  size_t running_ = 0;  // taken and not done
  bool is_closing_ = false;
  std::vector<std::unique_ptr<platform::StackThread>> threads_;
};

}  // namespace oga::grammar
