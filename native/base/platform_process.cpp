#include "base/platform_process.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <thread>

namespace oga::platform {

ProcessId CurrentProcess() noexcept { return ::getpid(); }

int UsableProcessors() {
  // The mask of a large machine does not fit cpu_set_t; the kernel refuses a mask that is too small.
  for (int processors = CPU_SETSIZE; processors <= 64 * CPU_SETSIZE; processors *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(CPU_ALLOC(processors),
                                                                [](cpu_set_t* set) { CPU_FREE(set); });
    const size_t bytes = CPU_ALLOC_SIZE(processors);
    if (mask != nullptr && sched_getaffinity(0, bytes, mask.get()) == 0) return CPU_COUNT_S(bytes, mask.get());
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::optional<uint64_t> AddressSpaceLimit() {
  struct rlimit limit;
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

uint64_t PageBytes() {
  static const auto bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

void SetEnvironmentDefault(const char* name, const char* value) noexcept { ::setenv(name, value, /*overwrite=*/0); }

bool RequestTileState() noexcept {
#if defined(__x86_64__) && defined(__linux__)
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace oga::platform
