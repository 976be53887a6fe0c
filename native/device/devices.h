// Which devices this build has, and which one a model runs on.
//
// Any thread; nothing here has state.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "device/device.h"

namespace oga {

struct DeviceRow {
  std::string_view name;  // of its execution provider, in small letters: "cpu" is also CPUExecutionProvider
  std::shared_ptr<const Device> (*make)();
};

// The table, in device_rows.cpp. The first row is the default.
std::span<const DeviceRow> DeviceRows() noexcept;

// Whether `provider`, in letters of any size, names one of them.
bool HasDevice(std::string_view provider) noexcept;

// "'cpu', 'other'", for messages.
std::string DeviceNames();

// The device of the first of `providers`, all of which must be there; the default when there are none.
std::shared_ptr<const Device> MakeDevice(std::span<const std::string> providers = {});

}  // namespace oga
