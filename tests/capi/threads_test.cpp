// Calls from a thread that does not own the engine: refused without a change, except where the headers allow them.
#include <atomic>
#include <functional>
#include <thread>

#include "capi/harness.h"

namespace oga::capi_test {
namespace {

class ForeignThread : public WithEngine {
 protected:
  void SetUp() override {
    WithEngine::SetUp();
    request_ = MakeRequest(engine_.get());
    options_ = ExactlyTokens(request_.get(), 3);
  }

  struct Call {
    const char* function;
    std::function<OgaResult*()> call;
  };

  std::vector<Call> OwnerCalls() {
    OgaEngine* engine = engine_.get();
    OgaRequest* request = request_.get();
    OgaTurnOptions* options = options_.get();
    return {
        {"CreateRequest", [=, this] { return OgaEngineCreateRequest(engine, nullptr, &request_out_); }},
        {"CreateEventBuffer", [=, this] { return OgaCreateEngineEventBuffer(engine, 1, &buffer_out_); }},
        {"Run", [=, this] { return OgaEngineRun(engine, buffer_.get()); }},
        {"HasPendingRequests", [=, this] { return OgaEngineHasPendingRequests(engine, &bool_out_); }},
        {"GetCapabilities", [=, this] { return OgaEngineGetCapabilities(engine, &capabilities_out_); }},
        {"GetStatistics", [=, this] { return OgaEngineGetStatistics(engine, &statistics_out_); }},
        {"SetTraceFile", [=] { return OgaEngineSetTraceFile(engine, "no_trace_should_be_here"); }},
        {"BeginTurn", [=, this] { return OgaRequestBeginTurn(request, nullptr, &token_, 1, &turn_id_out_); }},
        {"CancelTurn", [=, this] { return OgaRequestCancelTurn(request, 1, &bool_out_); }},
        {"Rewind", [=] { return OgaRequestRewindToStartOfTurn(request, 1); }},
        {"Fork", [=, this] { return OgaRequestFork(request, &request_out_); }},
        {"Close", [=] { return OgaRequestClose(request); }},
        {"CreateTurnOptions", [=, this] { return OgaRequestCreateTurnOptions(request, &options_out_); }},
        {"Reset", [=] { return OgaTurnOptionsReset(options); }},
        {"SetMaxGeneratedTokens", [=] { return OgaTurnOptionsSetMaxGeneratedTokens(options, 9); }},
        {"SetMinGeneratedTokens", [=] { return OgaTurnOptionsSetMinGeneratedTokens(options, 9); }},
        {"SetDoSample", [=] { return OgaTurnOptionsSetDoSample(options, true); }},
        {"SetTemperature", [=] { return OgaTurnOptionsSetTemperature(options, 9.0f); }},
        {"SetTopK", [=] { return OgaTurnOptionsSetTopK(options, 9); }},
        {"SetTopP", [=] { return OgaTurnOptionsSetTopP(options, 0.9f); }},
        {"SetRepetitionPenalty", [=] { return OgaTurnOptionsSetRepetitionPenalty(options, 9.0f); }},
        {"SetSeed", [=] { return OgaTurnOptionsSetSeed(options, 9); }},
        {"ClearSeed", [=] { return OgaTurnOptionsClearSeed(options); }},
    };
  }

  RequestHandle request_;
  TurnOptionsHandle options_;
  const int32_t token_ = 1;
  OgaRequest* request_out_ = nullptr;
  OgaEngineEventBuffer* buffer_out_ = nullptr;
  OgaEngineCapabilities* capabilities_out_ = nullptr;
  OgaEngineStatistics* statistics_out_ = nullptr;
  OgaTurnOptions* options_out_ = nullptr;
  uint64_t turn_id_out_ = 0;
  bool bool_out_ = false;
};

TEST_F(ForeignThread, IsRefusedEverywhereAndChangesNothing) {
  const std::vector<int32_t> expected = Generate(Prompt(4), 3);
  BeginTurn(request_.get(), Prompt(4), options_.get());
  const EventCopy first = Step(engine_.get(), buffer_.get()).at(0);
  const std::vector<Call> calls = OwnerCalls();
  std::thread([&] {
    for (const Call& call : calls) {
      EXPECT_TRUE(Fails(call.call(), OgaStatusCode_InvalidState, "thread")) << call.function;
    }
  }).join();

  EXPECT_EQ(CopyEvents(buffer_.get()).at(0).token, first.token) << "the buffer lost its content";
  std::vector<int32_t> tokens{first.token};
  const Transcript rest = RunToEnd(engine_.get(), buffer_.get())[request_.get()];
  tokens.insert(tokens.end(), rest.tokens.begin(), rest.tokens.end());
  EXPECT_EQ(tokens, expected) << "the turn was disturbed";
  EXPECT_EQ(Finish(request_.get(), Prompt(1), options_.get()).tokens.size(), 3u) << "the options were changed";
}

TEST_F(ForeignThread, HammeringDoesNotDisturbTheOwner) {
  const std::vector<int32_t> expected = Generate(Prompt(4), 40);
  const TurnOptionsHandle long_turn = ExactlyTokens(request_.get(), 40);
  BeginTurn(request_.get(), Prompt(4), long_turn.get());
  OgaEngine* engine = engine_.get();
  OgaRequest* request = request_.get();
  std::atomic<bool> stop{false};
  std::atomic<int> accepted{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, engine, request] {
      bool pending = false;
      while (!stop) {
        for (OgaResult* result : {OgaEngineHasPendingRequests(engine, &pending), OgaRequestClose(request),
                                  OgaEngineRun(engine, buffer_.get())}) {
          accepted += OgaResultGetCode(result) != OgaStatusCode_InvalidState;
          OgaDestroyResult(result);
        }
      }
    });
  }
  const std::vector<int32_t> tokens = RunToEnd(engine, buffer_.get())[request].tokens;
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(accepted, 0);
  EXPECT_EQ(tokens, expected);
}

TEST_F(ForeignThread, MayReleaseEveryHandle) {
  BeginTurn(request_.get(), Prompt(4), options_.get());
  Step(engine_.get(), buffer_.get());
  std::thread([&] {
    options_.reset();
    buffer_.reset();
    request_.reset();
    model_.reset();
  }).join();
  EXPECT_FALSE(HasPending(engine_.get()));
  EXPECT_EQ(Count(engine_.get(), "free_blocks"), kBlocks);
}

TEST_F(ForeignThread, OwnsTheEnginesItCreatesItself) {
  const std::vector<int32_t> expected = Generate(Prompt(4), 5);
  std::vector<int32_t> tokens[2];
  std::vector<std::thread> threads;
  for (auto& out : tokens) {
    threads.emplace_back([&] {
      const EngineHandle engine = MakeEngine(model_.get());
      const BufferHandle buffer = MakeBuffer(engine.get());
      const RequestHandle request = MakeRequest(engine.get());
      BeginTurn(request.get(), Prompt(4), ExactlyTokens(request.get(), 5).get());
      out = RunToEnd(engine.get(), buffer.get())[request.get()].tokens;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tokens[0], expected);
  EXPECT_EQ(tokens[1], expected);
}

}  // namespace
}  // namespace oga::capi_test
