#include "search/row_scan.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace oga::search {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Compilers leave such loops scalar where they are written over single floats.
typedef float Four __attribute__((vector_size(16)));
typedef int32_t FourMasks __attribute__((vector_size(16)));
constexpr size_t kVectors = 4;  // independent chains, since one running maximum is a chain over the whole vocabulary
constexpr size_t kStep = 4 * kVectors;

inline Four Load(const float* from) {
  Four four;
  std::memcpy(&four, from, sizeof(four));
  return four;
}
inline Four All(float value) { return Four{value, value, value, value}; }
inline Four Choose(FourMasks mask, Four a, Four b) { return (Four)((mask & (FourMasks)a) | (~mask & (FourMasks)b)); }
inline bool Any(FourMasks mask) { return (mask[0] | mask[1] | mask[2] | mask[3]) != 0; }

inline void Look(float value, RowRange* range) {
  const bool good = value < kInfinity;  // false for NaN too
  range->bad |= !good;
  if (good && value > range->highest) range->highest = value;
}

}  // namespace

RowRange RangeOf(std::span<const float> row) {
  Four highest[kVectors];
  FourMasks good[kVectors];
  std::fill(std::begin(highest), std::end(highest), All(-kInfinity));
  std::fill(std::begin(good), std::end(good), FourMasks{-1, -1, -1, -1});
  const size_t whole = row.size() / kStep * kStep;
  for (size_t i = 0; i < whole; i += kStep) {
    for (size_t v = 0; v < kVectors; ++v) {
      const Four values = Load(row.data() + i + 4 * v);
      const FourMasks below = values < All(kInfinity);
      good[v] &= below;
      highest[v] = Choose(below & (values > highest[v]), values, highest[v]);
    }
  }
  RowRange range;
  for (size_t v = 0; v < kVectors; ++v) {
    range.bad |= Any(~good[v]);
    for (int lane = 0; lane < 4; ++lane) range.highest = std::max(range.highest, highest[v][lane]);
  }
  for (const float value : row.subspan(whole)) Look(value, &range);
  return range;
}

size_t FirstPlaceOf(float value, std::span<const float> row) {
  size_t i = 0;
  for (; i + kStep <= row.size(); i += kStep) {
    FourMasks found = {};
    for (size_t v = 0; v < kVectors; ++v) found |= Load(row.data() + i + 4 * v) == All(value);
    if (Any(found)) break;
  }
  return static_cast<size_t>(std::find(row.begin() + static_cast<ptrdiff_t>(i), row.end(), value) - row.begin());
}

}  // namespace oga::search
