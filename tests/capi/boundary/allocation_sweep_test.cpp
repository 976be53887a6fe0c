// Every allocation of every call fails once: the call says so with a result that needs no memory itself, nothing has
// changed, and the same call succeeds afterwards. (Run under AddressSanitizer, it leaks nothing either.)
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>

#include "capi/boundary/scripted_host.h"

namespace oga::capi_test {
namespace {

using oga::testing::AllocationGuard;

class AllocationSweep : public ::testing::Test {
 protected:
  void SetUp() override { OgaSetLogBool("warning", false); }
  void TearDown() override { OgaSetLogBool("warning", true); }
  static void TearDownTestSuite() { std::printf("%d allocation sites failed, all handled\n", sites_); }

  // Calls `call` with its first, second, third ... allocation failing until none is left, and returns how many there
  // were. The outcome of the call that none failed in must be `code`.
  static int Sweep(const std::function<OgaResult*()>& call, OgaStatusCode code = OgaStatusCode_Ok) {
    for (int failing = 0;; ++failing) {
      OgaResult* result = nullptr;
      bool failed = false;
      {
        const AllocationGuard guard(failing);
        result = call();
        failed = guard.failed();
      }
      const Outcome outcome = Take(result);
      if (!failed) {
        EXPECT_EQ(outcome.code, code) << outcome.message;
        sites_ += failing;
        return failing;
      }
      EXPECT_EQ(outcome.code, OgaStatusCode_OutOfMemory) << "allocation " << failing << ": " << outcome.message;
      if (failing == 1000) throw std::runtime_error("the call never stops allocating");
    }
  }

  uint64_t Live() { return Count(host_.engine.get(), "live_requests"); }

  ScriptedHost host_;

 private:
  inline static int sites_ = 0;
};

TEST_F(AllocationSweep, OfCallsThatCreateHandles) {
  OgaRequest* request = nullptr;
  EXPECT_GT(Sweep([&] { return OgaEngineCreateRequest(host_.engine.get(), nullptr, &request); }), 0);
  const RequestHandle owned_request(request);
  EXPECT_EQ(Live(), 1u) << "a failed creation left a request behind";

  OgaEngineEventBuffer* buffer = nullptr;
  EXPECT_GT(Sweep([&] { return OgaCreateEngineEventBuffer(host_.engine.get(), 8, &buffer); }), 0);
  OgaDestroyEngineEventBuffer(buffer);
  OgaTurnOptions* options = nullptr;
  EXPECT_GT(Sweep([&] { return OgaRequestCreateTurnOptions(request, &options); }), 0);
  OgaDestroyTurnOptions(options);
  OgaRequestOptions* request_options = nullptr;
  EXPECT_GT(Sweep([&] { return OgaCreateRequestOptions(&request_options); }), 0);
  OgaDestroyRequestOptions(request_options);
  OgaEngineCapabilities* capabilities = nullptr;
  EXPECT_GT(Sweep([&] { return OgaEngineGetCapabilities(host_.engine.get(), &capabilities); }), 0);
  OgaDestroyEngineCapabilities(capabilities);
  OgaEngineStatistics* statistics = nullptr;
  EXPECT_GT(Sweep([&] { return OgaEngineGetStatistics(host_.engine.get(), &statistics); }), 0);
  OgaDestroyEngineStatistics(statistics);
}

TEST_F(AllocationSweep, OfTheLists) {
  const int32_t tokens[] = {1, 2, 3};
  const char* const strings[] = {"a string that is too long to be stored in place", "b"};
  OgaSequences* sequences = nullptr;
  EXPECT_GT(Sweep([&] { return OgaCreateSequences(&sequences); }), 0);
  EXPECT_GT(Sweep([&] { return OgaAppendTokenSequence(tokens, 3, sequences); }), 0);
  EXPECT_GT(Sweep([&] { return OgaAppendTokenToSequence(4, sequences, 0); }), 0);
  EXPECT_GT(Sweep([&] { return OgaAppendTokenToSequence(5, sequences, 1); }), 0);
  EXPECT_EQ(OgaSequencesCount(sequences), 2u);
  EXPECT_EQ(OgaSequencesGetSequenceCount(sequences, 0), 4u);
  OgaDestroySequences(sequences);

  OgaStringArray* array = nullptr;
  EXPECT_GT(Sweep([&] { return OgaCreateStringArrayFromStrings(strings, 2, &array); }), 0);
  EXPECT_GT(Sweep([&] { return OgaStringArrayAddString(array, strings[0]); }), 0);
  size_t count = 0;
  Must(OgaStringArrayGetCount(array, &count));
  EXPECT_EQ(count, 3u);
  OgaDestroyStringArray(array);
}

TEST_F(AllocationSweep, OfTheListsOfTurnOptions) {
  const RequestHandle request = MakeRequest(host_.engine.get());
  const TurnOptionsHandle owned = MakeTurnOptions(request.get());
  OgaTurnOptions* options = owned.get();
  const int32_t tokens[] = {3, 4};
  const float biases[] = {1.0f, 2.0f};
  OgaSequences* sequences = nullptr;
  Must(OgaCreateSequences(&sequences));
  Must(OgaAppendTokenSequence(tokens, 2, sequences));
  EXPECT_GT(Sweep([&] { return OgaTurnOptionsSetLogitBias(options, tokens, biases, 2); }), 0);
  EXPECT_GT(Sweep([&] { return OgaTurnOptionsSetStopTokens(options, tokens, 2); }), 0);
  EXPECT_GT(Sweep([&] { return OgaTurnOptionsSetAllowedTokens(options, tokens, 2); }), 0);
  EXPECT_GT(Sweep([&] { return OgaTurnOptionsSetDryBreakers(options, tokens, 2); }), 0);
  EXPECT_GT(Sweep([&] { return OgaTurnOptionsSetBannedSequences(options, sequences); }), 0);
  OgaDestroySequences(sequences);
}

// Options under which a turn keeps all the state it can, and which change no token of the script.
TEST_F(AllocationSweep, OfConfigs) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "oga_sweep_config";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "genai_config.json") << R"({"model": {"type": "llama", "vocab_size": 64, "context_length": 128,
      "eos_token_id": [1, 2], "decoder": {"filename": "model.onnx", "num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": 2, "head_size": 8, "hidden_size": 32}}, "search": {"temperature": 0.5}})";
  const std::string path = folder.string();
  OgaConfig* config = nullptr;
  EXPECT_GT(Sweep([&] { return OgaCreateConfig(path.c_str(), &config); }), 0);
  EXPECT_GT(Sweep([&] { return OgaConfigOverlay(config, R"({"engine": {"dynamic_batching": {"num_blocks": 9}}})"); }),
            0);
  EXPECT_GT(
      Sweep([&] { return OgaConfigOverlay(config, R"({"engine": {"nothing": 1}})"); }, OgaStatusCode_InvalidArgument),
      0);
  Sweep([&] { return OgaConfigAppendProvider(config, "cpu"); });
  Sweep([&] { return OgaConfigClearProviders(config); });
  OgaDestroyConfig(config);
  std::filesystem::remove_all(folder);
}

TEST_F(AllocationSweep, OfEverySetterAndWhatOnlyReads) {
  const RequestHandle request = MakeRequest(host_.engine.get());
  const TurnOptionsHandle options = ExactlyTokens(request.get(), 2);
  Sweep([&] { return OgaTurnOptionsSetDoSample(options.get(), true); });
  Sweep([&] { return OgaTurnOptionsSetTemperature(options.get(), 0.5f); });
  Sweep([&] { return OgaTurnOptionsSetTopP(options.get(), 0.5f); });
  Sweep([&] { return OgaTurnOptionsSetSeed(options.get(), 4); });
  Sweep([&] { return OgaTurnOptionsClearSeed(options.get()); });
  Sweep([&] { return OgaTurnOptionsSetMaxGeneratedTokens(options.get(), 3); });
  Sweep([&] { return OgaTurnOptionsSetMinGeneratedTokens(options.get(), 2); });
  Sweep([&] { return OgaTurnOptionsSetTopP(options.get(), 1.5f); }, OgaStatusCode_InvalidArgument);
  Sweep([&] { return OgaTurnOptionsReset(options.get()); });
  OgaRequestOptions* request_options = nullptr;
  Must(OgaCreateRequestOptions(&request_options));
  Sweep([&] { return OgaRequestOptionsSetMaxSessionTokens(request_options, 9); });
  Sweep([&] { return OgaRequestOptionsSetPriority(request_options, 1); });
  Sweep([&] { return OgaRequestOptionsSetCacheSalt(request_options, 1); });
  OgaDestroyRequestOptions(request_options);
  OgaStringArray* strings = nullptr;
  EXPECT_GT(Sweep([&] { return OgaCreateStringArray(&strings); }), 0);
  OgaDestroyStringArray(strings);
  bool pending = true;
  Sweep([&] { return OgaEngineHasPendingRequests(host_.engine.get(), &pending); });
  Sweep([&] { return OgaEngineDropPrefixCache(host_.engine.get()); });
  const std::string path = ::testing::TempDir() + "oga_sweep_trace.jsonl";
  EXPECT_GT(Sweep([&] { return OgaEngineSetTraceFile(host_.engine.get(), path.c_str()); }), 0);
  Sweep([&] { return OgaEngineSetTraceFile(host_.engine.get(), nullptr); });
  std::filesystem::remove(path);
}

TEST_F(AllocationSweep, OfBeginTurn) {
  const RequestHandle request = MakeRequest(host_.engine.get());
  const TurnOptionsHandle options = ExactlyTokens(request.get(), 6);
  const int32_t token = 0;
  const float bias = 0.001f;
  Must(OgaTurnOptionsSetRepetitionPenalty(options.get(), 1.0001f));
  Must(OgaTurnOptionsSetNumber(options.get(), "frequency_penalty", 0.0001));
  Must(OgaTurnOptionsSetNumber(options.get(), "dry_multiplier", 0.0001));
  Must(OgaTurnOptionsSetLogitBias(options.get(), &token, &bias, 1));
  const std::vector<int32_t> prompt = Prompt(5);
  uint64_t turn_id = 0;
  EXPECT_GT(Sweep([&] {
              turn_id = 9;
              return OgaRequestBeginTurn(request.get(), options.get(), prompt.data(), prompt.size(), &turn_id);
            }),
            0);
  EXPECT_EQ(turn_id, 1u) << "a failed call used up a turn id";
  EXPECT_EQ(RunToEnd(host_.engine.get(), host_.buffer.get())[request.get()].tokens, host_.Expected(prompt, 6));
}

TEST_F(AllocationSweep, OfRewindForkAndCancel) {
  const RequestHandle request = MakeRequest(host_.engine.get());
  BeginTurn(request.get(), Prompt(5), ExactlyTokens(request.get(), 3).get());
  const std::vector<int32_t> first = RunToEnd(host_.engine.get(), host_.buffer.get())[request.get()].tokens;
  OgaRequest* fork = nullptr;
  EXPECT_GT(Sweep([&] { return OgaRequestFork(request.get(), &fork); }), 0);
  const RequestHandle owned(fork);
  EXPECT_EQ(Live(), 2u);
  Sweep([&] { return OgaRequestRewindToStartOfTurn(request.get(), 1); });
  const uint64_t turn_id = BeginTurn(request.get(), Prompt(5), ExactlyTokens(request.get(), 3).get());
  bool cancelled = false;
  Sweep([&] { return OgaRequestCancelTurn(request.get(), turn_id, &cancelled); });
  EXPECT_TRUE(cancelled);
  EXPECT_EQ(RunToEnd(host_.engine.get(), host_.buffer.get())[request.get()].endings.size(), 1u);

  std::vector<int32_t> sequence = Prompt(5);
  sequence.insert(sequence.end(), first.begin(), first.end());
  sequence.push_back(9);
  BeginTurn(fork, {9}, ExactlyTokens(fork, 3).get());
  EXPECT_EQ(RunToEnd(host_.engine.get(), host_.buffer.get())[fork].tokens, host_.Expected(sequence, 3));
}

// A step reports a failed allocation as an event, for a later run to try again.
TEST_F(AllocationSweep, OfRun) {
  const RequestHandle request = MakeRequest(host_.engine.get());
  BeginTurn(request.get(), Prompt(5), ExactlyTokens(request.get(), 30).get());
  std::vector<int32_t> tokens;
  int failures = 0;
  for (int failing = 0; tokens.size() < 30; ++failing) {
    if (failing == 2000) throw std::runtime_error("the turn does not come to an end");
    OgaResult* result = nullptr;
    {
      const AllocationGuard guard(failing % 40);
      result = OgaEngineRun(host_.engine.get(), host_.buffer.get());
      failures += guard.failed();
    }
    const Outcome outcome = Take(result);
    ASSERT_TRUE(outcome.code == OgaStatusCode_Ok || outcome.code == OgaStatusCode_OutOfMemory) << outcome.message;
    if (outcome.code != OgaStatusCode_Ok) continue;
    for (const EventCopy& event : CopyEvents(host_.buffer.get())) {
      ASSERT_EQ(event.flags & OgaEngineEventFlag_Failed, 0u);
      if (event.has_token()) tokens.push_back(event.token);
    }
  }
  EXPECT_GT(failures, 0);
  EXPECT_EQ(tokens, host_.Expected(Prompt(5), 30));
}

TEST_F(AllocationSweep, OfCallsThatFailAnyway) {
  const RequestHandle request = MakeRequest(host_.engine.get());
  const TurnOptionsHandle options = ExactlyTokens(request.get(), 6);
  const int32_t bad = 999;
  uint64_t turn_id = 0;
  uint64_t count = 0;
  OgaEngineStatistics* statistics = nullptr;
  Must(OgaEngineGetStatistics(host_.engine.get(), &statistics));
  const StatisticsHandle owned(statistics);
  EXPECT_GT(Sweep([&] { return OgaEngineRun(nullptr, nullptr); }, OgaStatusCode_InvalidArgument), 0);
  EXPECT_GT(Sweep([&] { return OgaTurnOptionsSetTopK(options.get(), -1); }, OgaStatusCode_InvalidArgument), 0);
  EXPECT_GT(Sweep([&] { return OgaRequestBeginTurn(request.get(), nullptr, &bad, 1, &turn_id); },
                  OgaStatusCode_InvalidArgument),
            0);
  EXPECT_GT(
      Sweep([&] { return OgaEngineStatisticsGetCount(statistics, "nothing", &count); }, OgaStatusCode_InvalidArgument),
      0);
}

}  // namespace
}  // namespace oga::capi_test
