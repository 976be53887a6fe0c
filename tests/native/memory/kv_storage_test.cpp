#include "memory/kv_storage.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>

#include "base/check.h"
#include "base/error.h"

namespace oga {
namespace {

constexpr uint64_t kMebibyte = uint64_t{1} << 20;

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
  const KvStorage full(shape);
  EXPECT_EQ(shape.slot_bytes(), 2u * 8 * 4);
  EXPECT_EQ(full.tensor_bytes(), 5u * 4 * 64);
  EXPECT_EQ(full.block_bytes(), 2u * 3 * 4 * 64);
  EXPECT_GE(full.total_bytes(), 5 * full.block_bytes());
  shape.type = CacheType::kFloat16;
  const KvStorage half(shape);
  EXPECT_EQ(half.tensor_bytes(), full.tensor_bytes() / 2);
  EXPECT_EQ(half.block_bytes(), full.block_bytes() / 2);
  shape.type = CacheType::kBfloat16;
  EXPECT_EQ(shape.slot_bytes(), 2u * 8 * 2);
  shape.type = CacheType::kInt8;
  EXPECT_EQ(KvStorage(shape).tensor_bytes(), full.tensor_bytes() / 4);
}

TEST(KvStorage, KeepsTensorsApartAndZeroAtFirst) {
  const KvStorage storage(SmallShape());
  std::set<void*> tensors;
  for (uint32_t layer = 0; layer < 3; ++layer) {
    for (const KvSide side : {KvSide::kKey, KvSide::kValue}) {
      auto* const bytes = static_cast<unsigned char*>(storage.Tensor(layer, side));
      EXPECT_EQ(storage.Tensor(layer, side), bytes);
      EXPECT_TRUE(std::all_of(bytes, bytes + storage.tensor_bytes(), [](unsigned char b) { return b == 0; }));
      std::memset(bytes, static_cast<int>(tensors.size()) + 1, storage.tensor_bytes());
      tensors.insert(bytes);
    }
  }
  ASSERT_EQ(tensors.size(), 6u);
  unsigned char expected = 1;
  for (uint32_t layer = 0; layer < 3; ++layer) {
    for (const KvSide side : {KvSide::kKey, KvSide::kValue}) {
      const auto* const bytes = static_cast<unsigned char*>(storage.Tensor(layer, side));
      EXPECT_TRUE(std::all_of(bytes, bytes + storage.tensor_bytes(), [&](unsigned char b) { return b == expected; }));
      ++expected;
    }
  }
}

TEST(KvStorage, CopiesABlockOfEveryLayerAndSideAndNothingElse) {
  const KvStorage storage(SmallShape());
  const uint64_t block_bytes = storage.tensor_bytes() / 5;
  const auto block = [&](uint32_t layer, KvSide side, int id) {
    return static_cast<unsigned char*>(storage.Tensor(layer, side)) + id * block_bytes;
  };
  const auto mark = [](uint32_t layer, KvSide side, int id) {
    return static_cast<unsigned char>(40 * layer + (side == KvSide::kKey ? 0 : 20) + id + 1);
  };
  for (uint32_t layer = 0; layer < 3; ++layer) {
    for (const KvSide side : {KvSide::kKey, KvSide::kValue}) {
      for (int id = 0; id < 5; ++id) std::memset(block(layer, side, id), mark(layer, side, id), block_bytes);
    }
  }
  storage.CopyBlock(4, 1);
  storage.CopyBlock(2, 2);
  for (uint32_t layer = 0; layer < 3; ++layer) {
    for (const KvSide side : {KvSide::kKey, KvSide::kValue}) {
      for (int id = 0; id < 5; ++id) {
        const std::vector<unsigned char> wanted(block_bytes, mark(layer, side, id == 1 ? 4 : id));
        EXPECT_EQ(std::memcmp(block(layer, side, id), wanted.data(), block_bytes), 0) << layer << ' ' << id;
      }
    }
  }
}

TEST(KvStorage, RefusesToCopyABlockThatDoesNotExist) {
  const KvStorage storage(SmallShape());
  for (const auto& [source, target] : {std::pair{5, 0}, {0, 5}, {-1, 0}, {0, -1}}) {
    EXPECT_THROW(storage.CopyBlock(source, target), ContractError) << source << ' ' << target;
  }
}

TEST(KvStorage, AlignsLargeTensorsToHugePages) {
  KvShape shape = SmallShape();
  shape.num_blocks = 3 * 2 * kMebibyte / (4 * shape.slot_bytes()) + 1;
  const KvStorage storage(shape);
  for (uint32_t layer = 0; layer < 3; ++layer) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(storage.Tensor(layer, KvSide::kKey)) % (2 * kMebibyte), 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(storage.Tensor(layer, KvSide::kValue)) % (2 * kMebibyte), 0u);
  }
}

TEST(KvStorage, CostsMemoryOnlyWhereItIsWritten) {
  KvShape shape = SmallShape();
  shape.block_size_slots = 1024;
  shape.num_blocks = 4096;
  const uint64_t before = ResidentBytes();
  const KvStorage storage(shape);
  ASSERT_GT(storage.total_bytes(), 1024 * kMebibyte);
  EXPECT_LT(ResidentBytes(), before + 8 * kMebibyte);
  static_cast<char*>(storage.Tensor(1, KvSide::kKey))[0] = 1;
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
    const KvStorage storage(SmallShape(), ledger.Claim(MemoryRole::kKv, 1000, BeyondMemory::kRefuse));
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
      const KvStorage storage(shape);
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
