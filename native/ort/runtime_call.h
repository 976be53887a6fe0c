// Keeps the end of the process apart from long calls into the runtime.
//
// exit() destroys the runtime's static objects while other threads still run: a model that a background thread is just
// loading would then end the process by a signal. So exit() waits for the calls in progress, for a while, and later
// ones are refused. Any thread; the thread that exits may still call.
#pragma once

namespace oga::ort {

// Held during a call that loads, runs or releases a session.
class RuntimeCall {
 public:
  // Throws Error{kInvalidState} when the process is exiting on another thread.
  RuntimeCall();
  ~RuntimeCall();

  RuntimeCall(const RuntimeCall&) = delete;
  RuntimeCall& operator=(const RuntimeCall&) = delete;
};

}  // namespace oga::ort
