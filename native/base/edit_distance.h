// How far a misspelt name is from the one that was meant.
#pragma once

#include <cstddef>
#include <string_view>

namespace oga {

// The fewest insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
size_t EditDistance(std::string_view a, std::string_view b);

}  // namespace oga
