#include "device/devices.h"

#include <gtest/gtest.h>

#include "base/check.h"

namespace oga {
namespace {

TEST(Devices, AreListedByName) { EXPECT_EQ(DeviceNames(), "'cpu'"); }

TEST(Devices, AreNamedByTheirProvidersInLettersOfAnySize) {
  for (const char* name : {"cpu", "CPU", "Cpu", "CPUExecutionProvider", "cpuexecutionprovider"}) {
    EXPECT_TRUE(HasDevice(name)) << name;
    EXPECT_EQ(MakeDevice(std::vector<std::string>{name})->name(), "CPU");
  }
  for (const char* name : {"", "cp", "cpu ", " cpu", "cpux", "cuda", "executionprovider", "cpuExecutionProviders",
                           "CPUExecution", "c\xc3\xbcpu"}) {
    EXPECT_FALSE(HasDevice(name)) << name;
  }
}

TEST(Devices, AreTheFirstProvidersOrTheDefault) {
  EXPECT_EQ(MakeDevice()->name(), "CPU");
  EXPECT_EQ(MakeDevice(std::vector<std::string>{"CPUExecutionProvider", "cpu"})->name(), "CPU");
  EXPECT_THROW(MakeDevice(std::vector<std::string>{"cuda", "cpu"}), ContractError);
}

}  // namespace
}  // namespace oga
