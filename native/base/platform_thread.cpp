#include "base/platform_thread.h"

#include <utility>

#include "base/error.h"

namespace oga::platform {

namespace {

void* RunBody(void* body) {
  (*static_cast<std::function<void()>*>(body))();
  return nullptr;
}

}  // namespace

StackThread::StackThread(size_t stack_bytes, const char* purpose, std::function<void()> body) : body_(std::move(body)) {
  pthread_attr_t attributes;
  int status = pthread_attr_init(&attributes);
  if (status == 0) {
    status = pthread_attr_setstacksize(&attributes, stack_bytes);
    if (status == 0) status = pthread_create(&thread_, &attributes, RunBody, &body_);
    pthread_attr_destroy(&attributes);
  }
  if (status != 0) {
    Throw(StatusCode::kResourceExhausted, "no thread for ", purpose, " could be started (error ", status, " for ",
          stack_bytes, " bytes of stack); free memory, or raise the limits of threads and address space");
  }
}

StackThread::~StackThread() { pthread_join(thread_, nullptr); }

}  // namespace oga::platform
