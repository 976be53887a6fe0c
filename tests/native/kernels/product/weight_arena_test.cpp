#include "kernels/product/weight_arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace oga::kernels {
namespace {

class CountingAccount final : public MemoryAccount {
 public:
  void Charge(size_t bytes) override {
    if (charged_bytes + bytes > 4096) throw std::runtime_error("refused");
    charged_bytes += bytes;
  }
  void Refund(size_t bytes) noexcept override { charged_bytes -= bytes; }

  size_t charged_bytes = 0;
};

TEST(WeightArena, HandsOutWholeLinesOneAfterAnother) {
  WeightArena arena;
  uint8_t* const first = arena.Allocate(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  EXPECT_EQ(arena.Allocate(1), first + 128);
  EXPECT_EQ(arena.used_bytes(), 192u);
}

TEST(WeightArena, HandsOutZeroedLinesThatDoNotOverlap) {
  WeightArena arena;
  std::vector<std::pair<uint8_t*, size_t>> given;
  for (const size_t bytes : {size_t{1}, size_t{64}, size_t{100}, size_t{70} << 20, size_t{3}}) {
    uint8_t* const memory = arena.Allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
    EXPECT_EQ(memory[0], 0);
    EXPECT_EQ(memory[bytes - 1], 0);
    for (const auto& [other, size] : given) EXPECT_TRUE(memory + bytes <= other || other + size <= memory);
    memory[0] = memory[bytes - 1] = 1;
    given.emplace_back(memory, bytes);
  }
  EXPECT_EQ(arena.used_bytes(), 64u + 64 + 128 + (size_t{70} << 20) + 64);
}

// The pieces behind are larger, and cost nothing where they are not handed out.
TEST(WeightArena, ChargesWhatItHandsOut) {
  CountingAccount account;
  {
    WeightArena arena(&account);
    arena.Allocate(100);
    arena.Allocate(1000);
    EXPECT_EQ(account.charged_bytes, arena.used_bytes());
    EXPECT_THROW(arena.Allocate(4096), std::runtime_error);
    EXPECT_EQ(account.charged_bytes, arena.used_bytes());
    arena.Allocate(64);
    EXPECT_EQ(account.charged_bytes, 128u + 1024 + 64);
  }
  EXPECT_EQ(account.charged_bytes, 0u);
}

}  // namespace
}  // namespace oga::kernels
