// The process that this library is in. Any thread.
#pragma once

#include <cstdint>
#include <optional>

namespace oga::platform {

// Another number in a forked child.
using ProcessId = int64_t;
ProcessId CurrentProcess() noexcept;

// The processors that the calling thread may run on.
int UsableProcessors();

// The bound on the process's addresses in bytes (RLIMIT_AS); empty for none.
std::optional<uint64_t> AddressSpaceLimit();

uint64_t PageBytes();

// Sets an environment variable that is not set.
void SetEnvironmentDefault(const char* name, const char* value) noexcept;

// Asks for the state of AMX tiles, which Linux grants a process and its threads from then on. Whether it is granted.
bool RequestTileState() noexcept;

}  // namespace oga::platform
