// The table of devices of test programs: one row more than the library's. With OGA_TEST_DEVICE=remote that row is the
// first, and so whatever does not ask for a device runs on it.
#include <cstdlib>
#include <string_view>

#include "device/cpu/cpu_device.h"
#include "device/devices.h"
#include "support/remote_device.h"

namespace oga {

std::span<const DeviceRow> DeviceRows() noexcept {
  static constexpr DeviceRow kCpu = {"cpu", MakeCpuDevice};
  static constexpr DeviceRow kRemote = {"remote", testing::MakeRemoteDevice};
  static constexpr DeviceRow kCpuFirst[] = {kCpu, kRemote};
  static constexpr DeviceRow kRemoteFirst[] = {kRemote, kCpu};
  static const char* const wanted = std::getenv("OGA_TEST_DEVICE");
  return std::string_view(wanted == nullptr ? "" : wanted) == "remote" ? kRemoteFirst : kCpuFirst;
}

}  // namespace oga
