#include "base/byte_text.h"

#include <charconv>

#include "base/error.h"

namespace oga {

std::string BytesText(uint64_t bytes) {
  static constexpr const char* kUnits[] = {" bytes", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  uint64_t unit = 0;
  uint64_t tenths = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    tenths = (bytes % 1024) * 10 / 1024;
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? Message(bytes, kUnits[0]) : Message(bytes, ".", tenths, kUnits[unit]);
}

std::optional<uint64_t> ParseBytes(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  std::string unit(end, text.data() + text.size());
  for (char& letter : unit) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  if (unit.empty()) return number;
  const size_t power = std::string_view("kmgt").find(unit.front());
  if (power == std::string_view::npos || (unit.size() > 1 && unit.substr(1) != "ib")) return std::nullopt;
  const unsigned shift = 10 * (static_cast<unsigned>(power) + 1);
  if (number > UINT64_MAX >> shift) return std::nullopt;
  return number << shift;
}

}  // namespace oga
