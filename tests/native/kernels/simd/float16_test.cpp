#include "kernels/simd/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/simd/simd_portable.h"

namespace oga::kernels {
namespace {

TEST(Float16, WidensEveryValueByItsDefinition) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const int exponent = static_cast<int>(bits >> 10), fraction = static_cast<int>(bits & 1023);
    const double wanted = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    ASSERT_EQ(ToFloat(Float16{static_cast<uint16_t>(bits)}), wanted) << bits;
    ASSERT_EQ(ToFloat(Float16{static_cast<uint16_t>(bits | 0x8000)}), -wanted) << bits;
  }
  EXPECT_EQ(ToFloat(Float16{0x7c00}), std::numeric_limits<float>::infinity());
  EXPECT_EQ(ToFloat(Float16{0xfc00}), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(ToFloat(Float16{0x7c01})));
  EXPECT_TRUE(std::signbit(ToFloat(Float16{0x8000})));
}

TEST(Float16, WidensFourAtATimeToTheSameBits) {
  for (uint32_t bits = 0; bits < 0x10000; bits += 4) {
    Float16 halves[4];
    float floats[4];
    for (uint32_t i = 0; i < 4; ++i) halves[i].bits = static_cast<uint16_t>(bits + i);
    Simd::StoreFour(floats, Simd::LoadFour(halves));
    for (uint32_t i = 0; i < 4; ++i) ASSERT_EQ(BitsFromFloat(floats[i]), BitsFromFloat(ToFloat(halves[i]))) << bits + i;
  }
}

TEST(Float16, RoundsToTheNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const float low = ToFloat(Float16{static_cast<uint16_t>(bits)});
    const float high = bits == 0x7bff ? 65536.0f : ToFloat(Float16{static_cast<uint16_t>(bits + 1)});
    const float middle = low + (high - low) / 2;
    ASSERT_EQ(ToFloat16(low).bits, bits);
    ASSERT_EQ(ToFloat16(std::nextafter(middle, 0.0f)).bits, bits);
    ASSERT_EQ(ToFloat16(middle).bits, bits + (bits & 1));
    ASSERT_EQ(ToFloat16(std::nextafter(middle, 1e6f)).bits, bits + 1);
    ASSERT_EQ(ToFloat16(-middle).bits, (bits + (bits & 1)) | 0x8000);
  }
}

TEST(Float16, KeepsWhatIsNoNumber) {
  EXPECT_EQ(ToFloat16(std::numeric_limits<float>::infinity()).bits, 0x7c00);
  EXPECT_EQ(ToFloat16(1e30f).bits, 0x7c00);
  EXPECT_EQ(ToFloat16(-1e30f).bits, 0xfc00);
  EXPECT_GT(ToFloat16(std::numeric_limits<float>::quiet_NaN()).bits & 0x7fff, 0x7c00);
}

}  // namespace
}  // namespace oga::kernels
