#include "kernels/scratch_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

namespace oga::kernels {
namespace {

TEST(ScratchPool, LendsTheSameMemoryAgain) {
  ScratchPool pool;
  void* first = nullptr;
  {
    const ScratchPool::Loan loan(&pool, 1000);
    first = loan.data();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
    std::memset(loan.data(), 1, 1000);
  }
  const ScratchPool::Loan again(&pool, 900);
  EXPECT_EQ(again.data(), first);
}

TEST(ScratchPool, GrowsABufferThatIsTooSmall) {
  ScratchPool pool;
  { const ScratchPool::Loan loan(&pool, 10); }
  const ScratchPool::Loan loan(&pool, 1 << 20);
  std::memset(loan.data(), 1, 1 << 20);
}

TEST(ScratchPool, LendsEachBorrowerItsOwn) {
  ScratchPool pool;
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([&pool, id] {
      for (size_t round = 1; round < 200; ++round) {
        const ScratchPool::Loan loan(&pool, round * 8);
        std::memset(loan.data(), id, round * 8);
        const auto* const bytes = static_cast<const uint8_t*>(loan.data());
        for (size_t i = 0; i < round * 8; ++i) ASSERT_EQ(bytes[i], id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Grants up to a limit.
class CountingAccount final : public MemoryAccount {
 public:
  void Charge(size_t bytes) override {
    if (charged_bytes + bytes > 1000) throw std::runtime_error("refused");
    charged_bytes += bytes;
  }
  void Refund(size_t bytes) noexcept override { charged_bytes -= bytes; }

  size_t charged_bytes = 0;
};

TEST(ScratchPool, ChargesEveryBufferForAsLongAsItIsKept) {
  CountingAccount account;
  {
    ScratchPool pool(&account);
    {
      const ScratchPool::Loan first(&pool, 100);
      const ScratchPool::Loan second(&pool, 300);
      EXPECT_EQ(account.charged_bytes, 400u);
    }
    EXPECT_EQ(account.charged_bytes, 400u);
    const ScratchPool::Loan grown(&pool, 500);
    EXPECT_TRUE(account.charged_bytes == 600 || account.charged_bytes == 800) << "the new in place of the old";
  }
  EXPECT_EQ(account.charged_bytes, 0u);
}

TEST(ScratchPool, LendsAgainAfterARefusal) {
  CountingAccount account;
  ScratchPool pool(&account);
  { const ScratchPool::Loan loan(&pool, 600); }
  EXPECT_THROW(ScratchPool::Loan(&pool, 1001), std::runtime_error);
  EXPECT_EQ(account.charged_bytes, 0u);
  const ScratchPool::Loan loan(&pool, 1000);
  EXPECT_EQ(account.charged_bytes, 1000u);
}

}  // namespace
}  // namespace oga::kernels
