#include <gtest/gtest.h>

#include "device/devices.h"

namespace oga {
namespace {

TEST(DeviceRows, OfThisBuildAreTheCpu) {
  ASSERT_EQ(DeviceRows().size(), 1u);
  EXPECT_EQ(DeviceRows().front().name, "cpu");
  EXPECT_EQ(DeviceRows().front().make()->name(), "CPU");
}

}  // namespace
}  // namespace oga
