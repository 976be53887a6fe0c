// Numbers of bytes as people write and read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace oga {

// "3.4 GiB", by integers, since every other way of writing a fraction asks the locale.
std::string BytesText(uint64_t bytes);

// A whole number with K, M, G or T behind it, or KiB, MiB, GiB or TiB, which mean the same; in any case of letters. None
// of both is bytes. Nothing when the text is anything else, or more than 64 bits hold. KB and its siblings are refused:
// half of the world reads 1000.
std::optional<uint64_t> ParseBytes(std::string_view text);

}  // namespace oga
