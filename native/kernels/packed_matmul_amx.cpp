#if defined(__x86_64__)

#include "kernels/packed_lanes_avx512.h"

#include "kernels/packed_amx.h"

namespace oga::kernels {
namespace {

// The instructions themselves, in assembly: compilers' intrinsics want literal tile numbers, and that of GCC 12 declares
// 8 of the 64 bytes that the configuration reads, so that stores to the others may vanish.
class HardwareTiles {
 public:
  static inline void Configure(int32_t low_rows, int32_t high_rows) {
    const uint8_t rows[8] = {
        Byte(low_rows), Byte(low_rows), Byte(high_rows), Byte(high_rows), Byte(low_rows), Byte(high_rows), 16, 16};
    Configuration configuration = {};
    configuration.palette = 1;
    for (int tile = 0; tile < 8; ++tile) {
      configuration.row_bytes[tile] = kTileStride;
      configuration.rows[tile] = rows[tile];
    }
    asm volatile("ldtilecfg %0" : : "m"(configuration));
  }
  static inline void Release() { asm volatile("tilerelease" : : : "memory"); }

  template <int tile>
  static inline void Zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(tile));
  }
  template <int tile>
  static inline void Load(const void* from, ptrdiff_t stride_bytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride_bytes), "i"(tile) : "memory");
  }
  template <int tile>
  static inline void Store(void* to, ptrdiff_t stride_bytes) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride_bytes), "i"(tile) : "memory");
  }
  template <int sums, int left, int right>
  static inline void Multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(left), "i"(right));
  }

 private:
  struct alignas(64) Configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  };
  static_assert(sizeof(Configuration) == 64);

  static inline uint8_t Byte(int32_t value) { return static_cast<uint8_t>(value); }
};

}  // namespace

const PackedVariant kPackedAmx = AmxEntry<PairLanes, HardwareTiles>::kTable;

}  // namespace oga::kernels

#endif
