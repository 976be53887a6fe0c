// What every device promises, over the CPU and over the remote device of the tests; and that the latter is remote.
#include "device/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "device/cpu/cpu_device.h"
#include "support/remote_device.h"

namespace oga {
namespace {

using Bytes = std::vector<unsigned char>;

struct MakeAny {
  const char* name;
  std::shared_ptr<const Device> (*make)();
};

class AnyDevice : public ::testing::TestWithParam<MakeAny> {
 protected:
  Bytes Read(DeviceAddress address, size_t bytes) {
    Bytes read(bytes);
    stream_->CopyToHost(read.data(), address, bytes);
    stream_->Synchronize();
    return read;
  }

  const std::shared_ptr<const Device> device_ = GetParam().make();
  const std::unique_ptr<DeviceStream> stream_ = device_->CreateStream();
};

Bytes Counting(size_t bytes, unsigned char first = 0) {
  Bytes values(bytes);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST_P(AnyDevice, CopiesInTheOrderOfTheCalls) {
  const auto memory = device_->AllocateBuffer(300);
  const Bytes first = Counting(100);
  const Bytes second = Counting(50, 200);
  stream_->CopyToDevice(memory->address(), first.data(), 100);
  stream_->CopyWithin(memory->address() + 200, memory->address(), 100);
  stream_->CopyToDevice(memory->address(), second.data(), 50);
  stream_->CopyWithin(memory->address() + 100, memory->address(), 100);
  Bytes wanted = second;
  wanted.insert(wanted.end(), first.begin() + 50, first.end());
  const Bytes half = wanted;
  wanted.insert(wanted.end(), half.begin(), half.end());
  wanted.insert(wanted.end(), first.begin(), first.end());
  EXPECT_EQ(Read(memory->address(), 300), wanted);
}

TEST_P(AnyDevice, GivesPoolsThatStartWhereTheyShouldAndReadAsZeros) {
  for (const uint64_t alignment : {uint64_t{4096}, uint64_t{2} << 20}) {
    const uint64_t bytes = 3 * alignment;
    const auto pool = device_->AllocatePool(bytes, alignment);
    EXPECT_EQ(pool->bytes(), bytes);
    EXPECT_EQ(static_cast<uint64_t>(pool->address()) % alignment, 0u);
    const Bytes mark = {7};
    stream_->CopyToDevice(pool->address() + (bytes - 1), mark.data(), 1);
    const Bytes read = Read(pool->address(), bytes);
    EXPECT_EQ(std::count(read.begin(), read.end(), 0), static_cast<ptrdiff_t>(bytes - 1));
    EXPECT_EQ(read.back(), 7);
  }
}

TEST_P(AnyDevice, ShowsTheHostTheSameBytesWhereItShowsAny) {
  const auto memory = device_->AllocateBuffer(64);
  if (memory->host() == nullptr) return;
  std::memset(memory->host(), 5, 64);
  EXPECT_EQ(Read(memory->address(), 64), Bytes(64, 5));
}

TEST_P(AnyDevice, GivesStagingMemoryThatTheHostReaches) {
  const auto staging = device_->AllocateStaging(64);
  const auto memory = device_->AllocateBuffer(64);
  ASSERT_NE(staging->host(), nullptr);
  std::memset(staging->host(), 9, 64);
  stream_->CopyToDevice(memory->address(), staging->host(), 64);
  EXPECT_EQ(Read(memory->address(), 64), Bytes(64, 9));
}

TEST_P(AnyDevice, GivesTheRuntimeAPointerToTheSameBytes) {
  const auto memory = device_->AllocateBuffer(64);
  std::memset(device_->RuntimePointer(memory->address() + 8), 3, 8);
  EXPECT_EQ(Read(memory->address() + 8, 8), Bytes(8, 3));
}

TEST_P(AnyDevice, RefusesAPoolThatNoMachineHas) {
  for (const uint64_t bytes : {uint64_t{1} << 62, UINT64_MAX - 4095}) {
    try {
      device_->AllocatePool(bytes, uint64_t{2} << 20);
      FAIL() << bytes << " bytes were given";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), StatusCode::kResourceExhausted);
      EXPECT_FALSE(error.message().empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, AnyDevice,
                         ::testing::Values(MakeAny{"Cpu", MakeCpuDevice}, MakeAny{"Remote", testing::MakeRemoteDevice}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(RemoteDevice, EndsAProgramThatTakesItsAddressesForPointers) {
  const auto device = testing::MakeRemoteDevice();
  for (const auto& memory : {device->AllocateBuffer(64), device->AllocatePool(4096, 4096)}) {
    EXPECT_EQ(memory->host(), nullptr);
    auto* const taken = reinterpret_cast<volatile char*>(memory->address());
    EXPECT_DEATH(taken[0] = 1, "");
    EXPECT_DEATH(static_cast<void>(taken[63] == 1), "");
  }
}

TEST(RemoteDevice, CopiesNothingBeforeItIsSynchronised) {
  const auto device = testing::MakeRemoteDevice();
  const auto stream = device->CreateStream();
  const auto memory = device->AllocatePool(4, 4096);
  Bytes there = {1, 2, 3, 4};
  Bytes back = {0, 0, 0, 0};
  stream->CopyToDevice(memory->address(), there.data(), 4);
  stream->CopyToHost(back.data(), memory->address(), 4);
  EXPECT_EQ(back, Bytes(4, 0xff));
  EXPECT_EQ(std::memcmp(device->RuntimePointer(memory->address()), "\0\0\0\0", 4), 0);
  stream->Synchronize();
  EXPECT_EQ(back, there);
}

TEST(RemoteDevice, ForgetsTheCopiesOfAFailure) {
  const auto device = testing::MakeRemoteDevice();
  const auto stream = device->CreateStream();
  const auto memory = device->AllocatePool(2, 4096);
  const Bytes ones = {1, 1};
  stream->CopyToDevice(memory->address(), ones.data(), 1);
  stream->CopyToDevice(memory->address() + 1, ones.data(), 1);
  testing::g_remote_faults.synchronisation = 1;
  EXPECT_THROW(stream->Synchronize(), Error);
  stream->Synchronize();
  EXPECT_EQ(std::memcmp(device->RuntimePointer(memory->address()), "\1\0", 2), 0);
}

TEST(RemoteDevice, NoticesACopyBeyondItsMemory) {
  const auto device = testing::MakeRemoteDevice();
  const auto stream = device->CreateStream();
  const auto memory = device->AllocateBuffer(64);
  Bytes host(65);
  EXPECT_THROW(stream->CopyToHost(host.data(), memory->address(), 65), Error);
  EXPECT_THROW(stream->CopyToDevice(memory->address() + 64, host.data(), 1), Error);
  EXPECT_THROW(stream->CopyWithin(memory->address() + 60, memory->address(), 5), Error);
  EXPECT_THROW(stream->CopyToHost(host.data(), AddressOf(host.data()), 1), Error);
}

}  // namespace
}  // namespace oga
