#include "grammar/deep_thread.h"

#include <exception>

#include "base/platform_thread.h"

namespace oga::grammar {

void RunDeep(size_t stack_bytes, const std::function<void()>& body) {
  std::exception_ptr failure;
  {
    const platform::StackThread thread(stack_bytes, "grammars", [&] {
      try {
        body();
      } catch (...) {
        failure = std::current_exception();
      }
    });
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace oga::grammar
