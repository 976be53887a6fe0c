// The runtime's environment: its logger and its process-wide state.
//
// Shared by every session; made when the first session needs it, released after Shutdown by the last one that holds it.
// Any thread.
#pragma once

#include <memory>

#include "ort/handles.h"

namespace oga::ort {

class Environment {
 public:
  // The environment of the process, made now if there is none. Throws what LoadedLibrary throws.
  static std::shared_ptr<const Environment> Get();

  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  const abi::Env* handle() const { return env_.get(); }

 private:
  Environment();

  Owned<abi::Env> env_;
};

// Lets go of the environment: it is released at once, or with the last session that uses it. Idempotent, legal before
// any use; a later session makes a new one.
void Shutdown() noexcept;

}  // namespace oga::ort
