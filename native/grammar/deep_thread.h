// A thread with a stack of a size of our choosing.
//
// llguidance follows a chain of rules by recursion, some kB for each link, and a stack that runs out ends the process.
// What a host's own threads have is unknown; so grammars are compiled, and masks computed, on these.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <functional>

namespace oga::grammar {

class DeepThread {
 public:
  // Starts `body`, which must not throw. Throws Error{kResourceExhausted} when the system gives no thread.
  DeepThread(size_t stack_bytes, std::function<void()> body);
  ~DeepThread();  // waits for the end of `body`

  DeepThread(const DeepThread&) = delete;
  DeepThread& operator=(const DeepThread&) = delete;

 private:
  std::function<void()> body_;
  pthread_t thread_{};
};

// Runs `body` on such a thread and waits; what it throws is thrown here.
void RunDeep(size_t stack_bytes, const std::function<void()>& body);

}  // namespace oga::grammar
