// What the CPU promises beyond what every device does: its memory is the host's, and a copy is done when it returns.
#include "device/cpu/cpu_device.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/platform_memory.h"

namespace oga {
namespace {

TEST(CpuDevice, IsWhatTheRuntimeCallsCpu) {
  const auto device = MakeCpuDevice();
  EXPECT_EQ(device->name(), "CPU");
  EXPECT_STREQ(device->runtime_memory().name, "Cpu");
  EXPECT_EQ(device->runtime_memory().id, 0);
}

TEST(CpuDevice, ShowsTheHostAllOfItsMemory) {
  const auto device = MakeCpuDevice();
  for (const auto& memory :
       {device->AllocateBuffer(100), device->AllocateStaging(100), device->AllocatePool(4096, 4096)}) {
    ASSERT_NE(memory->host(), nullptr);
    EXPECT_EQ(memory->address(), AddressOf(memory->host()));
    EXPECT_EQ(device->RuntimePointer(memory->address()), memory->host());
    EXPECT_EQ(static_cast<uint64_t>(memory->address()) % 64, 0u) << "vectors are read over a cache line";
  }
}

TEST(CpuDevice, HasCopiedWhenTheCallReturns) {
  const auto device = MakeCpuDevice();
  const auto stream = device->CreateStream();
  const auto memory = device->AllocateBuffer(8);
  char back[4] = {};
  stream->CopyToDevice(memory->address(), "abcd", 4);
  EXPECT_EQ(std::memcmp(memory->host(), "abcd", 4), 0);
  stream->CopyWithin(memory->address() + 4, memory->address(), 4);
  stream->CopyToHost(back, memory->address() + 4, 4);
  EXPECT_EQ(std::memcmp(back, "abcd", 4), 0);
}

TEST(CpuDevice, TakesNoMemoryForAPoolThatNobodyHasWritten) {
  const uint64_t bytes = uint64_t{64} << 20;
  for (const uint64_t alignment : {uint64_t{4096}, uint64_t{platform::kHugePageBytes}}) {
    const auto pool = MakeCpuDevice()->AllocatePool(bytes, alignment);
    const auto begin = static_cast<uintptr_t>(pool->address());
    EXPECT_EQ(platform::ResidentBytes(begin, bytes), 0u);
    std::memset(pool->host(), 1, 1);
    EXPECT_GT(platform::ResidentBytes(begin, bytes), 0u);
  }
}

}  // namespace
}  // namespace oga
