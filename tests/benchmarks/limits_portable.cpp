#include <cstring>

#include "benchmarks/limits_loops.h"

namespace oga::benchmarks {
namespace {

// What every machine of a family has, by the compilers' own vectors of 16 bytes.
struct Portable {
  using Bits = uint64_t __attribute__((vector_size(16)));
  using Sums = float __attribute__((vector_size(16)));
  using Factor = Sums;
  static constexpr size_t kBytes = 16;
  static constexpr int kFlops = 8;
  static constexpr int kSums = 12;

  static Bits Load(const uint8_t* from) {
    Bits bits;
    std::memcpy(&bits, from, sizeof(bits));
    return bits;
  }
  static Bits Add(Bits a, Bits b) { return a + b; }
  static uint64_t Sum(Bits bits) { return bits[0] + bits[1]; }
  static Sums Begin(float value) { return Sums{value, value, value, value}; }
  static Factor Make(float value) { return Begin(value); }
  static Sums MultiplyAdd(Sums sums, Factor a, Factor b) { return sums * a + b; }
  static float First(Sums sums) { return sums[0]; }
};

}  // namespace

const LimitLoops kLimitsPortable = kLoops<Portable>;

}  // namespace oga::benchmarks
