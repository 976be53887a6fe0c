// A thread with a stack of a size of our choosing, which the standard library's threads do not have.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <functional>

namespace oga::platform {

class StackThread {
 public:
  // Starts `body`, which must not throw. Throws Error{kResourceExhausted} when the system gives no thread; `purpose`
  // says there what it was for.
  StackThread(size_t stack_bytes, const char* purpose, std::function<void()> body);
  ~StackThread();  // waits for the end of `body`

  StackThread(const StackThread&) = delete;
  StackThread& operator=(const StackThread&) = delete;

 private:
  std::function<void()> body_;
  pthread_t thread_{};
};

}  // namespace oga::platform
