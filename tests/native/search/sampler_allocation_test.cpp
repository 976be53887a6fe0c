// A steady decode step of liboga allocates nothing; for the sampler that is: nothing after the constructor.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <random>
#include <vector>

#include "search/distinct_tokens.h"
#include "search/sampler.h"

namespace {
std::atomic<int> g_allocations{0};
}  // namespace

// Replaced for this whole test program, to count. Not inlined: the compiler would see malloc meet delete and warn.
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++g_allocations;
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void* operator new(size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace oga::search {
namespace {

TEST(Sampler, AllocatesNothingAfterConstruction) {
  constexpr size_t kVocab = 3000;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, 2.0f);
  std::vector<float> logits(kVocab);
  const std::vector<TokenId> penalized{1, 2, 3};
  const std::vector<TokenId> masked{4};
  Sampler sampler(kVocab);

  const int before = g_allocations;
  for (uint64_t position = 0; position < 50; ++position) {
    for (float& logit : logits) logit = normal(random);
    for (const int32_t top_k : {0, 1, 50, 1400, 2999}) {
      for (const float top_p : {0.1f, 0.9f, 1.0f}) {
        for (const bool greedy : {true, false}) {
          SamplingSettings settings;
          settings.greedy = greedy;
          settings.top_k = top_k;
          settings.top_p = top_p;
          settings.repetition_penalty = 1.1f;
          sampler.Sample({logits, &settings, penalized, masked, 1, position});
        }
      }
    }
  }
  EXPECT_EQ(g_allocations, before);
}

TEST(DistinctTokens, AllocatesOnlyInReserve) {
  DistinctTokens distinct(100);
  distinct.Reserve(60);
  const std::vector<TokenId> sequence{5, 6, 5, 7};
  const int before = g_allocations;
  for (const TokenId token : sequence) distinct.Append(token);
  for (TokenId token = 0; token < 60; ++token) distinct.Append(token);
  EXPECT_EQ(g_allocations, before);
}

}  // namespace
}  // namespace oga::search
