#if defined(__x86_64__)

#include "benchmarks/limits_avx512.h"

namespace oga::benchmarks {
namespace {

constexpr int kProducts = 4;                       // sums, as many as a product of two tiles by two has
constexpr double kTileFlops = 16.0 * 16 * 32 * 2;  // of one multiplication

// Sixteen rows of 64 bytes in each of the eight tiles.
struct alignas(64) Configuration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(Configuration) == 64);

// In assembly, for the reasons that kernels/nbits_matmul_amx.cpp gives.
float MultiplyTiles(int64_t rounds) {
  const Configuration configuration;
  alignas(64) uint16_t factors[512] = {};
  alignas(64) float sums[256] = {};
  asm volatile("ldtilecfg %0" : : "m"(configuration));
  asm volatile(
      "tilezero %%tmm0\n tilezero %%tmm1\n tilezero %%tmm2\n tilezero %%tmm3\n"
      "tileloadd (%0,%1,1), %%tmm4\n tileloadd (%0,%1,1), %%tmm5\n"
      "tileloadd (%0,%1,1), %%tmm6\n tileloadd (%0,%1,1), %%tmm7\n"
      :
      : "r"(factors), "r"(int64_t{64})
      : "memory");
  for (int64_t round = 0; round < rounds; ++round) {
    asm volatile(
        "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n tdpbf16ps %%tmm7, %%tmm4, %%tmm1\n"
        "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\n tdpbf16ps %%tmm7, %%tmm5, %%tmm3\n"
        :
        :);
  }
  asm volatile("tilestored %%tmm0, (%0,%1,1)\n tilerelease" : : "r"(sums), "r"(int64_t{64}) : "memory");
  return sums[0];
}

}  // namespace

const LimitLoops kLimitsAmx = {ReadLoop<Avx512>, MultiplyTiles, kProducts* kTileFlops};

}  // namespace oga::benchmarks

#endif
