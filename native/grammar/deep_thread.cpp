#include "grammar/deep_thread.h"

#include <exception>
#include <utility>

#include "base/error.h"

namespace oga::grammar {

namespace {

void* RunBody(void* body) {
  (*static_cast<std::function<void()>*>(body))();
  return nullptr;
}

}  // namespace

DeepThread::DeepThread(size_t stack_bytes, std::function<void()> body) : body_(std::move(body)) {
  pthread_attr_t attributes;
  int status = pthread_attr_init(&attributes);
  if (status == 0) {
    status = pthread_attr_setstacksize(&attributes, stack_bytes);
    if (status == 0) status = pthread_create(&thread_, &attributes, RunBody, &body_);
    pthread_attr_destroy(&attributes);
  }
  if (status != 0) {
    Throw(StatusCode::kResourceExhausted, "no thread for grammars could be started (error ", status, " for ",
          stack_bytes, " bytes of stack); free memory, or raise the limits of threads and address space");
  }
}

DeepThread::~DeepThread() { pthread_join(thread_, nullptr); }

void RunDeep(size_t stack_bytes, const std::function<void()>& body) {
  std::exception_ptr failure;
  {
    const DeepThread thread(stack_bytes, [&] {
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
