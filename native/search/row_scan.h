// Passes over a row of scores that need no more than one look at each: they run for every token of every row, on one
// thread, so their time counts.
#pragma once

#include <cstddef>
#include <limits>
#include <span>

namespace oga::search {

struct RowRange {
  bool bad = false;  // holds NaN or +infinity
  float highest = -std::numeric_limits<float>::infinity();
};

// `highest` leaves out what is bad.
RowRange RangeOf(std::span<const float> row);

// The first place of a value, or the row's size. No NaN.
size_t FirstPlaceOf(float value, std::span<const float> row);

}  // namespace oga::search
