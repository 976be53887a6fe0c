// The devices of this build, one row each. Alone in its file, so that a test program can bring a table of its own.
#include "device/cpu/cpu_device.h"
#include "device/devices.h"

namespace oga {

std::span<const DeviceRow> DeviceRows() noexcept {
  static constexpr DeviceRow kRows[] = {{"cpu", MakeCpuDevice}};
  return kRows;
}

}  // namespace oga
