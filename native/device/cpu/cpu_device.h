// The CPU as a device: its memory is the host's, and a copy is done when the call returns.
#pragma once

#include <memory>

#include "device/device.h"

namespace oga {

std::shared_ptr<const Device> MakeCpuDevice();

}  // namespace oga
