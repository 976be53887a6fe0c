// What liboga's own code allocates, with the scripted model outside the count.
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/engine.h"
#include "simulation/allocation_guard.h"
#include "simulation/constant_executor.h"
#include "simulation/told_oracle.h"

namespace oga::testing {
namespace {

std::shared_ptr<Engine> MakeEngine(uint32_t rows) {
  // The invariant checks allocate, and they are not what a host runs.
  unsetenv("OGA_VALIDATE");
  EngineParts parts;
  parts.limits = RoomyLimits(rows);
  parts.traits.vocab_size = 32;
  parts.tokens = SimTokenBytes();
  parts.executor = std::make_unique<ConstantExecutor>(rows, 32);
  return Engine::Create(std::move(parts));
}

// Every stage of the sampler at once, without one that could end the turn or leave it without a token.
void SetEverything(TurnOptions& options) {
  options.SetDoSample(true);
  options.SetTopK(20);
  options.SetTypicalP(0.95f);
  options.SetTopP(0.9f);
  options.SetMinP(0.01f);
  options.SetTopNSigma(3.0f);
  options.SetXtcProbability(0.5f);
  options.SetRepetitionPenalty(1.2f);
  options.SetPresencePenalty(0.1f);
  options.SetFrequencyPenalty(0.001f);
  options.SetNoRepeatNgramSize(300);
  options.SetDryMultiplier(0.8f);
  options.SetDryBreakers({9});
  options.SetLogitBias({{3, 1.0f}});
  options.SetBannedSequences({{4}, {5, 6}});
  std::vector<TokenId> allowed;
  for (TokenId token = 1; token < 32; ++token) allowed.push_back(token);
  options.SetAllowedTokens(allowed);
  options.SetStopTokens({7});
  options.SetMinGeneratedTokens(100000);
  // Nearly written by the tokens, and short: what is held back and then released fits into a small string.
  options.SetStopStrings({"ababa!", "zzz"});
  options.SetEmitText(true, false);
}

TEST(Allocation, SteadyDecodeStepsAllocateNothing) {
  const auto engine = MakeEngine(16);
  const auto buffer = engine->CreateEventBuffer(16);
  std::vector<std::shared_ptr<Request>> requests;
  for (int i = 0; i < 16; ++i) {
    requests.push_back(engine->CreateRequest({}));
    const auto options = requests.back()->CreateTurnOptions();
    if (i % 2 == 1) SetEverything(*options);
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
  sites += SweepCall(engine, [&] { SetEverything(*options); });
  options->SetMinGeneratedTokens(0);
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
