// A device of plain memory in another address space, as far as one process can have one.
//
// The addresses it hands out lie in pages that nobody may touch: a host that takes one for a pointer ends by a signal.
// The bytes are elsewhere, where only the device's copies and the runtime find them. Copies wait for Synchronize, what
// they will write on the host is spoilt until then, and buffers start full of what no tensor holds. Any thread.
#pragma once

#include <atomic>
#include <memory>

#include "base/error.h"
#include "device/device.h"

namespace oga::testing {

std::shared_ptr<const Device> MakeRemoteDevice();

// What goes wrong next, on every remote device of this program: a countdown of calls, of which the last one fails.
struct RemoteFaults {
  static constexpr int kNever = 0;

  std::atomic<int> allocation = kNever;       // throws Error{kResourceExhausted}
  std::atomic<int> synchronisation = kNever;  // half of the copies happen; throws Error{code}
  std::atomic<StatusCode> code = StatusCode::kInternal;
};
extern RemoteFaults g_remote_faults;

}  // namespace oga::testing
