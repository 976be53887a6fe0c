#include "kernels/product/weight_arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>

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
