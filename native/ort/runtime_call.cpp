#include "ort/runtime_call.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/platform_process.h"

namespace oga::ort {

namespace {

// A load or a step of any size that is used with a program's last breath is shorter; a hanging one must not keep it.
constexpr std::chrono::seconds kPatience{5};

struct Calls {
  const platform::ProcessId process = platform::CurrentProcess();
  std::mutex mutex;
  std::condition_variable ended;
  int in_progress = 0;
  std::optional<std::thread::id> exiting;  // the thread that called exit()
};

// Leaked on purpose: calls may come after our own static objects are gone.
Calls& GetCalls() {
  static Calls* const calls = new Calls;
  return *calls;
}

thread_local int own_calls = 0;  // exit() may be called inside a call, by a log callback for one

void WaitForCalls() noexcept {
  Calls& calls = GetCalls();
  if (platform::CurrentProcess() != calls.process) return;  // a forked child has none of the threads that call
  std::unique_lock lock(calls.mutex);
  calls.exiting = std::this_thread::get_id();
  calls.ended.wait_for(lock, kPatience, [&] { return calls.in_progress <= own_calls; });
}

// Registered by the first call, when the runtime is loaded: handlers run in reverse order, so before the runtime's.
void WatchForExit() { [[maybe_unused]] static const bool is_registered = std::atexit(WaitForCalls) == 0; }

}  // namespace

RuntimeCall::RuntimeCall() {
  WatchForExit();
  Calls& calls = GetCalls();
  const std::lock_guard lock(calls.mutex);
  if (calls.exiting && *calls.exiting != std::this_thread::get_id()) {
    Throw(StatusCode::kInvalidState, "the process is exiting: no model is loaded, run or released any more");
  }
  ++calls.in_progress;
  ++own_calls;
}

RuntimeCall::~RuntimeCall() {
  --own_calls;
  Calls& calls = GetCalls();
  const std::lock_guard lock(calls.mutex);
  --calls.in_progress;
  calls.ended.notify_all();
}

}  // namespace oga::ort
