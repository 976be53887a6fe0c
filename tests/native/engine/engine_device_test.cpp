// A whole engine over a real graph, on the CPU and on a device in another address space: the same tokens from both,
// through forks, rewinds and preemptions, and the same ends of steps that failed.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "native/engine/engine_harness.h"
#include "support/remote_device.h"
#include "support/test_data.h"

namespace oga::testing {
namespace {

constexpr const char* kFewBlocks = R"({"engine": {"dynamic_batching": {"num_blocks": 17}}})";

// An engine over the model `separate`, with sampling that reads all of the logits.
class Host {
 public:
  explicit Host(const char* provider, const char* overlay = "{}") {
    const GenaiConfig config = GenaiConfig::FromFolder(test::DataPath("models/separate")).WithOverlay(overlay);
    engine = Engine::Create(LoadOnnxModel(config.WithoutProviders().WithProvider(provider)));
    buffer = engine->CreateEventBuffer(64);
  }

  std::shared_ptr<Request> Create() { return engine->CreateRequest({}); }

  static void Begin(Request& request, size_t input_tokens, TokenId first, uint64_t generated_tokens) {
    const auto options = request.CreateTurnOptions();
    options->SetMaxGeneratedTokens(generated_tokens);
    options->SetMinGeneratedTokens(generated_tokens);
    options->SetTemperature(1.0f);
    options->SetSeed(static_cast<uint64_t>(first));
    request.BeginTurn(EngineHarness::Prompt(input_tokens, first), options.get());
  }

  void Step() {
    engine->Run(*buffer);
    for (size_t i = 0; i < buffer->size(); ++i) {
      const Event& event = *buffer->at(i);
      if (event.request == nullptr) {
        engine_events.push_back(event.error_code);
      } else if (event.flags & event_flags::kToken) {
        tokens[event.request.get()].push_back(event.token);
      }
      if (event.flags & event_flags::kFailed) failures.push_back(event.error_code);
    }
  }

  void Finish() {
    for (int i = 0; engine->HasPendingRequests(); ++i) {
      ASSERT_LT(i, 1000);
      Step();
    }
  }

  std::shared_ptr<Engine> engine;
  std::unique_ptr<EventBuffer> buffer;
  std::map<const Request*, std::vector<TokenId>> tokens;
  std::vector<EventErrorCode> engine_events;
  std::vector<EventErrorCode> failures;
};

using Transcript = std::vector<std::vector<TokenId>>;

// Four conversations side by side: more rows than blocks, a fork that writes into a shared block, a rewind.
Transcript Converse(Host& host) {
  std::vector<std::shared_ptr<Request>> requests;
  for (int i = 0; i < 4; ++i) {
    requests.push_back(host.Create());
    Host::Begin(*requests.back(), 6 + i, 1 + 3 * i, 10);
  }
  host.Finish();
  requests.push_back(requests[0]->Fork());
  Host::Begin(*requests[0], 3, 11, 7);
  Host::Begin(*requests[4], 2, 12, 7);
  requests[1]->RewindToStartOfTurn(1);
  Host::Begin(*requests[1], 9, 13, 9);
  host.Finish();
  Transcript transcript;
  for (const auto& request : requests) transcript.push_back(host.tokens[request.get()]);
  for (const auto& request : requests) request->Close();
  return transcript;
}

class EngineOnADevice : public test::WithRuntime {
 protected:
  void TearDown() override {
    g_remote_faults.allocation = RemoteFaults::kNever;
    g_remote_faults.synchronisation = RemoteFaults::kNever;
    g_remote_faults.code = StatusCode::kInternal;
  }
};

TEST_F(EngineOnADevice, GivesTheTokensOfTheCpu) {
  for (const char* overlay : {"{}", kFewBlocks}) {
    Host here("cpu", overlay);
    Host there("remote", overlay);
    const Transcript wanted = Converse(here);
    EXPECT_EQ(Converse(there), wanted);
    for (const auto& tokens : wanted) EXPECT_FALSE(tokens.empty());
    const EngineStatistics statistics = there.engine->GetStatistics();
    EXPECT_EQ(statistics.preemptions, here.engine->GetStatistics().preemptions);
    EXPECT_EQ(statistics.preemptions > 0, overlay == kFewBlocks);
    EXPECT_EQ(statistics.live_requests, 0u);
  }
}

TEST_F(EngineOnADevice, GivesARequestTheSameTokensAloneAndAmongOthers) {
  Host together("remote", kFewBlocks);
  std::vector<std::shared_ptr<Request>> requests;
  for (int i = 0; i < 4; ++i) {
    requests.push_back(together.Create());
    Host::Begin(*requests.back(), 5 + 2 * i, 20 + i, 12);
  }
  together.Finish();
  for (int i = 0; i < 4; ++i) {
    Host alone("remote");
    const auto request = alone.Create();
    Host::Begin(*request, 5 + 2 * i, 20 + i, 12);
    alone.Finish();
    EXPECT_EQ(together.tokens[requests[i].get()], alone.tokens[request.get()]) << i;
  }
}

TEST_F(EngineOnADevice, RollsBackAStepWhoseCopiesRanOutOfMemory) {
  Host undisturbed("cpu", kFewBlocks);
  const Transcript wanted = Converse(undisturbed);
  g_remote_faults.code = StatusCode::kResourceExhausted;
  for (int which = 1;; which += 3) {
    Host host("remote", kFewBlocks);
    g_remote_faults.synchronisation = which;
    EXPECT_EQ(Converse(host), wanted) << which;
    if (g_remote_faults.synchronisation > 0) {
      EXPECT_GT(which, 30) << "few copies were met";
      break;
    }
    EXPECT_EQ(host.engine_events, std::vector{EventErrorCode::kExecutionCapacityExceeded}) << which;
    EXPECT_EQ(host.engine->GetStatistics().rolled_back_steps, 1u);
  }
}

TEST_F(EngineOnADevice, RollsBackAStepWhoseTensorsFindNoMemory) {
  Host undisturbed("cpu");
  const Transcript wanted = Converse(undisturbed);
  for (const int which : {1, 2, 5, 9, 13}) {
    Host host("remote");
    g_remote_faults.allocation = which;
    EXPECT_EQ(Converse(host), wanted) << which;
    EXPECT_EQ(host.engine_events, std::vector{EventErrorCode::kExecutionCapacityExceeded}) << which;
  }
}

TEST_F(EngineOnADevice, IsUnhealthyOnceTheDeviceFailed) {
  Host host("remote");
  const auto request = host.Create();
  Host::Begin(*request, 5, 1, 10);
  host.Step();
  g_remote_faults.synchronisation = 1;
  host.Step();
  EXPECT_EQ(host.failures, std::vector{EventErrorCode::kEngineExecutionFailure});
  EXPECT_EQ(host.tokens[request.get()].size(), 1u);
  try {
    host.Step();
    FAIL() << "an engine whose device failed made progress";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kEngineUnhealthy);
    EXPECT_NE(error.message().find("the remote device failed to copy"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace oga::testing
