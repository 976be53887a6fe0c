// What liboga's own code allocates, with the scripted model outside the count.
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/engine.h"
#include "simulation/allocation_guard.h"
#include "simulation/constant_executor.h"

namespace oga::testing {
namespace {

std::shared_ptr<Engine> MakeEngine(uint32_t rows) {
  // The invariant checks allocate, and they are not what a host runs.
  unsetenv("OGA_VALIDATE");
  EngineParts parts;
  parts.limits = RoomyLimits(rows);
  parts.traits.vocab_size = 32;
  parts.executor = std::make_unique<ConstantExecutor>(rows, 32);
  return Engine::Create(std::move(parts));
}

TEST(Allocation, SteadyDecodeStepsAllocateNothing) {
  const auto engine = MakeEngine(16);
  const auto buffer = engine->CreateEventBuffer(16);
  std::vector<std::shared_ptr<Request>> requests;
  for (int i = 0; i < 16; ++i) {
    requests.push_back(engine->CreateRequest({}));
    const auto options = requests.back()->CreateTurnOptions();
    if (i % 2 == 1) {
      options->SetDoSample(true);
      options->SetTopK(5);
      options->SetTopP(0.9f);
      options->SetRepetitionPenalty(1.2f);
    }
    requests.back()->BeginTurn(std::vector<TokenId>(20, 3), options.get());
  }
  // A first look at each buffer's growth: the widest table of the run is reached here.
  for (int i = 0; i < 3000; ++i) engine->Run(*buffer);
  const AllocationGuard guard;
  for (int i = 0; i < 200; ++i) {
    engine->Run(*buffer);
    ASSERT_EQ(buffer->size(), 16u);
  }
  EXPECT_EQ(guard.allocations(), 0);
}

TEST(Allocation, DrainingAndAskingAllocateNothing) {
  const auto engine = MakeEngine(8);
  const auto buffer = engine->CreateEventBuffer(1);
  std::vector<std::shared_ptr<Request>> requests;
  for (int i = 0; i < 8; ++i) {
    requests.push_back(engine->CreateRequest({}));
    requests.back()->BeginTurn(std::vector<TokenId>(4, 3), nullptr);
  }
  for (int i = 0; i < 4000; ++i) engine->Run(*buffer);
  const AllocationGuard guard;
  for (int i = 0; i < 64; ++i) {
    engine->Run(*buffer);
    ASSERT_TRUE(engine->HasPendingRequests());
  }
  EXPECT_EQ(guard.allocations(), 0);
}

// The k-th allocation fails, for every k, in each call that may allocate: a bad_alloc comes out, nothing has changed, and
// the same call then succeeds.
template <typename Call>
int64_t SweepCall(const std::shared_ptr<Engine>& engine, Call call) {
  for (int64_t k = 0;; ++k) {
    bool threw = false;
    bool injected = false;
    {
      const AllocationGuard guard(k);
      try {
        call();
      } catch (const std::bad_alloc&) {
        threw = true;
      }
      injected = guard.failed();
    }
    engine->Validate();
    EXPECT_EQ(threw, injected) << "allocation " << k << " failed and nobody heard of it";
    if (!injected) return k;
  }
}

TEST(Allocation, FailingAllocationsOfRequestCallsChangeNothing) {
  const auto engine = MakeEngine(8);
  int64_t sites = 0;
  std::vector<std::shared_ptr<Request>> requests(1);
  sites += SweepCall(engine, [&] { requests[0] = engine->CreateRequest({}); });
  std::unique_ptr<TurnOptions> options;
  sites += SweepCall(engine, [&] { options = requests[0]->CreateTurnOptions(); });
  options->SetRepetitionPenalty(1.5f);
  options->SetMaxGeneratedTokens(2);
  const std::vector<TokenId> prompt(40, 2);
  TurnId id = 0;
  sites += SweepCall(engine, [&] { id = requests[0]->BeginTurn(prompt, options.get()); });
  EXPECT_EQ(id, 1u) << "a failed call consumed a turn id";
  std::unique_ptr<EventBuffer> buffer;
  sites += SweepCall(engine, [&] { buffer = engine->CreateEventBuffer(8); });
  while (engine->HasPendingRequests()) engine->Run(*buffer);
  std::shared_ptr<Request> fork;
  sites += SweepCall(engine, [&] { fork = requests[0]->Fork(); });
  EXPECT_EQ(fork->tokens().size(), requests[0]->tokens().size());
  EXPECT_GT(sites, 8);
}

TEST(Allocation, FailingAllocationsOfARunAreRolledBack) {
  for (int64_t k = 0; k < 40; ++k) {
    const auto engine = MakeEngine(4);
    const auto buffer = engine->CreateEventBuffer(8);
    const auto request = engine->CreateRequest({});
    request->BeginTurn(std::vector<TokenId>(50, 2), nullptr);
    try {
      const AllocationGuard guard(k);
      engine->Run(*buffer);
    } catch (const std::bad_alloc&) {
      EXPECT_EQ(request->view().cached_tokens, 0u);
    }
    engine->Validate();
    while (request->usage().generated_tokens < 3) engine->Run(*buffer);
  }
}

}  // namespace
}  // namespace oga::testing
