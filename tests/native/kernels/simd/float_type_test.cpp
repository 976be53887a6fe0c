#include "kernels/simd/float_type.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace oga::kernels {
namespace {

TEST(FloatTypes, OfSixteenBitsWidenAndComeBackUnchanged) {
  for (const FloatType type : {FloatType::kFloat16, FloatType::kBfloat16}) {
    std::vector<uint16_t> all(1 << 16), back(1 << 16);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
    std::vector<float> wide(all.size());
    Widen(type, all.data(), static_cast<int64_t>(all.size()), wide.data());
    Narrow(type, wide.data(), static_cast<int64_t>(wide.size()), back.data());
    for (size_t i = 0; i < all.size(); ++i) {
      ASSERT_TRUE(std::isnan(wide[i]) || back[i] == all[i]) << i;
    }
    EXPECT_EQ(wide[type == FloatType::kFloat16 ? 0x3c00 : 0x3f80], 1.0f);
  }
}

TEST(FloatTypes, RoundToTheNearestAndTiesToEven) {
  const float values[] = {1.0f + 0x1p-8f, 1.0f + 0x3p-8f, -1.0f - 0x1.01p-8f};
  uint16_t halves[3];
  Narrow(FloatType::kBfloat16, values, 3, halves);
  EXPECT_EQ(halves[0], 0x3f80);
  EXPECT_EQ(halves[1], 0x3f82);
  EXPECT_EQ(halves[2], 0xbf81);
  const float copied[] = {0x1.fffffep0f};
  float kept = 0;
  Narrow(FloatType::kFloat, copied, 1, &kept);
  EXPECT_EQ(kept, copied[0]);
}

}  // namespace
}  // namespace oga::kernels
