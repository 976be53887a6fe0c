#include "memory/kv_storage.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>

#include "base/check.h"
#include "base/error.h"
#include "device/cpu/cpu_device.h"
#include "support/remote_device.h"

namespace oga {
namespace {

constexpr uint64_t kMebibyte = uint64_t{1} << 20;

const Device& Cpu() {
  static const std::shared_ptr<const Device> device = MakeCpuDevice();
  return *device;
}

KvShape SmallShape() {
  return {.num_layers = 3, .num_blocks = 5, .block_size_slots = 4, .num_kv_heads = 2, .head_size = 8};
}

uint64_t ResidentBytes() {
  uint64_t size_pages = 0;
  uint64_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> size_pages >> resident_pages;
  return resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

TEST(KvStorage, CountsBytesByElementType) {
  KvShape shape = SmallShape();
  const KvStorage full(Cpu(), shape);
  EXPECT_EQ(shape.slot_bytes(), 2u * 8 * 4);
  EXPECT_EQ(full.tensor_bytes(), 5u * 4 * 64);
  EXPECT_EQ(full.block_bytes(), 2u * 3 * 4 * 64);
  EXPECT_GE(full.total_bytes(), 5 * full.block_bytes());
  shape.type = CacheType::kFloat16;
  const KvStorage half(Cpu(), shape);
  EXPECT_EQ(half.tensor_bytes(), full.tensor_bytes() / 2);
  EXPECT_EQ(half.block_bytes(), full.block_bytes() / 2);
  shape.type = CacheType::kBfloat16;
  EXPECT_EQ(shape.slot_bytes(), 2u * 8 * 2);
  shape.type = CacheType::kInt8;
  EXPECT_EQ(KvStorage(Cpu(), shape).tensor_bytes(), full.tensor_bytes() / 4);
}

// The layout and the copies, wherever the tensors live.
class KvStorageOnAnyDevice : public ::testing::TestWithParam<std::shared_ptr<const Device> (*)()> {
 protected:
  using Bytes = std::vector<unsigned char>;

  void Fill(DeviceAddress target, uint64_t bytes, unsigned char value) {
    const Bytes values(bytes, value);
    stream_->CopyToDevice(target, values.data(), bytes);
    stream_->Synchronize();
  }

  Bytes Read(DeviceAddress source, uint64_t bytes) {
    Bytes values(bytes);
    stream_->CopyToHost(values.data(), source, bytes);
    stream_->Synchronize();
    return values;
  }

  const std::shared_ptr<const Device> device_ = GetParam()();
  const std::unique_ptr<DeviceStream> stream_ = device_->CreateStream();
  const KvStorage storage_{*device_, SmallShape()};
};

TEST_P(KvStorageOnAnyDevice, KeepsTensorsApartAndZeroAtFirst) {
  std::set<DeviceAddress> tensors;
  for (uint32_t layer = 0; layer < 3; ++layer) {
    for (const KvSide side : {KvSide::kKey, KvSide::kValue}) {
      const DeviceAddress tensor = storage_.Tensor(layer, side);
      EXPECT_EQ(storage_.Tensor(layer, side), tensor);
      EXPECT_EQ(Read(tensor, storage_.tensor_bytes()), Bytes(storage_.tensor_bytes(), 0));
      Fill(tensor, storage_.tensor_bytes(), static_cast<unsigned char>(tensors.size() + 1));
      tensors.insert(tensor);
    }
  }
  ASSERT_EQ(tensors.size(), 6u);
  unsigned char expected = 1;
  for (uint32_t layer = 0; layer < 3; ++layer) {
    for (const KvSide side : {KvSide::kKey, KvSide::kValue}) {
      EXPECT_EQ(Read(storage_.Tensor(layer, side), storage_.tensor_bytes()), Bytes(storage_.tensor_bytes(), expected));
      ++expected;
    }
  }
}

TEST_P(KvStorageOnAnyDevice, CopiesABlockOfEveryLayerAndSideAndNothingElse) {
  const uint64_t block_bytes = storage_.tensor_bytes() / 5;
  const auto block = [&](uint32_t layer, KvSide side, int id) {
    return storage_.Tensor(layer, side) + id * block_bytes;
  };
  const auto mark = [](uint32_t layer, KvSide side, int id) {
    return static_cast<unsigned char>(40 * layer + (side == KvSide::kKey ? 0 : 20) + id + 1);
  };
  for (uint32_t layer = 0; layer < 3; ++layer) {
    for (const KvSide side : {KvSide::kKey, KvSide::kValue}) {
      for (int id = 0; id < 5; ++id) Fill(block(layer, side, id), block_bytes, mark(layer, side, id));
    }
  }
  storage_.CopyBlock(*stream_, 4, 1);
  storage_.CopyBlock(*stream_, 2, 2);
  for (uint32_t layer = 0; layer < 3; ++layer) {
    for (const KvSide side : {KvSide::kKey, KvSide::kValue}) {
      for (int id = 0; id < 5; ++id) {
        const Bytes wanted(block_bytes, mark(layer, side, id == 1 ? 4 : id));
        EXPECT_EQ(Read(block(layer, side, id), block_bytes), wanted) << layer << ' ' << id;
      }
    }
  }
}

TEST_P(KvStorageOnAnyDevice, RefusesToCopyABlockThatDoesNotExist) {
  for (const auto& [source, target] : {std::pair{5, 0}, {0, 5}, {-1, 0}, {0, -1}}) {
    EXPECT_THROW(storage_.CopyBlock(*stream_, source, target), ContractError) << source << ' ' << target;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, KvStorageOnAnyDevice, ::testing::Values(MakeCpuDevice, testing::MakeRemoteDevice),
                         [](const auto& info) { return std::string(info.index == 0 ? "Cpu" : "Remote"); });

TEST(KvStorage, AlignsLargeTensorsToHugePages) {
  KvShape shape = SmallShape();
  shape.num_blocks = 3 * 2 * kMebibyte / (4 * shape.slot_bytes()) + 1;
  const KvStorage storage(Cpu(), shape);
  for (uint32_t layer = 0; layer < 3; ++layer) {
    EXPECT_EQ(static_cast<uint64_t>(storage.Tensor(layer, KvSide::kKey)) % (2 * kMebibyte), 0u);
    EXPECT_EQ(static_cast<uint64_t>(storage.Tensor(layer, KvSide::kValue)) % (2 * kMebibyte), 0u);
  }
}

TEST(KvStorage, CostsMemoryOnlyWhereItIsWritten) {
  KvShape shape = SmallShape();
  shape.block_size_slots = 1024;
  shape.num_blocks = 4096;
  const uint64_t before = ResidentBytes();
  const KvStorage storage(Cpu(), shape);
  ASSERT_GT(storage.total_bytes(), 1024 * kMebibyte);
  EXPECT_LT(ResidentBytes(), before + 8 * kMebibyte);
  *reinterpret_cast<char*>(storage.Tensor(1, KvSide::kKey)) = 1;
  EXPECT_LT(ResidentBytes(), before + 16 * kMebibyte);
}

TEST(KvStorage, HoldsItsLeaseAndIsCountedByItsPages) {
  uint64_t asked_bytes = 0;
  Ledger ledger({{},
                 [] {
                   return HostMemory{1 << 30, "x"};
                 },
                 [&](uintptr_t, uint64_t bytes) {
                   asked_bytes = bytes;
                   return uint64_t{0};
                 }});
  {
    const KvStorage storage(Cpu(), SmallShape(), ledger.Claim(MemoryRole::kKv, 1000, BeyondMemory::kRefuse));
    EXPECT_EQ(ledger.Report().of(MemoryRole::kKv).owned, 1000u);
    const Lease next = ledger.Claim(MemoryRole::kKv, 1, BeyondMemory::kRefuse);
    EXPECT_GE(asked_bytes, 5 * storage.block_bytes());
    ledger.Validate();
  }
  EXPECT_EQ(ledger.Report().of(MemoryRole::kKv).owned, 0u);
}

TEST(KvStorage, SaysHowMuchItWantedWhenTheSystemRefuses) {
  KvShape shape = SmallShape();
  shape.num_blocks = 0x7fffffff;
  shape.block_size_slots = 1 << 16;
  for (const auto& [kv_heads, part] :
       {std::pair{2u, " bytes, which the system does not give"}, {1u << 28, "more bytes than there are addresses"}}) {
    shape.num_kv_heads = kv_heads;
    try {
      const KvStorage storage(Cpu(), shape);
      FAIL() << "2^31 blocks were given";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), StatusCode::kResourceExhausted);
      EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
      EXPECT_NE(error.message().find("2147483647 blocks of 65536 tokens over 3 layers"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace oga
