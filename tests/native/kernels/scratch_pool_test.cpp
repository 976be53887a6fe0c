#include "kernels/scratch_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
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

}  // namespace
}  // namespace oga::kernels
