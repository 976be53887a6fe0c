#include "device/devices.h"

#include <algorithm>

#include "base/check.h"

namespace oga {

namespace {

constexpr std::string_view kProviderSuffix = "executionprovider";

// Only ASCII letters, so that no locale has a say in which device is meant.
bool EqualsInSmallLetters(std::string_view text, std::string_view small) {
  return std::equal(text.begin(), text.end(), small.begin(), small.end(), [](char letter, char wanted) {
    return (letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter) == wanted;
  });
}

bool Names(std::string_view provider, const DeviceRow& row) {
  if (provider.size() <= row.name.size()) return EqualsInSmallLetters(provider, row.name);
  return EqualsInSmallLetters(provider.substr(0, row.name.size()), row.name) &&
         EqualsInSmallLetters(provider.substr(row.name.size()), kProviderSuffix);
}

const DeviceRow* Find(std::string_view provider) noexcept {
  const std::span<const DeviceRow> rows = DeviceRows();
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return Names(provider, row); });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

bool HasDevice(std::string_view provider) noexcept { return Find(provider) != nullptr; }

std::string DeviceNames() {
  std::string names;
  for (const DeviceRow& row : DeviceRows()) {
    names.append(names.empty() ? "'" : ", '").append(row.name).append("'");
  }
  return names;
}

std::shared_ptr<const Device> MakeDevice(std::span<const std::string> providers) {
  const DeviceRow* const row = providers.empty() ? &DeviceRows().front() : Find(providers.front());
  OGA_CHECK_MSG(row != nullptr, "a provider without a device: ", providers.front());
  return row->make();
}

}  // namespace oga
